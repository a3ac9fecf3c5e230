// One thread that starts processes, looks after them a few times a second and tells the watcher. A run's result is read from
// its directory, never taken from the process.
#include "study/runner.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include <cautious/error.h>
#include "base/atomic_file.h"
#include "base/process.h"
#include "base/text.h"
#include "run/decay_trace.h"
#include "run/metrics.h"
#include "study/progress.h"

namespace cautious::study {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The runs share the machine: each computes with one thread and none waits by spinning.
const std::vector<std::string> kEnvironment{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "OMP_WAIT_POLICY=passive"};

std::string ending_of(int status, const fs::path& program) {
  const std::string name = program.filename().string();
  if (WIFSIGNALED(status)) return fmt::format("{} was ended by signal {}", name, WTERMSIG(status));
  return fmt::format("{} ended with code {} and no result", name, WEXITSTATUS(status));
}

// How a run ends that was told to save: by its own exit code, or by the signal before it could listen.
bool saved_and_left(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT;
  return WEXITSTATUS(status) == 128 + SIGTERM || WEXITSTATUS(status) == 128 + SIGINT;
}

// Controls and their reference runs: what controls are configured with, and which runs are of no use to each other any more.
class Controls {
 public:
  // All three must outlive it; `runs` are those of the plan, as they change.
  Controls(const StudyDirectory& directory, const Plan& plan, const std::vector<FinishedRun>& runs)
      : directory_(directory), plan_(plan), runs_(runs) {}

  // The run's configuration, with the directory of its reference run.
  run::RunConfig config_of(const PlannedRun& run) const {
    run::RunConfig config = run.config;
    if (run.follows < 0) return config;
    const auto arm = std::ranges::find(plan_.arms, run.arm, &Arm::name);
    const bool density = arm != plan_.arms.end() && !arm->density_of.empty();
    const fs::path reference = directory_.run(runs_[static_cast<std::size_t>(run.follows)].run);
    (density ? config.optimizer.density_from : config.optimizer.budget_from) = reference.string();
    return config;
  }

  // A run that had no controls wrote no trace, and one cannot be had later; a control that has not ended reads the trace where
  // its configuration says, and the study may have been moved.
  bool must_begin_again(std::size_t run) const {
    const FinishedRun& one = runs_[run];
    const fs::path folder = directory_.run(one.run), file = folder / "config.toml";
    if (one.status == RunStatus::diverged || !fs::exists(file)) return false;
    if (is_awaited(run) && !fs::exists(folder / run::kDecayTrace)) return true;
    if (one.run.follows < 0 || one.status == RunStatus::done) return false;
    const run::RunConfig now = config_of(one.run), then = run::read_config({.file = file, .preset = "", .overrides = {}});
    return now.optimizer.density_from != then.optimizer.density_from || now.optimizer.budget_from != then.optimizer.budget_from;
  }

 private:
  // Whether it has a control that has not ended.
  bool is_awaited(std::size_t run) const {
    return std::ranges::any_of(runs_, [&](const FinishedRun& other) {
      return other.run.follows == static_cast<std::ptrdiff_t>(run) && other.status != RunStatus::done &&
             other.status != RunStatus::diverged;
    });
  }

  const StudyDirectory& directory_;
  const Plan& plan_;
  const std::vector<FinishedRun>& runs_;
};

class Runner {
 public:
  Runner(const StudyDirectory& directory, const Plan& plan, std::vector<PlannedRun> runs, const RunnerOptions& options);
  bool go();
  std::vector<FinishedRun> take_runs() { return std::move(runs_); }

 private:
  void make_ready(std::size_t run);
  bool start_waiting();
  // Whether a waiting run can start; one that never will is failed.
  bool may_start(std::size_t run, bool& changed);
  bool is_at_work(const std::string& folder) const;
  void start(std::size_t run);
  bool collect();
  void conclude(std::size_t run, int status);
  void fail(std::size_t run, std::string why);
  void stop();
  void tell(bool at_once);
  double fraction_done(const FinishedRun& run) const;

