// cautious eval --tasks: accuracy on benchmarks of multiple choice, item by item, so that a run that was stopped continues.
#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <optional>

#include <ATen/ops/linspace.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/sha256.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "data/tasks/journal.h"
#include "data/tasks/results.h"
#include "model/benchmark.h"

namespace cautious::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

// Over the names and shapes of all parameters and up to 4096 values of each: other weights have another one.
std::string weights_fingerprint(const model::Transformer& model) {
  base::Sha256 sum;
  for (const auto& item : model.named_parameters()) {
    const at::Tensor values = item.value().detach().reshape({-1});
    const std::int64_t count = std::min<std::int64_t>(values.numel(), 4096);
    const at::Tensor some = values.index_select(0, at::linspace(0, values.numel() - 1, count, at::kDouble).to(at::kLong));
    sum.add(fmt::format("{} {}\n", item.key(), fmt::join(item.value().sizes(), " ")));
    sum.add(std::as_bytes(std::span(static_cast<const char*>(some.data_ptr()), some.nbytes())));
  }
  return sum.hex();
}

// What decides the scores.
Json identity_of(const model::BenchmarkOptions& asked, const std::vector<model::Benchmark>& benchmarks,
                 const Trained& trained) {
  Json files = Json::object();
  for (const model::Benchmark& benchmark : benchmarks) {
    for (const fs::path& file : benchmark.task.files) files[file.string()] = base::sha256_of_file(file);
  }
  return {{"tasks", asked.tasks},
          {"shots", asked.shots},
          {"limit", asked.limit},
          {"seed", asked.seed},
          {"data", files},
          {"tokenizer", trained.tokenizer.fingerprint()},
          {"weights", weights_fingerprint(*trained.model)}};
}

class TaskEvaluation {
 public:
  TaskEvaluation(const TaskArguments& args, int threads, const Show& show)
      : args_(args),
        threads_(threads),
        show_(show),
        benchmarks_(read_benchmarks(args.asked)),
        trained_(load_trained(args.run)) {
    for (const model::Benchmark& benchmark : benchmarks_) items_ += benchmark.items.size();
    if (args.out.empty()) return;
    journal_.emplace(args.out, identity_of(args.asked, benchmarks_, trained_));
    std::vector<const data::Task*> tasks;
    for (const model::Benchmark& benchmark : benchmarks_) tasks.push_back(&benchmark.task);
    finished_ = journal_->finished(tasks);
    for (const auto& [name, finished] : finished_) before_ += finished.answers.size();
    done_ = before_;
  }

  std::string run() try {
    std::vector<data::TaskResult> results;
    for (const model::Benchmark& benchmark : benchmarks_) {
      ask_open(benchmark);
      const auto& answers = finished_[benchmark.task.name].answers;
      std::ranges::move(data::results_of(benchmark.task, benchmark.shots, answers), std::back_inserter(results));
    }
    const Json json = json_of_results(results);
    if (journal_) journal_->finish(json);
    if (args_.json) return json.dump() + "\n";
    return fmt::format("checkpoint  {}\n", trained_.checkpoint.string()) + data::to_table(results) + notes();
  } catch (Interrupted& interrupted) {
    if (journal_) interrupted.left = fmt::format("{} of {} items are done; the same command continues", done_, items_);
    throw;
  }

 private:
  // The items that no earlier process has finished.
  void ask_open(const model::Benchmark& benchmark) {
    std::vector<std::size_t> items = benchmark.items;
    std::erase_if(items, [&](std::size_t item) { return finished_[benchmark.task.name].answers.contains(item); });
    model::ask(*trained_.model, trained_.tokenizer, benchmark, items, args_.asked.seed, threads_,
               [&](std::size_t item, const std::vector<double>& sums, bool cut) { keep(benchmark.task, item, sums, cut); });
  }

  void keep(const data::Task& task, std::size_t item, const std::vector<double>& sums, bool cut) {
    data::FinishedItems& finished = finished_[task.name];
    const data::TaskAnswer answer = data::judge_answer(task.docs[item], sums);
    finished.answers.emplace(item, answer);
    finished.cut += cut ? 1 : 0;
    if (journal_) journal_->add(task, item, sums, answer, cut);
    ++done_;
    show_(fmt::format("{} {}/{}", task.name, done_, items_),
          static_cast<double>(done_ - before_) / static_cast<double>(items_ - before_));
  }

  Json json_of_results(const std::vector<data::TaskResult>& results) const {
    Json json = data::to_json(results);
    for (const auto& [name, finished] : finished_) json["cut"][name] = finished.cut;
    json["config"] = {{"model", "cautious"},
                      {"model_args", trained_.checkpoint.string()},
                      {"limit", args_.asked.limit > 0 ? Json(args_.asked.limit) : Json(nullptr)},
                      {"fewshot_seed", args_.asked.seed}};
    return json;
  }

  std::string notes() const {
    std::string text;
    for (const auto& [name, finished] : finished_) {
      if (finished.cut == 0) continue;
      text += fmt::format("{}: {} of {} items are longer than the model's context of {} tokens and lost their beginning\n",
                          name, finished.cut, finished.answers.size(), trained_.model->config().context);
    }
    return text;
  }

  const TaskArguments& args_;
  int threads_;
  const Show& show_;
  std::vector<model::Benchmark> benchmarks_;
  Trained trained_;
  std::optional<data::TaskJournal> journal_ = {};
  std::map<std::string, data::FinishedItems> finished_ = {};  // by task
  std::size_t items_ = 0, before_ = 0, done_ = 0;             // of all tasks; finished by an earlier process; finished
};

}  // namespace

std::string eval_tasks(const TaskArguments& args, int threads, const Show& show) {
  base::check_range("--shots", static_cast<double>(args.asked.shots), model::BenchmarkOptions::kShots);
  base::check_range("--limit", static_cast<double>(args.asked.limit), model::BenchmarkOptions::kLimit);
  return TaskEvaluation(args, threads, show).run();
}

}  // namespace cautious::cli
