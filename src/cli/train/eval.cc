// cautious eval: how well a trained model predicts a text, or the classes of images. (Benchmarks: eval_tasks.cc.)
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/terminal.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "cli/verbs.h"
#include "data/corpus.h"
#include "data/sampler.h"
#include "data/sets/catalog.h"
#include "data/tasks/task.h"
#include "model/evaluate.h"
#include "model/vision/evaluate.h"

namespace cautious::cli {
namespace {

struct EvalArguments {
  std::string run;
  std::vector<std::string> data;
  std::string field = "text";
  std::int64_t tokens = 0, batch = 8;
  std::optional<std::int64_t> stride;
  int threads = 0;
  bool json = false;
  TaskArguments tasks;
};

// Windows of the model's context side by side, or as many of them as `tokens` says, evenly spaced. With a stride each begins
// so many tokens after the one before, the last one where it still fits, and what an earlier one has does not count again.
model::EvaluationSet windows_of(const data::Stream& stream, const Trained& trained, const EvalArguments& args) {
  const std::int64_t length = std::min(trained.model->config().context, stream.size() - 1), last = stream.size() - 1 - length;
  if (!args.stride) {
    const std::int64_t all = (stream.size() - 1) / length;
    const std::int64_t count = args.tokens > 0 ? std::min(all, (args.tokens + length - 1) / length) : all;
    return {&stream, data::fixed_windows(stream, length, count), length, trained.tokenizer.lengths()};
  }
  base::check_range("--stride", static_cast<double>(*args.stride), {1, static_cast<double>(length), false, false});
  std::vector<std::int64_t> windows;
  for (std::int64_t first = 0; first < last; first += *args.stride) windows.push_back(first);
  windows.push_back(last);
  return {&stream, std::move(windows), length, trained.tokenizer.lengths(), true};
}

// What spaces separate in the text of the targets.
std::int64_t words_in(const model::EvaluationSet& set, const data::Tokenizer& tokenizer) {
  std::int64_t words = 0;
  bool between = true;
  std::vector<std::int64_t> tokens(set.length), target(set.length), starts(set.length);
  for (std::size_t window = 0; window < set.windows.size(); ++window) {
    set.copy(window, tokens, target, starts);
    std::erase(target, -1);
    for (const char c : tokenizer.decode(std::vector<data::Token>(target.begin(), target.end()))) {
      const bool space = c == ' ' || (c >= '\t' && c <= '\r');
      words += between && !space ? 1 : 0;
      between = space;
    }
    target.resize(set.length);
  }
  return words;
}

std::string json_of(const EvalArguments& args, const Trained& trained, const model::EvaluationSet& set,
                    const model::Evaluation& result) {
  const auto targets = static_cast<double>(result.targets), words = static_cast<double>(words_in(set, trained.tokenizer));
  const nlohmann::ordered_json object{{"checkpoint", trained.checkpoint.string()},
                                      {"data", args.data},
                                      {"loss", result.loss},
                                      {"bits_per_byte", result.bits_per_byte},
                                      {"byte_perplexity", std::exp2(result.bits_per_byte)},
                                      {"word_perplexity", std::exp(result.loss * targets / words)},
                                      {"perplexity", std::exp(result.loss)},
                                      {"accuracy", result.accuracy},
                                      {"targets", result.targets},
                                      {"tokens", set.stream->size()},
                                      {"windows", set.windows.size()},
                                      {"sequence", set.length},
                                      {"stride", args.stride.value_or(set.length)}};
  return object.dump() + "\n";
}

std::string table_of(const EvalArguments& args, const Trained& trained, const model::EvaluationSet& set,
                     const model::Evaluation& result) {
  const std::int64_t all = set.stream->size() - 1;  // nothing precedes the first
  return fmt::format("checkpoint     {}\n", trained.checkpoint.string()) +
         fmt::format("data           {}: {} windows of {} tokens\n", base::join(args.data), set.windows.size(), set.length) +
         fmt::format("loss           {:.6f} nats per token\n", result.loss) +
         fmt::format("perplexity     {:.4f} per token\n", std::exp(result.loss)) +
         (std::isnan(result.bits_per_byte) ? "" : fmt::format("bits per byte  {:.6f}\n", result.bits_per_byte)) +
         fmt::format("accuracy       {:.2f}%\n", 100 * result.accuracy) +
         fmt::format("targets        {} of {}{}\n", result.targets, all,
                     result.targets < all && args.tokens == 0 ? "; what is left between the windows counts with --stride" : "");
}

std::string eval_text(const EvalArguments& args, int threads, const Show& show) {
  const Trained trained = load_trained(args.run);
  data::CorpusSpec spec;
  spec.path = args.data;
  spec.field = args.field;
  spec.cache = data::default_cache();
  spec.threads = threads;
  const data::Stream stream = data::open_stream(spec, trained.tokenizer, show);
  const model::EvaluationSet set = windows_of(stream, trained, args);
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
  if (args.field != "text") throw Error(Fault::usage, "--field is for language models; leave it out for images");
  if (args.tokens > 0) throw Error(Fault::usage, "--tokens is for language models; leave it out for images");
  if (args.stride) throw Error(Fault::usage, "--stride is for language models; leave it out for images");
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

TaskArguments task_arguments(const EvalArguments& args) {
  if (args.data.size() != 1) throw Error(Fault::usage, "--data is one folder with the files of the tasks, or one file");
  TaskArguments tasks = args.tasks;
  tasks.run = args.run;
  tasks.asked.data = data::path_or_place(args.data[0], data::Content::benchmarks, "--data", data::default_cache());
  tasks.json = args.json;
  return tasks;
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
  const std::string text = !args.tasks.asked.tasks.empty() ? eval_tasks(task_arguments(args), threads, show)
                           : classifies_images(args.run)   ? eval_images(args, threads, show)
                                                           : eval_text(args, threads, show);
  line.finish();
  base::print(text);
  return 0;
}

void add_task_options(CLI::App& verb, TaskArguments& args) {
  CLI::Option* const tasks =
      verb.add_option("--tasks", args.asked.tasks,
                      fmt::format("Benchmarks in the folder --data; valid: {}; NAME:N asks with N examples, as in mmlu:5",
                                  base::join(data::task_names())))
          ->delimiter(',')
          ->type_name("NAMES");
  for (const char* const other : {"--field", "--tokens", "--stride"}) tasks->excludes(verb.get_option(other));
  verb.add_option("--shots", args.asked.shots, "Examples before each item of a benchmark (default: 0)")
      ->type_name("NUMBER")
      ->needs(tasks);
  verb.add_option("--limit", args.asked.limit,
                  "Ask only the first items of a benchmark, or of each of its subjects; 0 means all (default: 0)")
      ->type_name("NUMBER")
      ->needs(tasks);
  add_seed(verb, args.asked.seed, "Seed by which the examples are drawn (default: 0)").needs(tasks);
  verb.add_option("--out", args.out, "Folder for results.json and samples.jsonl; the same command again continues there")
      ->type_name("FOLDER")
      ->needs(tasks);
}

}  // namespace

void add_eval(CLI::App& app, Verb& chosen) {
  const auto args = std::make_shared<EvalArguments>();
  CLI::App& verb = *app.add_subcommand("eval", kEvalLine);
  verb.footer(
      "  cautious eval runs/first --data held_out.txt\n"
      "  cautious eval runs/fashion --data fashion-mnist\n"
      "  cautious eval runs/first --data shards/ more.jsonl --tokens 1000000 --json\n"
      "  cautious eval runs/first --tasks hellaswag,mmlu --shots 5 --data benchmarks/ --out scores/");
  verb.add_option("RUN", args->run, kModelHelp)->required()->type_name("");
  verb.add_option("--data", args->data, "Text, JSONL or token files, folders of these or of images, or the name of a known set")
      ->required()
      ->expected(1, 1000)
      ->type_name("FILE...");
  verb.add_option("--field", args->field, "Field of JSONL, or column of Parquet, with the text (default: text)")
      ->type_name("NAME");
  verb.add_option("--tokens", args->tokens,
                  "Evaluate about this many tokens of a text, evenly spaced; 0 means all (default: 0)")
      ->type_name("NUMBER");
  verb.add_option("--stride", args->stride,
                  "Begin windows of a text this many tokens apart; each counts what none before it has predicted; not with\n"
                  "--tokens (default: the model's context)")
      ->type_name("NUMBER")
      ->excludes(verb.get_option("--tokens"));
  add_task_options(verb, args->tasks);
  verb.add_option("--batch", args->batch, "Windows or images at a time; changes speed and memory only (default: 8)")
      ->type_name("NUMBER");
  verb.add_option("--threads", args->threads, "Threads; 0 means one per core (default: 0)")->type_name("NUMBER");
  verb.add_flag("--json", args->json, "Print one JSON object to standard output");
  verb.callback([args, &chosen] { chosen = [args] { return run(*args); }; });
}

}  // namespace cautious::cli
