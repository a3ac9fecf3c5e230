// The folder of `cautious eval --out`: evaluation.json says what is measured, samples.jsonl grows by the items as they are
// finished, results.json ends it. Another process with the same folder continues where one was stopped.
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "base/files.h"
#include "data/tasks/results.h"
#include "data/tasks/task.h"

namespace cautious::data {

// Of one task.
struct FinishedItems {
  std::map<std::size_t, TaskAnswer> answers = {};  // by item
  std::size_t cut = 0;                             // of them, longer than the model's context
};

class TaskJournal {
 public:
  // `identity`: what decides the scores. A folder that holds another evaluation is an Error(Fault::usage).
  TaskJournal(const std::filesystem::path& folder, const nlohmann::ordered_json& identity);

  // What earlier processes have finished, by task. A sample that is none of these tasks' is an Error(Fault::data).
  std::map<std::string, FinishedItems> finished(const std::vector<const Task*>& tasks) const;

  void add(const Task& task, std::size_t item, std::span<const double> sums, const TaskAnswer& answer, bool cut);
  void finish(const nlohmann::ordered_json& results) const;

 private:
  std::filesystem::path folder_;
  base::DirectoryLock lock_;
  base::AppendFile samples_;
};

}  // namespace cautious::data
