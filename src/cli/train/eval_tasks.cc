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

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/json.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "data/documents.h"
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

struct Finished {
  std::map<std::size_t, data::TaskAnswer> answers = {};  // by item
  std::size_t cut = 0;                                   // of them, longer than the model's context
};

// The folder of --out: evaluation.json says what is measured, samples.jsonl grows by the items as they are finished.
class TaskJournal {
 public:
  TaskJournal(const fs::path& folder, const Json& identity) : folder_(folder), lock_(made(folder)) {
    const fs::path described = folder / "evaluation.json";
    if (const auto text = base::read_file_if_any(described)) {
      check_same(base::parse_json<Json>(*text), identity);
    } else {
      base::write_atomically(described, identity.dump(2) + "\n");
    }
    cut_fragment();
    samples_.emplace(folder / "samples.jsonl");
  }

  // What an earlier process has finished.
  std::map<std::string, Finished> finished(const std::vector<model::Benchmark>& benchmarks) const {
    std::map<std::string, Finished> all;
    const fs::path file = folder_ / "samples.jsonl";
    if (fs::file_size(file) == 0) return all;
    data::each_object(file, [&](const nlohmann::json& sample, const std::string& where) {
      const std::string& name = data::text_of(sample, "task", where);
      const auto own_task = std::ranges::find(benchmarks, name, [](const model::Benchmark& one) { return one.task.name; });
      const nlohmann::json &number = data::field_of(sample, "doc_id", where),
                           &sums = data::field_of(sample, "loglikelihoods", where);
      if (own_task == benchmarks.end() || !number.is_number_unsigned() ||
          number.get<std::size_t>() >= own_task->task.docs.size() || !sums.is_array() ||
          sums.size() != own_task->task.docs[number.get<std::size_t>()].continuations.size() ||
          !std::all_of(sums.begin(), sums.end(), [](const nlohmann::json& sum) { return sum.is_number(); })) {
        base::refuse_content(where, fmt::format("not a sample of this evaluation; remove {} to begin again", folder_.string()));
      }
      const auto item = number.get<std::size_t>();
      Finished& own = all[name];
      own.cut += sample.contains("cut") && own.answers.count(item) == 0 ? 1 : 0;
      own.answers.insert_or_assign(item, data::judge_answer(own_task->task.docs[item], sums.get<std::vector<double>>()));
    });
    return all;
  }

  void add(const Json& sample) { samples_->append(sample.dump() + "\n"); }
  void finish(const Json& results) { base::write_atomically(folder_ / "results.json", results.dump(2) + "\n"); }

 private:
  static const fs::path& made(const fs::path& folder) {
    std::error_code error;
    fs::create_directories(folder, error);
    if (error) base::fail_at(folder, "make the folder", error.message());
    return folder;
  }

  void check_same(const Json& earlier, const Json& identity) const {
    for (const auto& [key, value] : identity.items()) {
      if (earlier.is_object() && earlier.contains(key) && earlier[key] == value) continue;
      throw Error(Fault::usage, fmt::format("--out {} holds another evaluation: its {} differs; give another folder",
                                            base::shell_word(folder_.string()), key));
    }
  }

  // A process that was killed may have left the beginning of a line.
  void cut_fragment() const {
    const fs::path file = folder_ / "samples.jsonl";
    const auto text = base::read_file_if_any(file);
    if (!text || text->empty() || text->back() == '\n') return;
    base::cut_file(file, text->rfind('\n') + 1);
  }

  fs::path folder_;
  base::DirectoryLock lock_;
  std::optional<base::AppendFile> samples_ = {};
};

Json sample_of(const data::Task& task, std::size_t item, const std::vector<double>& sums, const data::TaskAnswer& answer,
               bool cut) {
  const data::TaskDoc& doc = task.docs[item];
  Json sample{{"task", task.name}, {"doc_id", item}};
  if (!doc.subset.empty()) sample["subset"] = doc.subset;
  sample["target"] = doc.gold.size() == 1 ? Json(doc.gold[0]) : Json(doc.gold);
  sample["loglikelihoods"] = sums;
  sample["acc"] = answer.acc ? 1 : 0;
  if (task.normalized) {
    sample["acc_norm"] = answer.acc_norm ? 1 : 0;
    sample["acc_bytes"] = answer.acc_bytes ? 1 : 0;
  }
  if (cut) sample["cut"] = true;
  return sample;
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
    finished_ = journal_->finished(benchmarks_);
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
    Finished& finished = finished_[task.name];
    const data::TaskAnswer answer = data::judge_answer(task.docs[item], sums);
    finished.answers.emplace(item, answer);
    finished.cut += cut ? 1 : 0;
    if (journal_) journal_->add(sample_of(task, item, sums, answer, cut));
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
  std::optional<TaskJournal> journal_ = {};
  std::map<std::string, Finished> finished_ = {};  // by task
  std::size_t items_ = 0, before_ = 0, done_ = 0;  // of all tasks; finished by an earlier process; finished
};

}  // namespace

std::string eval_tasks(const TaskArguments& args, int threads, const Show& show) {
  base::check_range("--shots", static_cast<double>(args.asked.shots), model::BenchmarkOptions::kShots);
  base::check_range("--limit", static_cast<double>(args.asked.limit), model::BenchmarkOptions::kLimit);
  return TaskEvaluation(args, threads, show).run();
}

}  // namespace cautious::cli
