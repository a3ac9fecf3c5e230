// Several processes on one study, as on the machines of a cluster: the same results as one, whoever dies or sleeps.
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>

#include "base/files.h"
#include "fake_train.h"
#include "study/report.h"

namespace cautious::study {
namespace workers_test {

using std::chrono::milliseconds;

constexpr Lease kShort{milliseconds(20), milliseconds(400)};  // where a claim is to be taken over
constexpr Lease kLong{milliseconds(20), std::chrono::hours(1)};

class StudyWorkers : public FakeStudy {
 protected:
  // Every stage: points to choose, arms to judge, controls of a reference run, runs of the same folder, one that diverges.
  static Plan staged() {
    Plan plan = plan_of({}, {0, 1, 2});
    plan.tune_seeds = {7, 8};
    plan.grid = {{"optimizer.weight_decay", {"0", "0.5", "1"}}};
    plan.arms = {{"none", {{"optimizer.decay", "none"}}, "", "", false},
                 {"plain", {}, "", ""},
                 {"cwd", {{"optimizer.decay", "cautious"}}, "", ""},
                 {"random", {}, "cwd", ""},
                 {"wild", {{"optimizer.lr", "9"}}, "", "", false}};
    plan.contrasts = {{"cwd", "plain", true}, {"cwd", "random", true}};
    return plan;
  }

  RunnerOptions options(const Lease& lease = kLong, int jobs = 1) const {
    return {.program = program(), .jobs = jobs, .stop = {}, .watch = {}, .lease = lease};
  }

  // As if it were on another machine.
  static Worker stranger() {
    Worker worker = this_worker();
    worker.host = "node7";
    worker.kernel = "another";
    return worker;
  }

