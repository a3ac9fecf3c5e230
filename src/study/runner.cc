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
#include "run/metrics.h"
#include "study/external_run.h"

namespace cautious::study {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

// The runs share the machine: each computes with one thread, alone, and none waits by spinning.
const std::vector<std::string> kEnvironment{"OMP_NUM_THREADS=1", "OPENBLAS_NUM_THREADS=1", "OMP_WAIT_POLICY=passive", "RANK=0",
                                            "WORLD_SIZE=1"};

std::string status_text(int status, const std::string& name) {
  if (WIFSIGNALED(status)) return fmt::format("{} was ended by signal {}", name, WTERMSIG(status));
  return fmt::format("{} ended with code {} and no result", name, WEXITSTATUS(status));
}

// How a run ends that was told to save: by its own exit code, or by the signal before it could listen.
bool saved_and_left(int status) {
  if (WIFSIGNALED(status)) return WTERMSIG(status) == SIGTERM || WTERMSIG(status) == SIGINT;
  return WEXITSTATUS(status) == 128 + SIGTERM || WEXITSTATUS(status) == 128 + SIGINT;
}

class Runner {
 public:
  Runner(StudyDirectory& directory, const Plan& plan, std::vector<PlannedRun> runs, const RunnerOptions& options);
  bool go();
  std::vector<FinishedRun> take_runs() { return agenda_.take_runs(); }

 private:
  struct Work {
    base::Process process;
    Clock::time_point start = Clock::now();
  };

  bool start_waiting();
  void start(std::size_t run);
  base::Process trained(const PlannedRun& run, const run::RunConfig& config) const;
  base::Process commanded(const PlannedRun& run, const run::RunConfig& config) const;
  bool collect();
  bool look_around();
  Agenda::Ending ending_of(const PlannedRun& run, int status, double seconds) const;
  void stop();
  void tell(bool at_once);
  double fraction_done(const FinishedRun& run) const;

  StudyDirectory& directory_;
  const RunnerOptions& options_;
  Agenda agenda_;
  std::vector<double> progress_;
  std::map<std::size_t, Work> working_;
  bool stopping_ = false;
  Clock::time_point told_{}, looked_ = Clock::now();
};

Runner::Runner(StudyDirectory& directory, const Plan& plan, std::vector<PlannedRun> runs, const RunnerOptions& options)
    : directory_(directory), options_(options), agenda_(directory, plan, std::move(runs), options.read, options.shard) {
  for (const FinishedRun& run : agenda_.runs()) progress_.push_back(fraction_done(run));
}

// Whether anything changed.
bool Runner::start_waiting() {
  bool changed = false;
  while (working_.size() < static_cast<std::size_t>(options_.jobs)) {
    const std::optional<std::size_t> run = agenda_.next();
    if (!run) break;
    start(*run);
    changed = true;
  }
  return changed;
}

void Runner::start(std::size_t run) {
  const PlannedRun& planned = agenda_.runs()[run].run;
  agenda_.begin(run);
  const run::RunConfig config = agenda_.config_of(run);
  working_.emplace(run, Work{options_.command.empty() ? trained(planned, config) : commanded(planned, config)});
}

base::Process Runner::trained(const PlannedRun& run, const run::RunConfig& config) const {
  const fs::path out = directory_.run(run), file = directory_.config(run);
  std::vector<std::string> command{options_.program.string(), "train", "--out", out.string(), "--quiet"};
  if (fs::exists(out / "config.toml")) {
    command.emplace_back("--resume");
  } else {
    base::write_atomically(file, to_toml(config));
    command.insert(command.end(), {"--config", file.string()});
  }
  return {command, kEnvironment, directory_.said(run)};
}

base::Process Runner::commanded(const PlannedRun& run, const run::RunConfig& config) const {
  const ExternalRun external = external_run(run, directory_.run(run));
  begin(external, config);
  return {{"/bin/sh", "-c", options_.command}, environment_of(external), directory_.said(run)};
}

// Whether any run has ended.
bool Runner::collect() {
  bool changed = false;
  for (auto at = working_.begin(); at != working_.end();) {
    const std::optional<int> status = at->second.process.ended();
    if (!status) {
      ++at;
      continue;
    }
    const std::size_t run = at->first;
    const double seconds = std::chrono::duration<double>(Clock::now() - at->second.start).count();
    at = working_.erase(at);
    const bool ours = agenda_.holds(run);  // else its result is another's to write
    agenda_.conclude(run, ours ? ending_of(agenda_.runs()[run].run, *status, seconds) : Agenda::Ending{});
    changed = true;
  }
  return changed;
}

// Now and then, what other processes do; a run that one of them has taken over is ended. Whether it was time to.
bool Runner::look_around() {
  const auto often = std::min<Clock::duration>(std::chrono::seconds(1), directory_.claims().lease().beat);
  if (Clock::now() - looked_ < often) return false;
  agenda_.refresh();
  for (auto& [run, work] : working_) {
    if (!agenda_.holds(run)) work.process.kill();
  }
  looked_ = Clock::now();
  return true;
}

// A command's result is written down here, before it is read like any other.
Agenda::Ending Runner::ending_of(const PlannedRun& run, int status, double seconds) const {
  const bool external = !options_.command.empty(), killed = WIFSIGNALED(status);
  const fs::path said = directory_.said(run);
  Agenda::Ending ending{.interrupted = stopping_ && (external || saved_and_left(status)),
                        .said = killed ? "" : base::last_message_in(said)};
  if (external && !killed && WEXITSTATUS(status) == 0) {
    try {
      const ExternalRun one = external_run(run, directory_.run(run));
      ExternalResult result = reported(one, run.config.objective.name, said);
      result.seconds = seconds;
      finish(one, result);
      return {};
    } catch (const Error& error) {
      ending.said = error.what();
    }
  }
  if (ending.said.empty()) ending.said = status_text(status, external ? "the command" : options_.program.filename().string());
  return ending;
}

void Runner::stop() {
  stopping_ = true;
  directory_.log("interrupted");
  for (auto& [run, work] : working_) work.process.terminate();
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
  const std::vector<FinishedRun>& runs = agenda_.runs();
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const bool moves = runs[i].status == RunStatus::running || runs[i].status == RunStatus::done;
    if (moves && progress_[i] < 1) progress_[i] = fraction_done(runs[i]);
  }
  if (options_.shard.count == 1) return options_.watch(runs, progress_);
  std::vector<FinishedRun> own;
  std::vector<double> done;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (!agenda_.in_shard()[i]) continue;
    own.push_back(runs[i]);
    done.push_back(progress_[i]);
  }
  if (!own.empty()) options_.watch(own, done);
}

