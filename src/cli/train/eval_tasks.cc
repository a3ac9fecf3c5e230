// cautious eval --tasks: accuracy on benchmarks of multiple choice, item by item, so that a run that was stopped continues.
#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include <ATen/ops/linspace.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/parallel.h"
#include "base/sha256.h"
#include "base/text.h"
#include "cli/program.h"
#include "cli/train/train.h"
#include "data/documents.h"
#include "data/tasks/results.h"
#include "data/tasks/task.h"
#include "model/score.h"

namespace cautious::cli {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr std::size_t kItemsAtOnce = 512;  // in memory as tokens

// The numbers of a task's items that are scored: all, or the first `limit` of each subset.
std::vector<std::size_t> chosen_items(const data::Task& task, std::int64_t limit) {
  std::vector<std::size_t> all;
  for (const auto& [subset, docs] : task.subsets) {
    const auto count = limit > 0 ? std::min<std::ptrdiff_t>(limit, std::ssize(docs)) : std::ssize(docs);
    all.insert(all.end(), docs.begin(), docs.begin() + count);
  }
  return all;
}

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
Json identity_of(const TaskArguments& args, const std::vector<data::Task>& tasks, const Trained& trained) {
  Json files = Json::object();
  for (const data::Task& task : tasks) {
    for (const fs::path& file : task.files) files[file.string()] = base::sha256_of_file(file);
  }
  return {{"tasks", args.tasks},
          {"shots", args.shots},
          {"limit", args.limit},
          {"seed", args.seed},
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
      check_same(Json::parse(*text, nullptr, false), identity);
    } else {
      base::write_atomically(described, identity.dump(2) + "\n");
    }
    cut_fragment();
    samples_.emplace(folder / "samples.jsonl");
  }

  // What an earlier process has finished.
  std::map<std::string, Finished> finished(const std::vector<data::Task>& tasks) const {
    std::map<std::string, Finished> all;
    const fs::path file = folder_ / "samples.jsonl";
    if (fs::file_size(file) == 0) return all;
    data::each_object(file, [&](const nlohmann::json& sample, const std::string& where) {
      const std::string& name = data::text_of(sample, "task", where);
      const auto task = std::find_if(tasks.begin(), tasks.end(), [&](const data::Task& one) { return one.name == name; });
      const nlohmann::json &number = data::field_of(sample, "doc_id", where),
                           &sums = data::field_of(sample, "loglikelihoods", where);
      if (task == tasks.end() || !number.is_number_unsigned() || number.get<std::size_t>() >= task->docs.size() ||
          !sums.is_array() || sums.size() != task->docs[number.get<std::size_t>()].continuations.size() ||
          !std::all_of(sums.begin(), sums.end(), [](const nlohmann::json& sum) { return sum.is_number(); })) {
        base::refuse_content(where, fmt::format("not a sample of this evaluation; remove {} to begin again", folder_.string()));
      }
      const auto item = number.get<std::size_t>();
      Finished& own = all[name];
      own.cut += sample.contains("cut") && own.answers.count(item) == 0 ? 1 : 0;
      own.answers.insert_or_assign(item, data::judge_answer(task->docs[item], sums.get<std::vector<double>>()));
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
    fs::resize_file(file, text->rfind('\n') + 1);
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

std::vector<model::ScoreItem> tokens_of_items(const data::Task& task, std::span<const std::size_t> items,
                                              const TaskArguments& args, const data::Tokenizer& tokenizer, int threads) {
  std::vector<model::ScoreItem> tokens(items.size());
  base::parallel_for(items.size(), threads, [&](std::size_t i) {
    tokens[i] = data::tokens_of(task.docs[items[i]], data::context_of(task, items[i], args.shots, args.seed), tokenizer);
  });
  return tokens;
}

std::vector<data::Task> read_tasks(const TaskArguments& args) {
  std::vector<data::Task> tasks;
  for (const std::string& name : args.tasks) {
    if (std::count(args.tasks.begin(), args.tasks.end(), name) > 1) {
      throw Error(Fault::usage, fmt::format("--tasks has {} twice", base::in_quotes(name)));
    }
    tasks.push_back(data::read_task(name, args.data, args.shots > 0));
    for (const auto& [subset, docs] : tasks.back().subsets) {  // examples are missing before anything is computed
      data::context_of(tasks.back(), docs.front(), args.shots, args.seed);
    }
  }
  return tasks;
}

class TaskEvaluation {
 public:
  TaskEvaluation(const TaskArguments& args, int threads, const Show& show)
      : args_(args), threads_(threads), show_(show), tasks_(read_tasks(args)), trained_(load_trained(args.run)) {
    for (const data::Task& task : tasks_) items_ += chosen_items(task, args.limit).size();
    if (args.out.empty()) return;
    journal_.emplace(args.out, identity_of(args, tasks_, trained_));
    finished_ = journal_->finished(tasks_);
    for (const auto& [name, finished] : finished_) before_ += finished.answers.size();
    done_ = before_;
  }

  std::string run() try {
    std::vector<data::TaskResult> results;
    for (const data::Task& task : tasks_) {
      score_task(task);
      for (data::TaskResult& result : data::results_of(task, finished_[task.name].answers))
        results.push_back(std::move(result));
    }
    const Json json = json_of_results(results);
    if (journal_) journal_->finish(json);
    if (args_.json) return json.dump() + "\n";
    return fmt::format("checkpoint  {}\n", trained_.checkpoint.string()) + data::to_table(results, args_.shots) + notes();
  } catch (Interrupted& interrupted) {
    if (journal_) interrupted.left = fmt::format("{} of {} items are done; the same command continues", done_, items_);
    throw;
  }

 private:
  void score_task(const data::Task& task) {
    std::vector<std::size_t> items = chosen_items(task, args_.limit);
    std::erase_if(items, [&](std::size_t item) { return finished_[task.name].answers.contains(item); });
    for (std::size_t first = 0; first < items.size(); first += kItemsAtOnce) {
      const auto some = std::span(items).subspan(first, std::min(kItemsAtOnce, items.size() - first));
      const std::vector<model::ScoreItem> tokens = tokens_of_items(task, some, args_, trained_.tokenizer, threads_);
      model::score(*trained_.model, tokens, [&](std::size_t i, const std::vector<double>& sums) {
        keep(task, some[i], sums, model::is_cut(*trained_.model, tokens[i]));
      });
    }
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
    Json json = data::to_json(results, args_.shots);
    for (const data::Task& task : tasks_) json["cut"][task.name] = finished_.at(task.name).cut;
    json["config"] = {{"model", "cautious"},
                      {"model_args", trained_.checkpoint.string()},
                      {"limit", args_.limit > 0 ? Json(args_.limit) : Json(nullptr)},
                      {"fewshot_seed", args_.seed}};
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
  std::vector<data::Task> tasks_;
  Trained trained_;
  std::optional<TaskJournal> journal_ = {};
  std::map<std::string, Finished> finished_ = {};  // by task
  std::size_t items_ = 0, before_ = 0, done_ = 0;  // of all tasks; finished by an earlier process; finished
};

}  // namespace

std::string eval_tasks(const TaskArguments& args, int threads, const Show& show) {
  base::check_range("--shots", static_cast<double>(args.shots), {0, 1000, false, false});
  base::check_range("--limit", static_cast<double>(args.limit), {0, 1e15, false, false});
  return TaskEvaluation(args, threads, show).run();
}

}  // namespace cautious::cli
