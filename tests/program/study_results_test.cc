// What a study's directory says about its runs, and the losses by arm, point and seed.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "study/results.h"
#include "study_plan.h"

namespace cautious::study {
namespace study_results_test {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

// NaN is NaN.
void expect_numbers(const std::vector<double>& got, const std::vector<double>& wanted) {
  ASSERT_EQ(got.size(), wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    EXPECT_TRUE(got[i] == wanted[i] || (std::isnan(got[i]) && std::isnan(wanted[i]))) << i << ": " << got[i];
  }
}

class StudyResults : public RunFiles {
 protected:
  void SetUp() override {
    RunFiles::SetUp();
    store(directory_ / "plan.toml", with(kExample, "best = true\n", ""));  // every point on every seed
    std::filesystem::create_directories(directory_ / "runs");
    runs_ = expand(read_plan(directory_ / "plan.toml"));
  }

  std::filesystem::path folder(std::size_t run) const { return directory_ / "runs" / runs_[run].folder; }

  void write(std::size_t run, const std::string& file, const std::string& text) const {
    std::filesystem::create_directories(folder(run));
    store(folder(run) / file, text);
  }

  void finish(std::size_t run, const std::string& loss, const std::string& status = "done") const {
    write(run, "config.toml", "");
    write(run, "summary.json",
          fmt::format(R"({{"objective": {0}, "status": "{1}", "val_loss": {0}, "val_bpb": 2.5, "val_accuracy": 0.25, "steps": 3,
                          "decay_budget": 7.5, "seconds": 1.5, "seed": 0, "cpu": "x"}})",
                      loss, status));
  }

  std::string refused_summary(const std::string& text) const {
    write(0, "summary.json", text);
    std::string line = refused(Fault::data, [&] { read_results(directory_); });
    const std::string place = (folder(0) / "summary.json").string() + ": ";
    EXPECT_TRUE(line.starts_with(place)) << line;
    return line.substr(std::min(place.size(), line.size()));
  }

  std::vector<PlannedRun> runs_;
};

Overrides at(const char* weight_decay) { return {{"optimizer.weight_decay", weight_decay}}; }

TEST_F(StudyResults, NothingHasRun) {
  const Results results = read_results(directory_);
  EXPECT_EQ(results.directory, directory_);
  EXPECT_EQ(results.plan.title, "Does CWD help AdamW?");
  ASSERT_EQ(results.runs.size(), 18u);
  for (std::size_t i = 0; i < 18; ++i) {
    EXPECT_EQ(results.runs[i].run.folder, runs_[i].folder);
    EXPECT_EQ(results.runs[i].status, RunStatus::waiting);
    EXPECT_TRUE(std::isnan(results.runs[i].loss));
    EXPECT_EQ(results.runs[i].seconds, 0);
  }
  EXPECT_EQ(best_point(results, "cwd"), at("0.1"));
}

TEST_F(StudyResults, EveryStatus) {
  finish(0, "1.25");
  finish(1, "9.5", "diverged");
  finish(2, "3.5", "stopped");
  write(3, "config.toml", "");
  write(4, "failure.txt", "one\nerror: no memory\r\n\n");
  finish(5, "3.5", "stopped");
  write(5, "failure.txt", "after the stop");
  finish(6, "1.5");
  write(6, "failure.txt", "before it was done");
  finish(7, "null", "diverged");
  finish(8, "null");
  write(9, "failure.txt", "");
  const Results results = read_results(directory_);
  using enum RunStatus;
  const std::vector<RunStatus> wanted{done, diverged, waiting, running, failed, failed, done, diverged, done, failed, waiting};
  for (std::size_t i = 0; i < wanted.size(); ++i) EXPECT_EQ(results.runs[i].status, wanted[i]) << i;
  EXPECT_EQ(results.runs[0].loss, 1.25);
  EXPECT_EQ(results.runs[0].beside[0], 2.5);
  EXPECT_EQ(results.runs[0].beside[1], 0.25);
  EXPECT_EQ(results.runs[0].decay_budget, 7.5);
  EXPECT_EQ(results.runs[0].seconds, 1.5);
  for (const std::size_t i : {1, 2, 5, 7}) {
    EXPECT_TRUE(std::isnan(results.runs[i].loss)) << i;
    EXPECT_TRUE(std::isnan(results.runs[i].beside[0])) << i;
    EXPECT_TRUE(std::isnan(results.runs[i].beside[1])) << i;
    EXPECT_EQ(results.runs[i].seconds, 1.5) << i;
  }
  EXPECT_TRUE(std::isnan(results.runs[8].loss));
  EXPECT_EQ(results.runs[4].failure, "error: no memory");
  EXPECT_EQ(results.runs[5].failure, "after the stop");
  EXPECT_EQ(results.runs[6].failure, "");
  EXPECT_EQ(results.runs[9].failure, "");
}

