// A command of the user's as a study's program: what it is told, and how its number is read.
#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <thread>

#include "external_study.h"
#include "study/runner.h"

namespace cautious::study {
namespace external_command_test {

// The script of the test, in place of a training program.
class ExternalCommand : public ExternalFiles {
 protected:
  StudyEnd run(const std::string& script, int jobs = 2) const {
    store(directory_ / "train.sh", script);
    Comparison two = comparison();
    two.seeds = 2;
    two.lambdas = {0.5};
    const Plan plan = external_plan(two);
    const std::string command = "cd " + directory_.string() + " && sh train.sh";
    return run_study(plan, expand(plan), study(), {.program = "", .command = command, .jobs = jobs, .stop = {}, .watch = {}});
  }

  static std::map<RunStatus, std::size_t> counts(const StudyEnd& end) {
    std::map<RunStatus, std::size_t> counts;
    for (const FinishedRun& run : end.results.runs) ++counts[run.status];
    return counts;
  }
};

TEST_F(ExternalCommand, IsToldInItsEnvironmentAndPrintsANumber) {
  const StudyEnd end =
      run("echo \"$CAUTIOUS_ARM $CAUTIOUS_LR $CAUTIOUS_DECAY $CAUTIOUS_WEIGHT_DECAY $CAUTIOUS_SEED\" >> calls\n"
          "echo \"$CAUTIOUS_RECIPE\" > \"$CAUTIOUS_OUT/mine\"\n"
          "echo words; echo \"1.$CAUTIOUS_SEED\"\n");
  EXPECT_TRUE(end.finished);
  std::istringstream calls(content(directory_ / "calls"));
  std::set<std::string> lines;
  for (std::string line; std::getline(calls, line);) EXPECT_TRUE(lines.insert(line).second) << line;
  EXPECT_TRUE(lines.contains("plain 0.001 decoupled 0 100000"));
  EXPECT_TRUE(lines.contains("cwd 0.001 cautious 1.25 100001"));
  EXPECT_TRUE(lines.contains("none 0.001 none 0 1"));
  for (const FinishedRun& run : end.results.runs) {
    if (run.status == RunStatus::left_out) continue;
    EXPECT_EQ(run.status, RunStatus::done) << run.run.folder << " " << run.failure;
    EXPECT_EQ(run.loss, std::stod("1." + std::to_string(run.run.seed)));
    EXPECT_GE(run.seconds, 0);
    EXPECT_NE(content(study() / "runs" / run.run.folder / "mine"), "");
  }
}

TEST_F(ExternalCommand, ItsFileComesFirst) {
  const StudyEnd end = run("echo '{\"loss\": 3, \"decay_budget\": 7, \"more\": []}' > \"$CAUTIOUS_OUT/result.json\"; echo 5\n");
  for (const FinishedRun& run : end.results.runs) {
    if (run.status == RunStatus::left_out) continue;
    EXPECT_EQ(run.loss, 3);
    EXPECT_EQ(run.decay_budget, 7);
  }
}

TEST_F(ExternalCommand, FailuresSayWhy) {
  const std::map<std::string, std::string> failures{
      {"echo almost; exit 3\n", "almost"},
      {"exit 3\n", "the command ended with code 3 and no result"},
      {"echo 2.5 nats\n", "its last line is '2.5 nats', not a number; print the loss last, or write it to "},
      {"echo '[]' > $CAUTIOUS_OUT/result.json\n", "not a JSON object; write {\"loss\": NUMBER}, or null for NaN"},
      {"echo '{\"los\": 1}' > $CAUTIOUS_OUT/result.json\n", "there is no 'loss'"},
      {"echo '{\"loss\": \"1\"}' > $CAUTIOUS_OUT/result.json\n", "'loss' is not a number"}};
  for (const auto& [script, why] : failures) {
    const StudyEnd end = run("[ $CAUTIOUS_ARM = plain ] && { " + script + "exit\n}\necho 2\n");
    const auto plain = std::ranges::find(end.results.runs, "plain", [](const FinishedRun& r) { return r.run.arm; });
    EXPECT_EQ(plain->status, RunStatus::failed) << script;
    EXPECT_NE(plain->failure.find(why), std::string::npos) << plain->failure;
    EXPECT_GT(counts(end)[RunStatus::done], 0u);
    std::filesystem::remove_all(study());
  }
}

TEST_F(ExternalCommand, NanOrTooLargeIsDivergedAndNotRepeated) {
  const std::string script =
      "echo x >> calls\n[ $CAUTIOUS_WEIGHT_DECAY = 1.25 ] && { [ $CAUTIOUS_SEED = 100000 ] && echo nan || echo 1e305; exit; }\n"
      "echo 2\n";
  const StudyEnd end = run(script);
  EXPECT_EQ(counts(end)[RunStatus::diverged], 2u);
  const std::string calls = content(directory_ / "calls");
  run(script);
  EXPECT_EQ(content(directory_ / "calls"), calls);
}

// The whole of it: the shell and what it has started.
TEST_F(ExternalCommand, StoppedItIsMadeAgain) {
  store(directory_ / "train.sh", "echo $$ > child; sleep 60 & wait; echo 1\n");
  const Plan plan = external_plan(comparison());
  const auto begun = [&] { return !content(directory_ / "child").empty(); };
  const StudyEnd end = run_study(
      plan, expand(plan), study(),
      {.program = "", .command = "cd " + directory_.string() + "; sh train.sh; true", .jobs = 1, .stop = begun, .watch = {}});
  EXPECT_FALSE(end.finished);
  for (const FinishedRun& run : end.results.runs) EXPECT_EQ(run.status, RunStatus::waiting) << run.failure;
  const std::filesystem::path stat = "/proc/" + std::to_string(std::stoi(content(directory_ / "child"))) + "/stat";
  const auto lives = [&] { return std::filesystem::exists(stat) && content(stat).find(") Z ") == std::string::npos; };
  for (int i = 0; i < 1000 && lives(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_FALSE(lives()) << "it should have been told to end";
}

}  // namespace external_command_test
}  // namespace cautious::study