bool Runner::go() {
  constexpr std::chrono::milliseconds kPause{50};
  bool changed = true;
  while (true) {
    if (!stopping_ && options_.stop && options_.stop()) stop();
    if (collect()) changed = true;
    const bool looked = look_around();
    if (!stopping_ && (changed || looked) && start_waiting()) changed = true;
    tell(std::exchange(changed, false));
    if (working_.empty() && (stopping_ || !agenda_.waits())) break;
    std::this_thread::sleep_for(kPause);
  }
  return !stopping_;
}

void check_options(const RunnerOptions& options) {
  constexpr double kMost = 4096;
  base::check_range("jobs", options.jobs, {1, kMost, false, false});
  if (options.command.empty() && ::access(options.program.c_str(), X_OK) != 0) {
    throw Error(Fault::failure,
                fmt::format("cannot start {}: {}", options.program.string(), std::generic_category().message(errno)));
  }
}

void check_runs(const std::vector<PlannedRun>& runs, const RunnerOptions& options) {
  for (const PlannedRun& run : runs) {
    const bool external = run.config.task == run::TaskKind::external;
    if (external && options.command.empty()) {
      throw Error(Fault::usage,
                  fmt::format("arm '{}': task is 'external', so a program of yours makes the runs; continue the study with the "
                              "script or with the 'cautious compare --command' that began it",
                              run.arm));
    }
    if (external && run.follows >= 0) {
      const std::string& reference = runs[static_cast<std::size_t>(run.follows)].arm;
      throw Error(
          Fault::usage,
          fmt::format("arm '{}' is a control of '{}', but a command keeps no record of its decay that could be repeated; "
                      "write optimizer.decay = \"shuffled\" and point_of = \"{}\" instead, or use cautious.compare "
                      "in Python",
                      run.arm, reference, reference));
    }
    if (external || !run.config.data.path.empty()) continue;
    throw Error(Fault::usage,
                fmt::format("arm '{}': data.path is not set; put data.path = FILE, or a set's name from 'cautious "
                            "data list', under [base]",
                            run.arm));
  }
}

}  // namespace

StudyEnd run_study(const Plan& plan, std::vector<PlannedRun> runs, const fs::path& directory, const RunnerOptions& options) {
  check_runs(runs, options);
  check_options(options);
  StudyDirectory study(directory, plan, runs, options.lease, options.worker);
  Runner runner(study, plan, std::move(runs), options);
  const bool finished = runner.go();
  return {{.directory = directory, .plan = plan, .runs = runner.take_runs()}, finished};
}

}  // namespace cautious::study
