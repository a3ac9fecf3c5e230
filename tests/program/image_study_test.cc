// A study of image classifiers: everything it says is about the top-1 error, in percentage points.
#include <array>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>

#include "run_fixture.h"
#include "study/progress.h"
#include "study/report.h"
#include "study_plan.h"
#include "study_sample.h"
#include "verdict_study.h"

namespace cautious::study {
namespace image_study_test {

bool has(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

// The sample study with ten times its losses as errors.
class ImageStudy : public RunFiles {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    store(directory_ / "plan.toml", with(with(kSample, "nano-100k", "resnet-20"), "gcide", "fashion-mnist"));
    for (const PlannedRun& run : expand(read_plan(directory_ / "plan.toml"))) {
      const auto folder = directory_ / "runs" / run.folder;
      std::filesystem::create_directories(folder);
      write(folder, 10 * sample_loss(run), sample_budget(run));
    }
    results_ = read_results(directory_);
  }

  static void write(const std::filesystem::path& folder, double error, double budget) {
    std::ofstream(folder / "summary.json") << fmt::format(
        R"({{"objective":{0},"status":"done","val_loss":0.75,"val_error":{0},"val_top5_error":1.5,"val_images":10000,)"
        R"("images":3000000,"parameters":271000,"decay_budget":{1},"seconds":60}})",
        error, budget);
    std::ofstream metrics(folder / "metrics.jsonl");
    for (int step = 100; step <= 1000; step += 100) {
      metrics
          << fmt::format(
                 R"({{"step":{},"images":{},"epoch":1,"loss":1.5,"val_loss":0.75,"val_error":{},"val_top5_error":1.5,"lr":0.1}})",
                 step, 64 * step, error + 1000.0 / step)
          << '\n';
    }
  }

  Results results_;
};

TEST_F(ImageStudy, RunsAreJudgedByTheirObjective) {
  const FinishedRun& run = results_.runs.front();
  EXPECT_EQ(run.loss, 10 * sample_loss(run.run));
  EXPECT_EQ(run.beside, (std::array<double, 2>{0.75, 1.5}));
  EXPECT_EQ(run.seen, 3e6);
  EXPECT_TRUE(has(ending_of(run), fmt::format("done, top-1 error {:.2f}, 1:00", run.loss))) << ending_of(run);
  EXPECT_TRUE(has(progress_rows({run}, {1}, 100, 10).front(), fmt::format(" {:.2f}  done", run.loss)));
}

TEST_F(ImageStudy, AMissingNumberIsRefused) {
  const auto folder = directory_ / "runs" / results_.runs.front().run.folder;
  store(folder / "summary.json", R"({"status":"done","decay_budget":1,"seconds":1,"val_loss":1,"val_top5_error":1})");
  EXPECT_TRUE(has(refused(Fault::data, [&] { read_run(folder, results_.runs.front().run); }), "'objective' is missing"));
}

TEST_F(ImageStudy, TheVerdictIsInPoints) {
  const std::string said = verdict_of(results_).sentence;
  EXPECT_TRUE(
      has(said, "cwd (weight_decay=1) has a lower top-1 error than plain (weight_decay=0.1), by 1.00 +/- 0.00 points ("))
      << said;
  EXPECT_TRUE(has(said, "with the lowest mean error on 2 tuning seeds")) << said;
}

// The target is 0.2 points: what is far from equal in nats is practically equal here.
TEST_F(ImageStudy, PracticallyEqual) {
  const Contrast contrast{.a = "cwd", .b = "plain", .best = true, .primary = true};
  Results near =
      study_of({{{"cwd", ""}, {20.00, 20.11, 20.05, 19.90}}, {{"plain", ""}, {20.02, 20.08, 20.06, 19.91}}}, {contrast});
  EXPECT_EQ(verdict_of(near).contrasts.front().outcome, Outcome::open);
  for (FinishedRun& run : near.runs) run.run.config.task = run::TaskKind::image;
  const Verdict verdict = verdict_of(near);
  EXPECT_EQ(verdict.contrasts.front().outcome, Outcome::equal);
  EXPECT_TRUE(has(verdict.sentence, "practically equal, within 0.2 points: -0.00 +/- 0.0")) << verdict.sentence;
  EXPECT_EQ(verdict.contrasts.front().power.needed, seeds_needed(0.2, 2, verdict.contrasts.front().layout.sd));
}

TEST_F(ImageStudy, TheReportSpeaksOfErrorsAlone) {
  const std::string html = content(write_report_of(directory_));
  for (const char* words :
       {">Error</h2>", "271 thousand parameters on 3 million images", "seeds for 0.2: how many find 0.2 points",
        "plain is judged at 0.1 (20.00); cwd is judged at 1 (19.00)", "top-5 error</th>", "Top-1 error over weight_decay"}) {
    EXPECT_TRUE(has(html, words)) << words;
  }
  for (const auto& folder : {directory_ / "figures", directory_ / "tables"}) {
    for (const std::string& name : names(folder)) {
      for (const char* words : {"nats per token", "bits per byte", "tokens", "of validation loss"}) {
        EXPECT_FALSE(has(content(folder / name), words)) << name << ": " << words;
      }
    }
  }
  EXPECT_TRUE(has(content(directory_ / "figures/contrasts.svg"), "difference of top-1 error (percentage points), with"));
  EXPECT_TRUE(has(content(directory_ / "figures/amounts.svg"), "top-1 error at the end (%)"));
  EXPECT_TRUE(names(directory_ / "figures").contains("validation_error.svg"));
  EXPECT_TRUE(has(content(directory_ / "tables/runs.csv"), "arm,point,seed,use,error,loss,top-5 error,decay budget,"));
  EXPECT_TRUE(has(content(directory_ / "tables/arms.md"), " | 3 | 20.00 | 0.50 | [18.76, 21.24] | 0.7500 | 1.50 | "));
}

TEST_F(ImageStudy, TasksAreNotMixed) {
  Plan plan = results_.plan;
  plan.arms[2].overrides.insert(plan.arms[2].overrides.end(), {{"model.preset", "nano-100k"}, {"data.path", "gcide"}});
  EXPECT_EQ(message([&] { expand(plan); }).substr(directory_.string().size()),
            "/plan.toml:15: task of arm 'none' is text, that of arm 'plain' is image: they cannot be compared; make two plans");
}

}  // namespace image_study_test
}  // namespace cautious::study
