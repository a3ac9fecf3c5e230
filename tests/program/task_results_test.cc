// From log-probabilities to scores: argmax, lengths in characters and bytes, standard errors against their definition, groups,
// and the harness's JSON.
#include "data/tasks/results.h"

#include <gtest/gtest.h>

#include <cmath>
#include <nlohmann/json.hpp>

namespace cautious::data {
namespace task_results_test {

using Sums = std::vector<double>;

TaskDoc doc(const std::vector<std::string>& choices, std::size_t gold, const std::string& subset = "") {
  return {"", {}, choices, {gold}, subset};
}

TEST(TaskResults, TheLargestSumAnswers) {
  const TaskDoc two = doc({" a", " b"}, 1);
  EXPECT_TRUE(judge_answer(two, Sums{-2, -1}).acc);
  EXPECT_FALSE(judge_answer(two, Sums{-1, -2}).acc);
  EXPECT_FALSE(judge_answer(two, Sums{-1, -1}).acc);  // of equal ones the first
  TaskDoc both = two;
  both.gold = {0, 1};
  EXPECT_TRUE(judge_answer(both, Sums{-1, -2}).acc);
}

TEST(TaskResults, LengthsAreWithoutTheSpaceInCharactersOrBytes) {
  // "éé" has 2 characters and 4 bytes.
  const TaskDoc mixed = doc({" \xc3\xa9\xc3\xa9", " abc"}, 0);
  const TaskAnswer answer = judge_answer(mixed, Sums{-4, -5});  // -2 and -1.67 per character, -1 and -1.67 per byte
  EXPECT_TRUE(answer.acc);
  EXPECT_FALSE(answer.acc_norm);
  EXPECT_TRUE(answer.acc_bytes);
  EXPECT_TRUE(judge_answer(doc({" ab", " abc"}, 1), Sums{-2, -2.9}).acc_norm);   // -1 and -0.97
  EXPECT_FALSE(judge_answer(doc({" ab", " abc"}, 1), Sums{-2, -3.1}).acc_norm);  // -1 and -1.03
  EXPECT_TRUE(judge_answer(doc({" ", " a"}, 1), Sums{-2, -1}).acc_norm);         // an empty choice counts as one character
}

Task task_of(const std::vector<std::string>& subsets, bool normalized) {
  Task task{.name = "quiz", .normalized = normalized};
  for (const std::string& subset : subsets) {
    task.subsets[subset].push_back(task.docs.size());
    task.docs.push_back(doc({" a", " b"}, 0, subset));
  }
  return task;
}

double error_of(const Sums& values) {
  double mean = 0, squares = 0;
  for (const double value : values) mean += value / double(values.size());
  for (const double value : values) squares += (value - mean) * (value - mean);
  return std::sqrt(squares / double(values.size() - 1)) / std::sqrt(double(values.size()));
}

TEST(TaskResults, MeansAndStandardErrors) {
  const Task task = task_of({"", "", "", "", ""}, true);
  const std::vector<TaskResult> results = results_of(
      task, 0, {{0, {true, true, false}}, {1, {true, false, false}}, {2, {false, false, true}}, {4, {true, true, false}}});
  ASSERT_EQ(results.size(), 1u);
  EXPECT_EQ(results[0].name, "quiz");
  EXPECT_EQ(results[0].items, 5u);
  EXPECT_EQ(results[0].scored, 4u);
  ASSERT_EQ(results[0].metrics.size(), 3u);
  EXPECT_EQ(results[0].metrics[0].value, 0.75);
  EXPECT_NEAR(*results[0].metrics[0].error, error_of({1, 1, 0, 1}), 1e-15);
  EXPECT_EQ(results[0].metrics[1].name, "acc_norm");
  EXPECT_EQ(results[0].metrics[1].value, 0.5);
  EXPECT_EQ(results[0].metrics[2].value, 0.25);
  const std::vector<TaskResult> single = results_of(task_of({""}, false), 0, {{0, {true, true, true}}});
  EXPECT_EQ(single[0].metrics.size(), 1u);
  EXPECT_FALSE(single[0].metrics[0].error);
}

TEST(TaskResults, SubsetsCountBySize) {
  const Task task = task_of({"x", "x", "y", "y", "y", "y", "z"}, false);
  const TaskAnswer right{true, true, true}, wrong{false, false, false};
  const std::vector<TaskResult> results =
      results_of(task, 0, {{0, right}, {1, wrong}, {2, right}, {3, right}, {4, wrong}, {5, right}});
  ASSERT_EQ(results.size(), 3u);  // nothing of z was scored
  EXPECT_EQ(results[0].name, "quiz");
  EXPECT_EQ(results[0].subtasks, (std::vector<std::string>{"quiz_x", "quiz_y"}));
  EXPECT_NEAR(results[0].metrics[0].value, 4.0 / 6, 1e-15);
  // The pooled variance: squared deviations from each subset's own mean, over 6 - 2.
  const double squares = 0.25 + 0.25 + 3 * 0.0625 + 0.5625;
  EXPECT_NEAR(*results[0].metrics[0].error, std::sqrt(squares / 4 / 6), 1e-15);
  EXPECT_EQ(results[2].alias, " - y");
  EXPECT_EQ(results[2].metrics[0].value, 0.75);
}

TEST(TaskResults, TheHarnessesLayout) {
  std::vector<TaskResult> results = results_of(task_of({"x", "x", "y"}, false), 5,
                                               {{0, {true, true, true}}, {1, {false, false, false}}, {2, {true, true, true}}});
  const nlohmann::ordered_json json = to_json(results);
  EXPECT_EQ(json["results"]["quiz_x"]["acc,none"], 0.5);
  EXPECT_EQ(json["results"]["quiz_x"]["acc_stderr,none"], 0.5);
  EXPECT_EQ(json["results"]["quiz_y"]["acc_stderr,none"], "N/A");
  EXPECT_EQ(json["results"]["quiz"]["alias"], "quiz");
  EXPECT_EQ(json["groups"]["quiz"], json["results"]["quiz"]);
  EXPECT_EQ(json["group_subtasks"], (nlohmann::ordered_json{{"quiz", {"quiz_x", "quiz_y"}}}));
  EXPECT_EQ(json["n-shot"], (nlohmann::ordered_json{{"quiz_x", 5}, {"quiz_y", 5}}));
  EXPECT_EQ(json["n-samples"]["quiz_x"], (nlohmann::ordered_json{{"original", 2}, {"effective", 2}}));
  EXPECT_EQ(json["higher_is_better"]["quiz"]["acc"], true);
  EXPECT_EQ(json["configs"]["quiz_y"]["num_fewshot"], 5);
  const std::string table = to_table(results);
  EXPECT_NE(table.find("|Tasks|Version|Filter|n-shot|  Metric |   |Value |   |Stderr|\n"), table.npos) << table;
  EXPECT_NE(table.find("| - x |      1|none  |     5|acc      |\u2191  |0.5000|\u00b1  |0.5000|\n"), table.npos) << table;
  EXPECT_NE(table.find("| - y |      1|none  |     5|acc      |\u2191  |1.0000|\u00b1  |   N/A|\n"), table.npos) << table;
}

}  // namespace task_results_test
}  // namespace cautious::data