// Of the example, run 6 seed + 2 is cwd at 0.1, the next one cwd at 1.
TEST_F(StudyResults, LossesByArmPointAndSeed) {
  finish(2, "2.0");
  finish(8, "9.0", "diverged");
  finish(14, "3.0");
  finish(3, "2.75");
  finish(9, "2.5");
  const Results results = read_results(directory_);
  expect_numbers(losses_of(results, "cwd", at("0.1")), {2, kNone, 3});
  expect_numbers(losses_of(results, "cwd", at("1")), {2.75, 2.5, kNone});
  expect_numbers(losses_of(results, "plain", at("1")), {kNone, kNone, kNone});
  EXPECT_EQ(points_of(results, "random"), (std::vector<Overrides>{at("0.1"), at("1")}));
  EXPECT_EQ(best_point(results, "cwd"), at("0.1"));
  Results failed = results;
  failed.runs[2].status = RunStatus::failed;
  expect_numbers(losses_of(failed, "cwd", at("0.1")), {kNone, kNone, 3});
  EXPECT_EQ(best_point(failed, "cwd"), at("1"));
  finish(15, "2.0");
  EXPECT_EQ(best_point(read_results(directory_), "cwd"), at("1"));
}

TEST_F(StudyResults, AnArmWithoutAGridHasOneEmptyPoint) {
  store(directory_ / "plan.toml", with(kExample, "optimizer.decay = \"decoupled\"", "grid = false"));
  const Results results = read_results(directory_);
  EXPECT_EQ(points_of(results, "plain"), std::vector<Overrides>{{}});
  EXPECT_EQ(best_point(results, "plain"), Overrides{});
  expect_numbers(losses_of(results, "plain", {}), {kNone, kNone, kNone});
}

TEST_F(StudyResults, UnknownArms) {
  const Results results = read_results(directory_);
  const std::string words = "no arm named 'cvd'; did you mean 'cwd'? choices: plain, cwd, random";
  EXPECT_EQ(message([&] { losses_of(results, "cvd", {}); }), words);
  EXPECT_EQ(message([&] { points_of(results, "cvd"); }), words);
  EXPECT_EQ(message([&] { best_point(results, "cvd"); }), words);
}

TEST_F(StudyResults, MalformedSummaries) {
  const std::string next = "; remove the file to repeat the run";
  for (const std::string text : {"", "{", "[1]", "nonsense", "\xff"})
    EXPECT_EQ(refused_summary(text), "not a JSON object" + next);
  EXPECT_EQ(refused_summary("{}"), "'status' is missing or not a string" + next);
  EXPECT_EQ(refused_summary(R"({"status": "fine\n"})"), "'status' is 'fine\\x0a'; valid: done, diverged, stopped" + next);
  EXPECT_EQ(refused_summary(R"({"status": "done", "decay_budget": 1, "seconds": "x"})"),
            "'seconds' is '\"x\"', not a number" + next);
  EXPECT_EQ(refused_summary(R"({"status": "done", "decay_budget": 1, "seconds": 1})"), "'val_loss' is missing" + next);
  const auto with_entry = [](const std::string& entry) {
    return R"({"status": "done", "decay_budget": 1, "seconds": 1, "val_loss": 2, "val_bpb": 1, "val_accuracy": 0, )" + entry +
           "}";
  };
  EXPECT_EQ(refused_summary(with_entry(R"("parameters": "7")")), "'parameters' is '\"7\"', not a number" + next);
  EXPECT_EQ(refused_summary(with_entry(R"("parameters": null)")), "'parameters' is null, not a count" + next);
  EXPECT_EQ(refused_summary(with_entry(R"("tokens": -1)")), "'tokens' is -1, not a count" + next);
  EXPECT_EQ(refused_summary(with_entry(R"("eval/arc/acc": [0.5])")), "'eval/arc/acc' is '[0.5]', not a number" + next);
  EXPECT_EQ(refused_summary(R"({"status": "done", "decay_budget": 1, "seconds": 1, "val_loss": -1e308})"),
            "'val_loss' is -1e+308; valid: finite numbers up to 1e+300" + next);
  for (const auto& [entry, why] :
       {std::pair{R"("objective": 1e301)", "'objective' is 1e+301; valid: finite numbers up to 1e+300"},
        {R"("val_targets": -3)", "'val_targets' is -3, not a count"},
        {R"("steps": "</script>")", "'steps' is '\"</script>\"', not a number"},
        {R"("val_accuracy": 2)", "'val_accuracy' is 2; valid: [0, 1]"},
        {R"("val_error": 101)", "'val_error' is 101; valid: [0, 100]"},
        {R"("seconds": -1)", "'seconds' is -1; valid: [0, inf)"},
        {R"("eval/arc/acc": 1.5)", "'eval/arc/acc' is 1.5; valid: [0, 1]"},
        {R"("eval/arc/acc_stderr": -0.5)", "'eval/arc/acc_stderr' is -0.5; valid: [0, inf)"}})
    EXPECT_EQ(refused_summary(with_entry(entry)), why + next);
}

