// Studies that are judged by a benchmark instead of the validation loss.
#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "base/files.h"
#include "study/report.h"
#include "study_plan.h"
#include "study_sample.h"
#include "verdict_study.h"

namespace cautious::study {
namespace objective_test {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

const std::string kAsked = with(
    with(kSample, "seeds = [0, 1, 2]", "objective = \"eval/hellaswag/acc_norm\"\nseeds = [0, 1, 2]"), "data.path = \"gcide\"",
    "data.path = \"gcide\"\neval.tasks = [\"hellaswag\", \"mmlu:5\"]\neval.data = \"benchmarks\"");

// The sample study, with errors of ten times its losses, in percent, on a benchmark.
class BenchmarkStudy : public StudyPlan {
 protected:
  void SetUp() override {
    StudyPlan::SetUp();
    for (const PlannedRun& run : expand(read(kAsked))) {
      const auto folder = directory_ / "runs" / run.folder;
      std::filesystem::create_directories(folder);
      std::ofstream(folder / "summary.json") << fmt::format(
          R"({{"status":"done","val_loss":2.5,"val_accuracy":0.25,"decay_budget":{},"seconds":60,"parameters":300,"tokens":4000,)"
          R"("eval/hellaswag/acc":0.5,"eval/hellaswag/acc_stderr":0.01,"eval/hellaswag/acc_norm":{},"eval/mmlu/acc":0.25}})",
          sample_budget(run), 1 - sample_loss(run) / 10);
      write_sample_metrics(folder, 2.5);
    }
    results_ = read_results(directory_);
  }

  Results results_;
};

TEST_F(BenchmarkStudy, RunsAreJudgedByTheirErrors) {
  const FinishedRun& run = results_.runs.front();
  EXPECT_NEAR(run.loss, 10 * sample_loss(run.run), 1e-9);
  EXPECT_EQ(run.beside, (std::array<double, 2>{2.5, 0.25}));
  ASSERT_EQ(run.scores.size(), 3u);
  EXPECT_EQ(run.scores[0], (std::pair<std::string, double>{"hellaswag acc", 0.5}));
  EXPECT_EQ(run.scores[2].first, "mmlu acc");
}

TEST_F(BenchmarkStudy, TheVerdictAndTheReportSpeakOfIt) {
  const Verdict verdict = verdict_of(results_);
  EXPECT_EQ(verdict.measure.name, "error on hellaswag");
  EXPECT_TRUE(has(verdict.sentence, "points")) << verdict.sentence;
  EXPECT_FALSE(has(verdict.sentence, "nats")) << verdict.sentence;
  const std::string page = report_html(results_, verdict);
  for (const char* part : {"error on hellaswag", "Benchmarks, each arm at its point", "hellaswag acc_norm", "mmlu acc"}) {
    EXPECT_TRUE(has(page, part)) << part;
  }
  write_report(results_, verdict);
  const std::string table = base::read_file(directory_ / "tables" / "benchmarks.csv");
  EXPECT_TRUE(has(table, "arm,point,seeds,hellaswag acc,hellaswag acc_norm,mmlu acc")) << table;
  EXPECT_TRUE(has(table, "plain,weight_decay=0.1,3,0.5,0.8,0.25")) << table;
}

// A benchmark of few items makes ties: arms that answer equally well are not the same runs.
TEST_F(BenchmarkStudy, ATieIsNotTheSameRun) {
  for (FinishedRun& run : results_.runs) {
    if (run.run.arm == "cwd") run.loss = run.run.tuning ? run.loss : 20;
    if (run.run.arm == "plain" && !run.run.tuning) run.loss = 20;
  }
  const Verdict tied = verdict_of(results_);
  EXPECT_TRUE(has(tied.sentence, "No difference between cwd")) << tied.sentence;
  EXPECT_FALSE(has(tied.sentence, "Nothing to compare")) << tied.sentence;
  for (FinishedRun& run : results_.runs) run.loss = run.run.tuning ? run.loss : 20;  // nothing is known about chance
  const Verdict all = verdict_of(results_);
  EXPECT_TRUE(has(all.sentence, "cannot be told")) << all.sentence;
  EXPECT_TRUE(has(all.sentence, "same in every seed")) << all.sentence;
}

TEST_F(BenchmarkStudy, ThePlanIsWrittenAsItIsRead) {
  const Plan plan = read(kAsked);
  EXPECT_EQ(plan.objective, "eval/hellaswag/acc_norm");
  EXPECT_EQ(read(to_toml(plan)).objective, plan.objective);
}

TEST_F(BenchmarkStudy, WhatIsWrongIsALine) {
  const auto objective = [&](std::string_view other) { return refused(with(kAsked, "eval/hellaswag/acc_norm", other)); };
  EXPECT_EQ(objective("hellaswag"),
            "plan.toml:3: objective is 'hellaswag'; valid: eval/TASK/METRIC, as in eval/hellaswag/acc_norm");
  EXPECT_EQ(objective("eval/hellaswag"),
            "plan.toml:3: objective is 'eval/hellaswag'; valid: eval/TASK/METRIC, as in eval/hellaswag/acc_norm");
  EXPECT_EQ(objective("eval/hellaswag/f1"), "plan.toml:3: objective is 'eval/hellaswag/f1'; metrics: acc, acc_norm, acc_bytes");
  EXPECT_EQ(objective("eval/piqa/acc"),
            "plan.toml:3: objective is 'eval/piqa/acc'; the benchmarks of eval.tasks: hellaswag, mmlu");
  EXPECT_EQ(
      refused(with(kAsked, "eval.tasks = [\"hellaswag\", \"mmlu:5\"]\n", "")),
      "plan.toml:3: objective is 'eval/hellaswag/acc_norm'; the runs are asked no benchmark; set eval.tasks and eval.data in "
      "[base]");
}

// Runs without benchmarks are the ones that they were before there were any.
TEST_F(BenchmarkStudy, BenchmarksChangeTheRunsThatHaveThem) {
  const std::string before = expand(read(kSample)).front().hash;
  EXPECT_NE(expand(read(kAsked)).front().hash, before);
  EXPECT_EQ(expand(read(with(kSample, "data.path = \"gcide\"", "data.path = \"gcide\"\neval.limit = 7"))).front().hash, before);
}

}  // namespace objective_test
}  // namespace cautious::study