  // A process that works on the study, here or as on another machine; ends with 0 if it came to the end and could report.
  pid_t worker(const Plan& plan, RunnerOptions options, bool elsewhere = false) const {
    const pid_t child = ::fork();
    if (child != 0) return child;
    try {
      options.worker = elsewhere ? stranger() : this_worker();
      const StudyEnd end = run_study(plan, expand(plan), study(), options);
      if (end.finished) conclude(end.results);
      ::_exit(end.finished ? 0 : 1);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "%s\n", error.what());
      ::_exit(2);
    }
  }
  static int code_of(pid_t child) {
    int status = -1;
    ::waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  template <class Condition>
  static bool in_time(const Condition& condition) {
    for (int i = 0; i < 2000 && !condition(); ++i) ::usleep(10000);
    return condition();
  }
  bool listens() const { return !content(directory_ / "ready").empty(); }

  // Comes true when so many workers have asked, which is before any of them starts a run.
  std::function<bool()> together(int count) const {
    return [this, count, came = false]() mutable {
      if (!std::exchange(came, true)) std::ofstream(directory_ / "came", std::ios::app) << "x";
      return !in_time([&] { return content(directory_ / "came").size() >= static_cast<std::size_t>(count); });
    };
  }

  std::map<std::string, int> begun() const {
    std::map<std::string, int> times;
    for (const Call& call : calls()) ++times[call.name];
    return times;
  }
  // How the run of the arm long was started, each time.
  std::vector<std::string> how_long() const {
    std::vector<std::string> how;
    for (const Call& call : calls()) {
      if (call.name.starts_with("long")) how.push_back(call.how);
    }
    return how;
  }
  std::map<std::string, std::string> tables(const std::filesystem::path& directory) const {
    std::map<std::string, std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(directory / "tables"))
      found[entry.path().filename().string()] = content(entry.path());
    return found;
  }
  std::string report(const std::filesystem::path& directory) const { return content(directory / "report.html"); }
};

TEST_F(StudyWorkers, ThreeMakeWhatOneMakes) {
  const Plan plan = staged();
  ASSERT_EQ(code_of(worker(plan, options(kLong, 8))), 0);
  const std::map<std::string, int> alone = begun();
  const auto one = directory_ / "one";
  std::filesystem::rename(study(), one);
  std::filesystem::remove(directory_ / "calls");

  std::vector<pid_t> workers;
  for (int i = 0; i < 3; ++i) {
    RunnerOptions own = options();
    own.stop = together(3);
    workers.push_back(worker(plan, own, i == 2));
  }
  for (const pid_t child : workers) EXPECT_EQ(code_of(child), 0);
  EXPECT_EQ(begun(), alone);
  for (const auto& [name, times] : begun()) EXPECT_EQ(times, 1) << name;
  std::set<std::string> who;
  std::istringstream log(content(study() / "log.txt"));
  for (std::string time, name, rest; log >> time >> name && std::getline(log, rest);) who.insert(name);
  EXPECT_EQ(who.size(), 3u) << "each made a run";
  EXPECT_EQ(tables(study()), tables(one));
  EXPECT_EQ(report(study()), report(one));
  EXPECT_EQ(content(study() / "looks.jsonl").find('\n') + 1, content(study() / "looks.jsonl").size()) << "one look";
  EXPECT_TRUE(names(study() / "claims").empty());
}

TEST_F(StudyWorkers, AKilledWorkersRunIsContinued) {
  const Plan plan = plan_of({"long", "a", "b"});
  const pid_t child = worker(plan, options());
  EXPECT_TRUE(in_time([&] { return listens(); }));
  ::kill(child, SIGKILL);
  EXPECT_TRUE(run(plan, study(), options()));
  EXPECT_EQ(code_of(child), -SIGKILL);
  EXPECT_EQ(how_long(), (std::vector<std::string>{"new", "resumed"}));
  EXPECT_EQ(begun().size(), 3u);
  for (const auto& [arm, one] : by_arm()) EXPECT_EQ(one.status, RunStatus::done) << arm;
}

TEST_F(StudyWorkers, AnInterruptedWorkersRunIsContinued) {
  const Plan plan = plan_of({"long", "a"});
  RunnerOptions first = options();
  first.stop = [&] { return listens(); };
  const pid_t child = worker(plan, first);
  EXPECT_TRUE(in_time([&] { return listens(); }));
  EXPECT_TRUE(run(plan, study(), options()));
  EXPECT_EQ(code_of(child), 1);
  EXPECT_EQ(how_long(), (std::vector<std::string>{"new", "resumed"}));
  for (const auto& [arm, one] : by_arm()) EXPECT_EQ(one.status, RunStatus::done) << arm;
}

// What is made elsewhere is not made here, and shown with its maker; then it counts here too.
TEST_F(StudyWorkers, TheRunsOfOthersAreWaitedFor) {
  const Plan plan = with_control(plan_of({"a"}), "a");
  const std::vector<PlannedRun> runs = expand(plan);
  StudyDirectory theirs(study(), plan, runs, kLong, stranger());
  ASSERT_TRUE(theirs.claims().take(runs[0].folder));
  int seen = 0;
  RunnerOptions ours = options();
  ours.watch = [&](const std::vector<FinishedRun>& now, const std::vector<double>&) {
    if (now[0].status != RunStatus::running || ++seen != 3) return;
    EXPECT_EQ(now[0].worker, theirs.claims().worker().name());
    EXPECT_EQ(now[1].status, RunStatus::waiting);
    std::filesystem::create_directories(theirs.run(runs[0]));
    store(theirs.run(runs[0]) / "config.toml", to_toml(runs[0].config));
    store(theirs.run(runs[0]) / "decay_trace.bin", "trace");
    store(theirs.run(runs[0]) / "summary.json",
          R"({"status": "done", "val_loss": 1, "val_bpb": 1, "val_accuracy": 0, "decay_budget": 0, "seconds": 2})");
    theirs.claims().give_back(runs[0].folder);
  };
  EXPECT_TRUE(run(plan, study(), ours));
  EXPECT_EQ(begun(), (std::map<std::string, int>{{runs[1].folder, 1}}));
  EXPECT_EQ(by_arm()["a"].loss, 1);
  EXPECT_EQ(by_arm()["control"].status, RunStatus::done);
}

// The run of no decay is also that of a point that is not chosen while another process makes it.
TEST_F(StudyWorkers, APointThatIsLeftOutIsNotWaitedFor) {
  const Plan plan = staged();
  const std::vector<PlannedRun> runs = expand(plan);
  const auto none = std::ranges::find_if(runs, [](const PlannedRun& run) { return run.arm == "none" && !run.tuning; });
  const auto shares = [&](const PlannedRun& run) { return run.candidate && run.folder == none->folder; };
  ASSERT_TRUE(std::ranges::any_of(runs, shares));
  StudyDirectory theirs(study(), plan, runs, kLong, stranger());
  ASSERT_TRUE(theirs.claims().take(none->folder));
  RunnerOptions ours = options(kLong, 8);
  ours.watch = [&](const std::vector<FinishedRun>& now, const std::vector<double>&) {
    const auto open = [](const FinishedRun& run) { return run.status == RunStatus::waiting; };
    const auto here = [](const FinishedRun& run) { return run.status == RunStatus::running && run.worker.empty(); };
    if (std::ranges::none_of(now, open) && std::ranges::none_of(now, here)) theirs.claims().give_back(none->folder);
  };
  EXPECT_TRUE(run(plan, study(), ours));
  EXPECT_EQ(begun()[none->folder], 1);
}

TEST_F(StudyWorkers, ASilentMachinesRunIsTakenOver) {
  const Plan plan = plan_of({"a", "b"});
  const std::vector<PlannedRun> runs = expand(plan);
  const Lease silent{std::chrono::hours(1), std::chrono::hours(1)};
  StudyDirectory theirs(study(), plan, runs, silent, stranger());
  ASSERT_TRUE(theirs.claims().take(runs[0].folder));
  EXPECT_TRUE(run(plan, study(), options(kShort)));
  EXPECT_EQ(begun().size(), 2u);
  EXPECT_EQ(by_arm()["a"].status, RunStatus::done);
}

// Its process continues while it sleeps; when it wakes up, it ends that process and writes nothing.
TEST_F(StudyWorkers, ASleepingOwnerLeavesTheRunToTheNext) {
  const Plan plan = plan_of({"long"});
  const pid_t child = worker(plan, options(), true);
  EXPECT_TRUE(in_time([&] { return listens(); }));
  ::kill(child, SIGSTOP);
  EXPECT_TRUE(run(plan, study(), options(kShort)));
  const auto summary = folder(by_arm()["long"]) / "summary.json";
  const std::string result = content(summary);
  EXPECT_NE(result.find("done"), std::string::npos);
  ::kill(child, SIGCONT);
  EXPECT_EQ(code_of(child), 0);
  EXPECT_EQ(content(summary), result);
  EXPECT_NE(content(study() / "log.txt").find("another process has taken it over"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(summary.parent_path() / "failure.txt"));
  EXPECT_EQ(calls().size(), 2u);
}

TEST_F(StudyWorkers, AFailureIsTriedOnceByAllOfThem) {
  const Plan plan = with_control(plan_of({"bad", "a"}), "bad");
  for (int session = 1; session <= 2; ++session) {
    std::filesystem::remove(directory_ / "came");
    std::vector<pid_t> workers;
    for (int i = 0; i < 3; ++i) {
      RunnerOptions own = options();
      own.stop = together(3);
      workers.push_back(worker(plan, own));
    }
    for (const pid_t child : workers) EXPECT_EQ(code_of(child), 0);
    EXPECT_EQ(begun()[by_arm()["bad"].run.folder], session);
    EXPECT_EQ(by_arm()["control"].status, RunStatus::failed);
  }
}

// A killed worker's process still saves.
TEST_F(StudyWorkers, ADirectoryInUseIsWaitedFor) {
  const Plan plan = plan_of({"a"});
  const std::filesystem::path folder = study() / "runs" / expand(plan)[0].folder;
  { const StudyDirectory made(study(), plan, expand(plan)); }
  std::filesystem::create_directories(folder);
  auto lock = std::make_unique<base::DirectoryLock>(folder);
  int asked = 0;
  RunnerOptions ours = options();
  ours.stop = [&] {
    if (++asked == 5) {
      EXPECT_TRUE(calls().empty());
      lock.reset();
    }
    return false;
  };
  EXPECT_TRUE(run(plan, study(), ours));
  EXPECT_EQ(by_arm()["a"].status, RunStatus::done);
}

TEST_F(StudyWorkers, ShardsShareOutWhatBelongsTogether) {
  const std::vector<PlannedRun> runs = expand(staged());
  for (std::size_t count = 1; count <= 5; ++count) {
    std::vector<int> times(runs.size());
    for (std::size_t number = 1; number <= count; ++number) {
      const std::vector<bool> own = in_shard(runs, {number, count});
      ASSERT_EQ(own.size(), runs.size());
      std::size_t judged = 0;
      for (std::size_t i = 0; i < runs.size(); ++i) {
        times[i] += own[i] ? 1 : 0;
        judged += own[i] && !runs[i].tuning ? 1 : 0;
        for (std::size_t j = 0; j < i; ++j) {
          EXPECT_TRUE(runs[i].folder != runs[j].folder || own[i] == own[j]) << runs[i].folder;
        }
        const std::ptrdiff_t reference = runs[i].follows;
        EXPECT_TRUE(reference < 0 || own[i] == own[static_cast<std::size_t>(reference)]) << runs[i].folder;
      }
      EXPECT_GT(judged, 0u);
    }
    EXPECT_EQ(times, std::vector<int>(runs.size(), 1)) << count;
  }
}

// Directories of their own, brought together after every stage.
TEST_F(StudyWorkers, ShardsMakeWhatOneMakes) {
  const Plan plan = staged();
  ASSERT_EQ(code_of(worker(plan, options(kLong, 8))), 0);
  const std::map<std::string, int> alone = begun();
  std::filesystem::remove(directory_ / "calls");
  std::vector<std::filesystem::path> shards{directory_ / "first", directory_ / "second"};
  for (int stage = 0; stage < 2; ++stage) {
    for (std::size_t i = 0; i < shards.size(); ++i) {
      RunnerOptions own = options(kLong, 8);
      own.shard = {i + 1, shards.size()};
      EXPECT_TRUE(run(plan, shards[i], own));
    }
    for (const auto& from : shards) {
      for (const auto& to : shards) {
        if (from == to) continue;
        std::filesystem::copy(from / "runs", to / "runs",
                              std::filesystem::copy_options::recursive | std::filesystem::copy_options::skip_existing);
      }
    }
  }
  EXPECT_EQ(begun(), alone);
  for (const auto& shard : shards) {
    RunnerOptions own = options();
    own.shard = {1, 2};
    const StudyEnd end = run_study(plan, expand(plan), shard, own);
    conclude(end.results);
    EXPECT_EQ(tables(shard), tables(study()));
  }
  EXPECT_EQ(begun(), alone);
}

}  // namespace workers_test
}  // namespace cautious::study