TEST_F(StudyResults, DirectoriesThatAreNotStudies) {
  const auto line = [&](const std::filesystem::path& path) { return message([&] { read_results(path); }); };
  EXPECT_EQ(line("no/such"), "'no/such' is not a study: there is no such directory");
  std::filesystem::remove(directory_ / "runs");
  EXPECT_EQ(line(directory_), "'" + directory_.string() + "' is not a study: it has no folder runs");
  std::filesystem::remove(directory_ / "plan.toml");
  EXPECT_EQ(line(directory_), "'" + directory_.string() + "' is not a study: it has no plan.toml");
}

// Points are chosen on tuning seeds alone.
class Tuned : public StudyResults {
 protected:
  void SetUp() override {
    StudyResults::SetUp();
    store(directory_ / "plan.toml", std::string(kExample));
    runs_ = expand(read_plan(directory_ / "plan.toml"));
  }

  // Of an arm's run at a point, on a seed.
  std::size_t run(std::string_view arm, const Overrides& point, std::uint64_t seed) const {
    const auto found = std::ranges::find_if(
        runs_, [&](const PlannedRun& one) { return one.arm == arm && one.point == point && one.seed == seed; });
    return static_cast<std::size_t>(found - runs_.begin());
  }

  void tune(std::string_view arm, const char* weight_decay, const std::string& first, const std::string& second) const {
    finish(run(arm, at(weight_decay), 100000), first);
    finish(run(arm, at(weight_decay), 100001), second);
  }
};

TEST_F(Tuned, TheBestOnTheTuningSeedsIsJudgedAndTheOthersAreLeftOut) {
  tune("cwd", "0.1", "2", "3");
  finish(run("cwd", at("1"), 100000), "1");
  finish(run("cwd", at("0.1"), 0), "9");  // judged runs choose nothing
  EXPECT_FALSE(chosen_point(read_results(directory_), "cwd").decided);
  finish(run("cwd", at("1"), 100001), "3.5");
  const Results results = read_results(directory_);
  for (const std::string arm : {"cwd", "random"}) {
    const Choice choice = chosen_point(results, arm);
    EXPECT_TRUE(choice.decided);
    EXPECT_EQ(choice.point, at("1"));
    EXPECT_EQ(choice.edges, std::vector<std::string>{"optimizer.weight_decay"});
    EXPECT_EQ(best_point(results, arm), at("1"));
  }
  EXPECT_FALSE(chosen_point(results, "plain").decided);
  expect_numbers(tuning_losses_of(results, "cwd", at("0.1")), {2, 3});
  for (const FinishedRun& one : results.runs) {
    const bool mine = one.run.candidate && one.run.arm != "plain" && one.run.point == at("0.1");
    const bool ran = one.run.arm == "cwd" && one.run.seed == 0;
    EXPECT_EQ(one.status == RunStatus::left_out, mine && !ran) << one.run.folder;
  }
}

TEST_F(Tuned, APointThatDivergesIsNotChosen) {
  tune("plain", "0.1", "2", "3");
  finish(run("plain", at("1"), 100000), "1");
  finish(run("plain", at("1"), 100001), "null", "diverged");
  const Choice choice = chosen_point(read_results(directory_), "plain");
  EXPECT_TRUE(choice.decided);
  EXPECT_EQ(choice.point, at("0.1"));
}

// Nothing lies beyond no decay, so it is not an edge; the middle of three is none either.
TEST_F(Tuned, EdgesOfTheGrid) {
  store(directory_ / "plan.toml", with(kExample, "[0.1, 1.0]", "[0, 0.1, 1.0]"));
  runs_ = expand(read_plan(directory_ / "plan.toml"));
  for (const auto& [best, edge] : {std::pair{"0", false}, {"0.1", false}, {"1", true}}) {
    for (const char* value : {"0", "0.1", "1"}) tune("plain", value, std::string_view(value) == best ? "1" : "2", "2");
    const Choice choice = chosen_point(read_results(directory_), "plain");
    EXPECT_EQ(choice.point, at(best));
    EXPECT_EQ(!choice.edges.empty(), edge) << best;
  }
}

}  // namespace study_results_test
}  // namespace cautious::study
