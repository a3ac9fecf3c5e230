// From log-probabilities to scores, as lm-evaluation-harness defines them: acc, acc_norm, standard errors, its JSON and table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "data/tasks/task.h"

namespace cautious::data {

// Whether the choice with the largest sum of log-probabilities is right: as it is, per character (code point) of the choice
// without the space before it, and per byte. Of equal ones the first counts.
struct TaskAnswer {
  bool acc, acc_norm, acc_bytes;
};
TaskAnswer judge_answer(const TaskDoc& doc, std::span<const double> log_probabilities);

struct TaskMetric {
  std::string name;  // "acc", "acc_norm", "acc_bytes"
  double value;
  std::optional<double> error;  // standard error of the mean; none of a single item
};

// A task, a subset of one ("mmlu_anatomy"), or the group of a task's subsets, in which each counts by its size.
struct TaskResult {
  std::string name, alias;
  std::int64_t shots;         // examples before each item
  std::size_t items, scored;  // in the files; of them scored
  std::vector<TaskMetric> metrics;
  std::vector<std::string> subtasks;  // of a group
};
// The group first, then its subsets. `answers` by number of the doc.
std::vector<TaskResult> results_of(const Task& task, std::int64_t shots, const std::map<std::size_t, TaskAnswer>& answers);

// The harness's layout, without "config": results, groups, group_subtasks, configs, versions, n-shot, higher_is_better,
// n-samples.
nlohmann::ordered_json to_json(const std::vector<TaskResult>& results);
std::string to_table(const std::vector<TaskResult>& results);

}  // namespace cautious::data
