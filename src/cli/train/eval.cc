// cautious eval: how well a trained model predicts a text, or the classes of images.
#include <algorithm>
#include <cmath>
#include <functional>
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
#include "model/vision/evaluate.h"

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

using Show = std::function<void(const std::string& what, double fraction)>;

std::string eval_text(const EvalArguments& args, int threads, const Show& show) {
  const Trained trained = load_trained(args.run);
  data::CorpusSpec spec;
  spec.path = args.data;
  spec.cache = data::default_cache();
  spec.threads = threads;
  const data::Stream stream = data::open_stream(spec, trained.tokenizer, show);
  const model::EvaluationSet set = windows_of(stream, trained, args.tokens);
  const model::Evaluation result =
      model::evaluate(*trained.model, set, args.batch, [&](double fraction) { show("evaluating", fraction); });
  return args.json ? json_of(args, trained, set, result) : table_of(args, trained, set, result);
}

// Of a fraction of `images` that is `percent`, in percent.
double deviation_of(double percent, std::int64_t images) {
  return std::sqrt(percent * (100 - percent) / static_cast<double>(images));
}

std::string image_json(const EvalArguments& args, const TrainedClassifier& trained, const model::ImageEvaluation& result) {
  const nlohmann::ordered_json object{{"checkpoint", trained.checkpoint.string()},
                                      {"data", args.data},
                                      {"loss", result.loss},
                                      {"top1", 100 - result.error()},
                                      {"top1_stderr", deviation_of(result.error(), result.images)},
                                      {"top5", 100 - result.top5_error()},
                                      {"top5_stderr", deviation_of(result.top5_error(), result.images)},
                                      {"images", result.images},
                                      {"unreadable", std::ssize(result.predictions) - result.images}};
  return object.dump() + "\n";
}

std::string image_table(const EvalArguments& args, const TrainedClassifier& trained, const model::ImageEvaluation& result) {
  const auto percent = [&](double error) {
    return fmt::format("{:.2f}% +/- {:.2f}% (standard error)", 100 - error, deviation_of(error, result.images));
  };
  const std::int64_t bad = std::ssize(result.predictions) - result.images;
  return fmt::format("checkpoint  {}\n", trained.checkpoint.string()) +
         fmt::format("data        {}: {} images{}\n", base::join(args.data), result.images,
                     bad > 0 ? fmt::format(", {} more cannot be read", bad) : "") +
         fmt::format("loss        {:.6f} nats per image\n", result.loss) +
         fmt::format("top-1       {}\n", percent(result.error())) +
         fmt::format("top-5       {}\n", percent(result.top5_error()));
}

// The labels of a set are numbers: they mean the same only where both have the same classes.
void check_classes(const TrainedClassifier& trained, const data::ImageSet& set) {
  const std::vector<std::string>& known = trained.described.labels;
  if (known == set.classes()) return;
  throw Error(Fault::data, fmt::format("the data has the classes {}, but the model was trained on {}",
                                       base::join(set.classes()), base::join(known)));
}

std::string eval_images(const EvalArguments& args, int threads, const Show& show) {
  const TrainedClassifier trained = load_trained_classifier(args.run);
  if (args.tokens > 0) throw Error(Fault::usage, "--tokens is for language models; leave it out for images");
  data::ImageSpec spec;
  spec.path = args.data;
  spec.cache = data::default_cache();
  const std::shared_ptr<const data::ImageSet> set = data::open_image_set(spec);
  check_classes(trained, *set);
  const model::ImageEvaluation result =
      model::evaluate(*trained.model, *set, trained.view, {.batch = args.batch, .most = 0, .workers = threads},
                      [&](double fraction) { show("evaluating", fraction); });
  return args.json ? image_json(args, trained, result) : image_table(args, trained, result);
}

int run(const EvalArguments& args) {
  base::check_range("--batch", static_cast<double>(args.batch), {1, 1e6, false, false});
  base::check_range("--tokens", static_cast<double>(args.tokens), {0, 1e15, false, false});
  const int threads = use_threads(args.threads);
  const Interruptible interruptible;
  base::LiveLine line(base::LiveLine::Style::automatic);
  const Show show = [&](const std::string& what, double fraction) {
    interruptible.check();
    line.show_fraction(fraction, what);
  };
  const std::string text = classifies_images(args.run) ? eval_images(args, threads, show) : eval_text(args, threads, show);
  line.finish();
  base::print(text);
  return 0;
}

}  // namespace

void add_eval(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<EvalArguments>();
  CLI::App& verb = *app.add_subcommand("eval", kEvalLine);
  verb.footer(
      "  cautious eval runs/first --data held_out.txt\n"
      "  cautious eval runs/fashion --data fashion-mnist\n"
      "  cautious eval runs/first --data shards/ more.jsonl --tokens 1000000 --json");
  verb.add_option("RUN", args->run, "A run directory (its newest checkpoint), a checkpoint, or a model folder")
      ->required()
      ->type_name("");
  verb.add_option("--data", args->data, "Text, JSONL or token files, folders of these or of images, or the name of a known set")
      ->required()
      ->expected(1, 1000)
      ->type_name("FILE...");
  verb.add_option("--tokens", args->tokens, "Of a text, about this many tokens, evenly spaced; 0 means all (default: 0)")
      ->type_name("NUMBER");
  verb.add_option("--batch", args->batch, "Windows or images at a time; changes speed and memory only (default: 8)")
      ->type_name("NUMBER");
  verb.add_option("--threads", args->threads, "Threads; 0 means one per core (default: 0)")->type_name("NUMBER");
  verb.add_flag("--json", args->json, "Print one JSON object to standard output");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
