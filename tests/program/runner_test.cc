// Running a plan, with a script in place of cautious-train: what is started when and with what, and what is recorded.
#include <atomic>
#include <chrono>
#include <thread>

#include <fmt/format.h>

#include "fake_train.h"

namespace cautious::study {
namespace runner_test {

class StudyRunner : public FakeStudy {};

TEST_F(StudyRunner, EveryRunOnceAndNoneAgain) {
  const Plan plan = plan_of({"a", "b"}, {0, 1});
  EXPECT_TRUE(run(plan));
  EXPECT_EQ(names(study()), (std::set<std::string>{"claims", "configs", "log.txt", "logs", "plan.toml", "runs"}));
  EXPECT_EQ(content(study() / "plan.toml"), to_toml(plan));
  ASSERT_EQ(calls().size(), 4u);
  const Results results = read_results(study());
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(calls()[i].name, results.runs[i].run.folder);
    EXPECT_EQ(calls()[i].how, "new");
    EXPECT_EQ(calls()[i].environment, "11passive");
    EXPECT_EQ(results.runs[i].status, RunStatus::done);
    EXPECT_EQ(results.runs[i].loss, 2.5);
    EXPECT_EQ(content(folder(results.runs[i]) / "config.toml"), to_toml(results.runs[i].run.config));
  }
  EXPECT_TRUE(run(plan, 2));
  EXPECT_EQ(calls().size(), 4u);
}

// First the points on the tuning seed, then the arms on theirs, each at its point; no decay is one run for all.
TEST_F(StudyRunner, PointsAreChosenBeforeTheArmsAreJudged) {
  Plan plan = plan_of({}, {0, 1});
  plan.tune_seeds = {7};
  plan.grid = {{"optimizer.weight_decay", {"0", "0.5", "1"}}};
  plan.arms = {{"none", {{"optimizer.decay", "none"}}, "", "", false},
               {"plain", {}, "", ""},
               {"cwd", {{"optimizer.decay", "cautious"}}, "", "", true, {{"optimizer.weight_decay", {"0", "1"}}}},
               {"gradient", {{"optimizer.decay", "gradient"}}, "", "", true, {}, "plain"}};
  plan.contrasts = {{"cwd", "plain", true}};
  const RunnerOptions options{.program = program(), .jobs = 8, .stop = {}, .watch = {}};
  const StudyEnd end = run_study(plan, expand(plan), study(), options);
  EXPECT_TRUE(run(plan, 8));
  std::set<std::string> begun;
  for (const Call& call : calls()) begun.insert(call.name.substr(0, call.name.rfind('_')));
  EXPECT_EQ(begun, (std::set<std::string>{"plain_weight_decay=0_seed=7", "plain_weight_decay=0.5_seed=7",
                                          "plain_weight_decay=1_seed=7", "cwd_weight_decay=1_seed=7", "none_seed=0",
                                          "none_seed=1", "plain_weight_decay=0.5_seed=0", "plain_weight_decay=0.5_seed=1",
                                          "gradient_weight_decay=0.5_seed=0", "gradient_weight_decay=0.5_seed=1"}));
  EXPECT_EQ(calls().size(), begun.size());
  const Results results = read_results(study());
  EXPECT_EQ(losses_of(results, "gradient", chosen_point(results, "gradient").point), (std::vector<double>{2, 2}));
  EXPECT_EQ(losses_of(results, "cwd", {{"optimizer.weight_decay", "0"}}), (std::vector<double>{2.5, 2.5}));
  for (std::size_t i = 0; i < results.runs.size(); ++i) {
    const FinishedRun& one = results.runs[i];
    EXPECT_TRUE(one.status == RunStatus::done || one.status == RunStatus::left_out) << one.run.folder;
    EXPECT_EQ(end.results.runs[i].status, one.status) << one.run.folder;
  }
}

TEST_F(StudyRunner, WithoutItsTuningAnArmIsNotJudged) {
  Plan plan = plan_of({"bad"});
  plan.arms[0].overrides.clear();
  plan.tune_seeds = {7};
  plan.grid = {{"optimizer.weight_decay", {"0.5", "1"}}};
  EXPECT_TRUE(run(plan));
  EXPECT_EQ(calls().size(), 2u);
  EXPECT_NE(by_arm()["bad"].failure.find("its point cannot be chosen: bad_weight_decay=0.5_seed=7"), std::string::npos);
  store(directory_ / "fixed", "");
  EXPECT_TRUE(run(plan));
  EXPECT_EQ(by_arm()["bad"].status, RunStatus::left_out);
  EXPECT_EQ(calls().size(), 2u + 3);
}

TEST_F(StudyRunner, AFailureIsRecordedAndTriedAgain) {
  const Plan plan = with_control(plan_of({"bad", "b"}), "bad");
  EXPECT_TRUE(run(plan));
  auto runs = by_arm();
  EXPECT_EQ(runs["bad"].status, RunStatus::failed);
  EXPECT_EQ(runs["bad"].failure, "no memory");
  EXPECT_EQ(runs["b"].status, RunStatus::done);
  EXPECT_EQ(runs["control"].status, RunStatus::failed);
  EXPECT_EQ(runs["control"].failure, "its reference run, " + runs["bad"].run.folder + ", failed");
  EXPECT_EQ(content(study() / "logs" / (runs["bad"].run.folder + ".txt")), "some words\ncautious: no memory\n");
  EXPECT_EQ(calls().size(), 2u);

  store(directory_ / "fixed", "");
  EXPECT_TRUE(run(plan));
  EXPECT_EQ(calls().size(), 4u);
  for (const auto& [arm, one] : by_arm()) {
    EXPECT_EQ(one.status, RunStatus::done) << arm;
    EXPECT_FALSE(std::filesystem::exists(folder(one) / "failure.txt"));
  }
}

TEST_F(StudyRunner, ARunThatIsKilledFails) {
  EXPECT_TRUE(run(plan_of({"gone"})));
  EXPECT_EQ(by_arm()["gone"].failure, "train was ended by signal 9");
}

TEST_F(StudyRunner, AProgramThatCannotBeExecutedFails) {
  store(program(), "\x7f no program");
  EXPECT_TRUE(run(plan_of({"a"})));
  EXPECT_EQ(by_arm()["a"].failure, "cannot start " + program().string() + ": Exec format error");
}

TEST_F(StudyRunner, ADivergedRunIsAResult) {
  const Plan plan = with_control(plan_of({"wild"}), "wild");
  EXPECT_TRUE(run(plan));
  EXPECT_TRUE(run(plan));
  EXPECT_EQ(calls().size(), 1u);
  EXPECT_EQ(by_arm()["wild"].status, RunStatus::diverged);
  EXPECT_EQ(by_arm()["control"].status, RunStatus::failed);
  EXPECT_NE(by_arm()["control"].failure.find("diverged"), std::string::npos);
}

TEST_F(StudyRunner, AControlWaitsForItsReferenceRun) {
  Plan plan = with_control(plan_of({"a"}, {0, 1}), "a");
  plan.arms.push_back({"budget", {}, "", "a"});
  EXPECT_TRUE(run(plan, 8));
  std::map<std::string, std::int64_t> begin, end;
  for (const Call& call : calls("begin")) begin[call.name] = call.time;
  for (const Call& call : calls("end")) end[call.name] = call.time;
  const Results results = read_results(study());
  ASSERT_EQ(results.runs.size(), 6u);
  for (const FinishedRun& one : results.runs) {
    const run::RunConfig config = run::read_config({.files = {folder(one) / "config.toml"}, .preset = "", .overrides = {}});
    if (one.run.follows < 0) {
      EXPECT_TRUE(config.log.decay_trace);
      continue;
    }
    const FinishedRun& reference = results.runs[static_cast<std::size_t>(one.run.follows)];
    EXPECT_EQ(reference.run.seed, one.run.seed);
    EXPECT_GE(begin[one.run.folder], end[reference.run.folder]);
    const std::string path = std::filesystem::absolute(folder(reference)).string();
    EXPECT_EQ(config.optimizer.density_from, one.run.arm == "control" ? path : "");
    EXPECT_EQ(config.optimizer.budget_from, one.run.arm == "budget" ? path : "");
  }
}

TEST_F(StudyRunner, AsManyAtOnceAsJobs) {
  EXPECT_TRUE(run(plan_of({"meet1", "meet2", "meet3", "a", "b", "c"}), 3));
  std::vector<std::pair<std::int64_t, int>> events;
  for (const Call& call : calls("begin")) events.emplace_back(call.time, 1);
  for (const Call& call : calls("end")) events.emplace_back(call.time, -1);
  std::ranges::sort(events);
  int now = 0, most = 0;
  for (const auto& [time, change] : events) most = std::max(most, now += change);
  EXPECT_EQ(events.size(), 12u);
  EXPECT_EQ(most, 3);
}

TEST_F(StudyRunner, StoppedRunsSaveAndContinue) {
  const Plan plan = plan_of({"long", "longer", "c"});
  const auto both_listen = [&] { return content(directory_ / "ready") == "ready\nready\n"; };
  EXPECT_FALSE(run(plan, study(), {.program = program(), .jobs = 2, .stop = both_listen, .watch = {}}));
  EXPECT_EQ(calls().size(), 2u);
  for (const auto& [arm, one] : by_arm()) EXPECT_EQ(one.status, RunStatus::waiting) << arm << one.failure;
  EXPECT_NE(content(study() / "log.txt").find("interrupted"), std::string::npos);

  EXPECT_TRUE(run(plan, 2));
  std::map<std::string, std::string> how;
  for (const Call& call : calls()) how[call.name.substr(0, call.name.find('_'))] = call.how;
  EXPECT_EQ(how, (std::map<std::string, std::string>{{"long", "resumed"}, {"longer", "resumed"}, {"c", "new"}}));
  for (const auto& [arm, one] : by_arm()) EXPECT_EQ(one.status, RunStatus::done) << arm;
}

TEST_F(StudyRunner, StoppedBeforeItBegan) {
  EXPECT_FALSE(run(plan_of({"a"}), study(), {.program = program(), .jobs = 1, .stop = [] { return true; }, .watch = {}}));
  EXPECT_TRUE(calls().empty());
}

TEST_F(StudyRunner, TheWatcherSeesProgress) {
  std::set<std::pair<RunStatus, double>> seen;
  const auto watch = [&](const std::vector<FinishedRun>& runs, const std::vector<double>& progress) {
    ASSERT_EQ(runs.size(), progress.size());
    for (std::size_t i = 0; i < runs.size(); ++i) seen.emplace(runs[i].status, progress[i]);
  };
  std::atomic<bool> stop = false;
  std::thread later([&] {
    std::this_thread::sleep_for(std::chrono::seconds(1));
    stop = true;
  });
  run(plan_of({"a", "long", "later"}), study(),
      {.program = program(), .jobs = 1, .stop = [&] { return stop.load(); }, .watch = watch});
  later.join();
  for (const auto& state : {std::pair(RunStatus::running, 0.0), std::pair(RunStatus::running, 0.25),
                            std::pair(RunStatus::done, 1.0), std::pair(RunStatus::waiting, 0.0)}) {
    EXPECT_TRUE(seen.contains(state)) << static_cast<int>(state.first) << " " << state.second;
  }
}

TEST_F(StudyRunner, AnExceptionOfTheWatcherEndsTheRuns) {
  const auto watch = [&](const std::vector<FinishedRun>&, const std::vector<double>&) {
    if (!content(directory_ / "ready").empty()) throw std::runtime_error("enough");
  };
  const RunnerOptions options{.program = program(), .jobs = 1, .stop = {}, .watch = watch};
  EXPECT_THROW(run(plan_of({"long"}), study(), options), std::runtime_error);
  EXPECT_NE(content(folder(by_arm()["long"]) / "summary.json").find("stopped"), std::string::npos);
}

TEST_F(StudyRunner, AControlAddedLater) {
  EXPECT_TRUE(run(plan_of({"a", "b"})));
  const Plan plan = with_control(plan_of({"a", "b"}), "a");
  EXPECT_TRUE(run(plan));
  ASSERT_EQ(calls().size(), 4u);  // a again, for its trace, and the control
  EXPECT_EQ(calls()[2].name, by_arm()["a"].run.folder);
  EXPECT_EQ(calls()[2].how, "new");
  EXPECT_TRUE(std::filesystem::exists(folder(by_arm()["a"]) / "decay_trace.bin"));
  EXPECT_TRUE(run(plan));
  EXPECT_EQ(calls().size(), 4u);
}

// The runs are taken as they are given, so the plan is not expanded again; no result is read without a reason.
TEST_F(StudyRunner, ReadsEachThingOncePerEvent) {
  const Plan plan = with_control(plan_of({"a", "wild", "bad"}, {0, 1}), "a");
  std::vector<PlannedRun> runs = expand(plan);
  for (std::size_t i = 0; i < runs.size(); ++i) runs[i].folder = runs[i].arm + "_mine_" + std::to_string(i);
  std::map<std::string, int> reads;
  RunnerOptions options{.program = program(), .jobs = 2, .stop = {}, .watch = {}};
  options.read = [&](const std::filesystem::path& folder, PlannedRun one) {
    ++reads[folder.filename().string()];
    return read_run(folder, std::move(one));
  };
  const StudyEnd end = run_study(plan, runs, study(), options);
  EXPECT_TRUE(end.finished);
  ASSERT_EQ(end.results.runs.size(), 8u);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const FinishedRun &told = end.results.runs[i], there = read_run(study() / "runs" / runs[i].folder, runs[i]);
    EXPECT_EQ(told.run.folder, runs[i].folder);
    EXPECT_EQ(reads[told.run.folder], 3) << told.run.folder << ": at the start, when it was claimed and at its end";
    EXPECT_EQ(told.status, there.status);
    EXPECT_EQ(told.failure, there.failure);
    EXPECT_EQ(fmt::format("{}", told.loss), fmt::format("{}", there.loss));  // or both are NaN
  }
  reads.clear();
  run_study(plan, runs, study(), options);
  for (const auto& [name, count] : reads) EXPECT_EQ(count, name.starts_with("bad") ? 3 : 1) << name << ": finished ones once";
}

TEST_F(StudyRunner, DamagedMetricsDoNotStopIt) {
  const Plan plan = plan_of({"a"});
  const auto damage = [&](const std::vector<FinishedRun>& runs, const std::vector<double>&) {
    if (std::filesystem::exists(folder(runs[0]))) store(folder(runs[0]) / "metrics.jsonl", "nonsense\n");
  };
  EXPECT_TRUE(run(plan, study(), {.program = program(), .jobs = 1, .stop = {}, .watch = damage}));
}

}  // namespace runner_test
}  // namespace cautious::study