  const StudyDirectory& directory_;
  const Plan& plan_;
  const RunnerOptions& options_;
  std::vector<FinishedRun> runs_;
  std::map<std::string, Choice> choices_;  // of every arm
  Controls controls_;
  std::vector<double> progress_;
  std::map<std::size_t, base::Process> working_;
  bool stopping_ = false;
  Clock::time_point told_{};
};

Runner::Runner(const StudyDirectory& directory, const Plan& plan, std::vector<PlannedRun> runs, const RunnerOptions& options)
    : directory_(directory), plan_(plan), options_(options), controls_(directory, plan, runs_) {
  for (PlannedRun& run : runs) {
    const fs::path folder = directory.run(run);
    runs_.push_back(options.read(folder, std::move(run)));
  }
  for (std::size_t i = 0; i < runs_.size(); ++i) make_ready(i);
  choices_ = settle(plan_, runs_);
  for (const FinishedRun& run : runs_) progress_.push_back(fraction_done(run));
}

void Runner::make_ready(std::size_t run) {
  FinishedRun& one = runs_[run];
  if (controls_.must_begin_again(run)) {
    directory_.log(fmt::format("{}: begins again, because its reference run or its controls have changed", one.run.folder));
    fs::remove_all(directory_.run(one.run));
    one.status = RunStatus::waiting;
  }
  if (one.status == RunStatus::failed || one.status == RunStatus::running) one.status = RunStatus::waiting;
}

bool Runner::is_at_work(const std::string& folder) const {
  return std::ranges::any_of(working_, [&](const auto& entry) { return runs_[entry.first].run.folder == folder; });
}

bool Runner::may_start(std::size_t run, bool& changed) {
  const FinishedRun& one = runs_[run];
  if (one.status != RunStatus::waiting || is_at_work(one.run.folder)) return false;
  if (one.run.candidate && !choices_.at(one.run.arm).decided) {
    const std::string& chooser = std::ranges::find(plan_.arms, one.run.arm, &Arm::name)->chooser();
    const auto failed = std::ranges::find_if(runs_, [&](const FinishedRun& other) {
      return other.run.tuning && other.run.arm == chooser && other.status == RunStatus::failed;
    });
    if (failed == runs_.end()) return false;
    fail(run, fmt::format("its point cannot be chosen: {} failed", failed->run.folder));
    changed = true;
    return false;
  }
  if (one.run.follows < 0) return true;
  const FinishedRun& reference = runs_[static_cast<std::size_t>(one.run.follows)];
  if (reference.status == RunStatus::failed || reference.status == RunStatus::diverged) {
    fail(run, fmt::format("its reference run, {}, {}", reference.run.folder, word_of(reference.status)));
    changed = true;
  }
  return reference.status == RunStatus::done;
}

// Whether anything changed.
bool Runner::start_waiting() {
  bool changed = false;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (!may_start(i, changed) || working_.size() >= static_cast<std::size_t>(options_.jobs)) continue;
    start(i);
    changed = true;
  }
  return changed;
}

void Runner::start(std::size_t run) {
  FinishedRun& one = runs_[run];
  const fs::path out = directory_.run(one.run), config = directory_.config(one.run);
  fs::remove(out / "failure.txt");
  std::vector<std::string> command{options_.program.string(), "train", "--out", out.string(), "--quiet"};
  const bool resume = fs::exists(out / "config.toml");
  if (resume) {
    command.push_back("--resume");
  } else {
    base::write_atomically(config, to_toml(controls_.config_of(one.run)));
    command.insert(command.end(), {"--config", config.string()});
  }
  working_.emplace(run, base::Process(std::move(command), kEnvironment, directory_.said(one.run)));
  one.status = RunStatus::running;
  directory_.log(fmt::format("{}: {}", one.run.folder, resume ? "continued" : "started"));
}

// Whether any run has ended.
bool Runner::collect() {
  bool changed = false;
  for (auto at = working_.begin(); at != working_.end();) {
    const std::optional<int> status = at->second.ended();
    if (!status) {
      ++at;
      continue;
    }
    const std::size_t run = at->first;
    at = working_.erase(at);
    conclude(run, *status);
    changed = true;
  }
  return changed;
}

