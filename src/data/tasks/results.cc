#include "data/tasks/results.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace cautious::data {
namespace {

using Json = nlohmann::ordered_json;

constexpr int kVersion = 1;  // of the harness's tasks

double choice_characters(std::string_view text) {
  return static_cast<double>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

// The largest value's position is a right one.
template <class Value>
bool is_right(const TaskDoc& doc, const Value& value) {
  std::size_t best = 0;
  for (std::size_t i = 1; i < doc.continuations.size(); ++i) {
    if (value(i) > value(best)) best = i;
  }
  return std::find(doc.gold.begin(), doc.gold.end(), best) != doc.gold.end();
}

// Mean and standard error of `right` ones among `count`: the sample deviation has count - 1.
TaskMetric metric_of(std::string name, std::size_t right, std::size_t count) {
  const auto n = static_cast<double>(count);
  const double mean = static_cast<double>(right) / n;
  TaskMetric metric{std::move(name), mean, std::nullopt};
  if (count > 1) metric.error = std::sqrt(mean * (1 - mean) / (n - 1));
  return metric;
}

TaskResult result_of(const Task& task, std::int64_t shots, const std::vector<std::size_t>& docs,
                     const std::map<std::size_t, TaskAnswer>& answers) {
  TaskResult result{task.name, task.name, shots, docs.size(), 0, {}, {}};
  std::size_t right[3] = {0, 0, 0};
  for (const std::size_t doc : docs) {
    const auto answer = answers.find(doc);
    if (answer == answers.end()) continue;
    ++result.scored;
    right[0] += answer->second.acc ? 1 : 0;
    right[1] += answer->second.acc_norm ? 1 : 0;
    right[2] += answer->second.acc_bytes ? 1 : 0;
  }
  if (result.scored == 0) return result;
  result.metrics.push_back(metric_of("acc", right[0], result.scored));
  if (task.normalized) {
    result.metrics.push_back(metric_of("acc_norm", right[1], result.scored));
    result.metrics.push_back(metric_of("acc_bytes", right[2], result.scored));
  }
  return result;
}

// Means weighted by size, and the standard error from the pooled variance.
TaskMetric pooled(const std::vector<TaskResult>& parts, std::size_t metric) {
  double sum = 0, squares = 0, size = 0;
  bool known = true;
  for (const TaskResult& part : parts) {
    const TaskMetric& own = part.metrics[metric];
    const auto n = static_cast<double>(part.scored);
    sum += n * own.value;
    size += n;
    known = known && own.error;
    squares += (n - 1) * n * own.error.value_or(0) * own.error.value_or(0);
  }
  TaskMetric result{parts[0].metrics[metric].name, sum / size, std::nullopt};
  if (known) result.error = std::sqrt(squares / (size - static_cast<double>(parts.size())) / size);
  return result;
}

Json metrics_json(const TaskResult& result) {
  Json object{{"alias", result.alias}};
  for (const TaskMetric& metric : result.metrics) {
    object[metric.name + ",none"] = metric.value;
    object[metric.name + "_stderr,none"] = metric.error ? Json(*metric.error) : Json("N/A");
  }
  return object;
}

}  // namespace

TaskAnswer judge_answer(const TaskDoc& doc, std::span<const double> log_probabilities) {
  const auto choice = [&](std::size_t i) {
    const std::string_view text = doc.continuations[i];
    return text.starts_with(' ') ? text.substr(1) : text;
  };
  const auto per = [&](std::size_t i, double length) { return log_probabilities[i] / std::max(1.0, length); };
  return {is_right(doc, [&](std::size_t i) { return log_probabilities[i]; }),
          is_right(doc, [&](std::size_t i) { return per(i, choice_characters(choice(i))); }),
          is_right(doc, [&](std::size_t i) { return per(i, static_cast<double>(choice(i).size())); })};
}

std::vector<TaskResult> results_of(const Task& task, std::int64_t shots, const std::map<std::size_t, TaskAnswer>& answers) {
  std::vector<TaskResult> parts;
  for (const auto& [subset, docs] : task.subsets) {
    parts.push_back(result_of(task, shots, docs, answers));
    if (subset.empty()) continue;
    parts.back().name = task.name + "_" + subset;
    parts.back().alias = " - " + subset;
  }
  if (task.subsets.size() == 1 && task.subsets.begin()->first.empty()) return parts;
  std::erase_if(parts, [](const TaskResult& part) { return part.scored == 0; });
  TaskResult group{task.name, task.name, shots, task.docs.size(), answers.size(), {}, {}};
  for (const TaskResult& part : parts) group.subtasks.push_back(part.name);
  for (std::size_t i = 0; !parts.empty() && i < parts[0].metrics.size(); ++i) group.metrics.push_back(pooled(parts, i));
  parts.insert(parts.begin(), std::move(group));
  return parts;
}

Json to_json(const std::vector<TaskResult>& results) {
  Json all{{"results", Json::object()}};
  for (const TaskResult& result : results) {
    all["results"][result.name] = metrics_json(result);
    if (!result.subtasks.empty()) all["groups"][result.name] = metrics_json(result);
  }
  for (const char* const part : {"group_subtasks", "configs", "versions", "n-shot", "higher_is_better", "n-samples"}) {
    all[part] = Json::object();
  }
  for (const TaskResult& result : results) {
    const bool group = !result.subtasks.empty();
    if (group || !result.alias.starts_with(" ")) all["group_subtasks"][result.name] = result.subtasks;
    all["versions"][result.name] = kVersion;
    for (const TaskMetric& metric : result.metrics) all["higher_is_better"][result.name][metric.name] = true;
    if (group) continue;
    all["n-shot"][result.name] = result.shots;
    all["n-samples"][result.name] = {{"original", result.items}, {"effective", result.scored}};
    all["configs"][result.name] = {{"task", result.name}, {"output_type", "multiple_choice"}, {"num_fewshot", result.shots}};
  }
  return all;
}

std::string to_table(const std::vector<TaskResult>& results) {
  std::size_t width = 5;
  for (const TaskResult& result : results) width = std::max(width, result.alias.size());
  std::string text = fmt::format("|{:^{}}|Version|Filter|n-shot|  Metric |   |Value |   |Stderr|\n", "Tasks", width) +
                     fmt::format("|{:-<{}}|------:|------|-----:|---------|---|-----:|---|-----:|\n", "", width);
  for (const TaskResult& result : results) {
    const std::string count = result.subtasks.empty() ? std::to_string(result.shots) : "";
    for (std::size_t i = 0; i < result.metrics.size(); ++i) {
      const TaskMetric& metric = result.metrics[i];
      text += fmt::format("|{:<{}}|{:>7}|none  |{:>6}|{:<9}|\u2191  |{:.4f}|\u00b1  |{:>6}|\n", i == 0 ? result.alias : "",
                          width, i == 0 ? std::to_string(kVersion) : "", count, metric.name, metric.value,
                          metric.error ? fmt::format("{:.4f}", *metric.error) : "N/A");
    }
  }
  return text;
}

}  // namespace cautious::data
