// cautious eval: how well a trained model predicts a text.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "base/terminal.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "data/corpus.h"
#include "data/sampler.h"
#include "model/evaluate.h"

namespace cautious::cli {
namespace {

struct EvalArguments {
  std::string run;
  std::vector<std::string> data;
  std::int64_t tokens = 0, batch = 8;
  int threads = 0;
  bool json = false;
};

// Windows of the model's context side by side, or as many of them as `tokens` says, evenly spaced.
model::EvaluationSet windows_of(const data::Stream& stream, const Trained& trained, std::int64_t tokens) {
  const std::int64_t length = std::min(trained.model->config().context, stream.size() - 1);
  const std::int64_t all = (stream.size() - 1) / length;
  const std::int64_t count = tokens > 0 ? std::min(all, (tokens + length - 1) / length) : all;
  return {&stream, data::fixed_windows(stream, length, count), length, trained.tokenizer.lengths()};
}

std::string json_of(const EvalArguments& args, const Trained& trained, const model::EvaluationSet& set,
                    const model::Evaluation& result) {
  const nlohmann::ordered_json object{{"checkpoint", trained.checkpoint.string()},
                                      {"data", args.data},
                                      {"loss", result.loss},
                                      {"bits_per_byte", result.bits_per_byte},
                                      {"accuracy", result.accuracy},
                                      {"targets", result.targets},
                                      {"windows", set.windows.size()},
                                      {"sequence", set.length}};
  return object.dump() + "\n";
}

std::string table_of(const EvalArguments& args, const Trained& trained, const model::EvaluationSet& set,
                     const model::Evaluation& result) {
  return fmt::format("checkpoint     {}\n", trained.checkpoint.string()) +
         fmt::format("data           {}: {} windows of {} tokens\n", base::join(args.data), set.windows.size(), set.length) +
         fmt::format("loss           {:.6f} nats per token\n", result.loss) +
         (std::isnan(result.bits_per_byte) ? "" : fmt::format("bits per byte  {:.6f}\n", result.bits_per_byte)) +
         fmt::format("accuracy       {:.2f}%\n", 100 * result.accuracy) + fmt::format("targets        {}\n", result.targets);
}

int run(const EvalArguments& args) {
  base::check_range("--batch", static_cast<double>(args.batch), {1, 1e6, false, false});
  base::check_range("--tokens", static_cast<double>(args.tokens), {0, 1e15, false, false});
  const int threads = use_threads(args.threads);
  const Trained trained = load_trained(args.run);
  const Interruptible interruptible;
  base::LiveLine line(base::LiveLine::Style::automatic);
  const auto show = [&](const std::string& what, double fraction) {
    interruptible.check();
    line.show_fraction(fraction, what);
  };
  data::CorpusSpec spec;
  spec.path = args.data;
  spec.cache = data::default_cache();
  spec.threads = threads;
  const data::Stream stream = data::open_stream(spec, trained.tokenizer, show);
  const model::EvaluationSet set = windows_of(stream, trained, args.tokens);
  const model::Evaluation result =
      model::evaluate(*trained.model, set, args.batch, [&](double fraction) { show("evaluating", fraction); });
  line.finish();
  base::print(args.json ? json_of(args, trained, set, result) : table_of(args, trained, set, result));
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<EvalArguments>();
  CLI::App& verb = *app.add_subcommand("eval", kEvalLine);
  verb.footer(
      "  cautious eval runs/first --data held_out.txt\n"
      "  cautious eval runs/first --data shards/ more.jsonl --tokens 1000000 --json");
  verb.add_option("RUN", args->run, "A run directory (its newest checkpoint), a checkpoint, or a model folder")
      ->required()
      ->type_name("");
  verb.add_option("--data", args->data, "Text, JSONL or token files, folders of these, or the name of a known set")
      ->required()
      ->expected(1, 1000)
      ->type_name("FILE...");
  verb.add_option("--tokens", args->tokens, "About this many tokens, evenly spaced; 0 means all (default: 0)")
      ->type_name("NUMBER");
  verb.add_option("--batch", args->batch, "Windows at a time; changes speed and memory only (default: 8)")->type_name("NUMBER");
  verb.add_option("--threads", args->threads, "Threads; 0 means one per core (default: 0)")->type_name("NUMBER");
  verb.add_flag("--json", args->json, "Print one JSON object to standard output");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