void Runner::conclude(std::size_t run, int status) {
  FinishedRun& one = runs_[run];
  const std::string folder = one.run.folder;
  const fs::path said = directory_.said(one.run);
  one = options_.read(directory_.run(one.run), one.run);
  if (one.status == RunStatus::done) {
    directory_.log(fmt::format("{}: done, {} {}", folder, one.run.measure.name, base::to_text(one.loss)));
  } else if (one.status == RunStatus::diverged) {
    directory_.log(fmt::format("{}: {}", folder, base::last_message_in(said)));
  } else if (stopping_ && saved_and_left(status)) {
    one.status = RunStatus::waiting;
    directory_.log(fmt::format("{}: interrupted", folder));
  } else {
    const std::string reason = WIFSIGNALED(status) ? "" : base::last_message_in(said);
    fail(run, reason.empty() ? ending_of(status, options_.program) : reason);
  }
  const FinishedRun ended = one;
  for (FinishedRun& same : runs_) {  // runs that compute the same
    if (same.run.folder != folder || same.status == RunStatus::left_out) continue;
    PlannedRun planned = std::move(same.run);
    same = ended;
    same.run = std::move(planned);
  }
  if (ended.run.tuning) choices_ = settle(plan_, runs_);
}

void Runner::fail(std::size_t run, std::string why) {
  FinishedRun& one = runs_[run];
  const fs::path folder = directory_.run(one.run);
  fs::create_directories(folder);
  base::write_atomically(folder / "failure.txt", why + "\n");
  directory_.log(fmt::format("{}: failed: {}", one.run.folder, why));
  one.status = RunStatus::failed;
  one.failure = std::move(why);
}

void Runner::stop() {
  stopping_ = true;
  directory_.log("interrupted");
  for (auto& [run, process] : working_) process.terminate();
}

double Runner::fraction_done(const FinishedRun& run) const {
  if (run.status == RunStatus::done) return 1;
  const auto steps = static_cast<double>(std::max<std::int64_t>(1, steps_of(run.run.config)));
  try {
    return std::clamp(static_cast<double>(run::last_step(directory_.run(run.run) / "metrics.jsonl")) / steps, 0.0, 1.0);
  } catch (const Error&) {
    return 0;  // the report names a damaged file; it does not stop the runs
  }
}

void Runner::tell(bool at_once) {
  constexpr std::chrono::milliseconds kOften{250};
  const Clock::time_point now = Clock::now();
  if (!options_.watch || (!at_once && now - told_ < kOften)) return;
  told_ = now;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    const bool moves = runs_[i].status == RunStatus::running || runs_[i].status == RunStatus::done;
    if (moves && progress_[i] < 1) progress_[i] = fraction_done(runs_[i]);
  }
  options_.watch(runs_, progress_);
}

bool Runner::go() {
  constexpr std::chrono::milliseconds kPause{50};
  bool changed = true;
  while (true) {
    if (!stopping_ && options_.stop && options_.stop()) stop();
    if (collect()) changed = true;
    if (!stopping_ && start_waiting()) changed = true;
    tell(std::exchange(changed, false));
    if (working_.empty()) break;
    std::this_thread::sleep_for(kPause);
  }
  return !stopping_;
}

void check_options(const RunnerOptions& options) {
  constexpr double kMost = 4096;
  base::check_range("jobs", options.jobs, {1, kMost, false, false});
  if (::access(options.program.c_str(), X_OK) != 0) {
    throw Error(Fault::failure,
                fmt::format("cannot start {}: {}", options.program.string(), std::generic_category().message(errno)));
  }
}

void check_data(const std::vector<PlannedRun>& runs) {
  for (const PlannedRun& run : runs) {
    if (!run.config.data.path.empty()) continue;
    throw Error(Fault::usage,
                fmt::format("arm '{}': data.path is not set; put data.path = FILE, or a set's name from 'cautious "
                            "data list', under [base]",
                            run.arm));
  }
}

}  // namespace

StudyEnd run_study(const Plan& plan, std::vector<PlannedRun> runs, const fs::path& directory, const RunnerOptions& options) {
  check_options(options);
  check_data(runs);
  const StudyDirectory study(directory, plan, runs);
  Runner runner(study, plan, std::move(runs), options);
  const bool finished = runner.go();
  return {{.directory = directory, .plan = plan, .runs = runner.take_runs()}, finished};
}

}  // namespace cautious::study
