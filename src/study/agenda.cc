#include "study/agenda.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/files.h"
#include "base/text.h"
#include "run/decay_trace.h"
#include "study/progress.h"

namespace cautious::study {

namespace fs = std::filesystem;

namespace {

constexpr const char* kFailure = "failure.txt";

bool has_ended(RunStatus status) { return status == RunStatus::done || status == RunStatus::diverged; }

// Of the file that a failed attempt leaves: another attempt, another time. The clock is the file's own.
fs::file_time_type failure_time(const fs::path& folder) {
  std::error_code error;
  const fs::file_time_type time = fs::last_write_time(folder / kFailure, error);
  return error ? fs::file_time_type::min() : time;
}

// On a file system of several machines, opening a directory is what makes visible the files that others made in it.
void look_into(const fs::path& folder) {
  std::error_code error;
  for (const fs::path& one : {folder.parent_path(), folder}) (void)base::entries_of(one, error);
}

}  // namespace

std::vector<bool> in_shard(const std::vector<PlannedRun>& runs, const Shard& shard) {
  std::map<std::string, std::size_t> numbers;
  std::map<std::string, std::size_t> of_folder;
  std::vector<std::size_t> number;
  std::vector<bool> belongs;
  for (const PlannedRun& run : runs) {
    const std::string name = run.candidate ? fmt::format("{} {}", run.arm, run.seed) : run.folder;
    const auto known = of_folder.find(run.folder);
    number.push_back(known != of_folder.end() ? known->second
                     : run.follows >= 0       ? number[static_cast<std::size_t>(run.follows)]
                                              : numbers.try_emplace(name, numbers.size()).first->second);
    of_folder.try_emplace(run.folder, number.back());
    belongs.push_back(number.back() % shard.count == shard.number - 1);
  }
  return belongs;
}

Agenda::Agenda(StudyDirectory& directory, const Plan& plan, std::vector<PlannedRun> runs, Read read, const Shard& shard)
    : directory_(directory), plan_(plan), read_(std::move(read)), in_shard_(study::in_shard(runs, shard)) {
  for (PlannedRun& run : runs) {
    const fs::path folder = directory.run(run);
    failures_.push_back(failure_time(folder));
    runs_.push_back(read_(folder, std::move(run)));
  }
  const std::map<std::string, std::string> others = directory_.claims().others();  // who may be beginning one again
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    RunStatus& status = runs_[i].status;
    const bool theirs = others.contains(runs_[i].run.folder);
    if (!has_ended(status) || theirs || must_begin_again(i, status)) status = RunStatus::waiting;
  }
  choices_ = settle(plan_, runs_);
  refresh();
}

run::RunConfig Agenda::config_of(std::size_t run) const {
  const PlannedRun& planned = runs_[run].run;
  run::RunConfig config = planned.config;
  if (planned.follows < 0) return config;
  const auto arm = std::ranges::find(plan_.arms, planned.arm, &Arm::name);
  const bool density = arm != plan_.arms.end() && !arm->density_of.empty();
  const fs::path reference = directory_.run(runs_[static_cast<std::size_t>(planned.follows)].run);
  (density ? config.optimizer.density_from : config.optimizer.budget_from) = reference.string();
  return config;
}

// Whether it has a control that has not ended.
bool Agenda::is_awaited(std::size_t run) const {
  return std::ranges::any_of(runs_, [&](const FinishedRun& other) {
    return other.run.follows == static_cast<std::ptrdiff_t>(run) && !has_ended(other.status);
  });
}

// A run that had no controls wrote no trace, and one cannot be had later; a control that has not ended reads the trace where
// its configuration says, and the study may have been moved.
bool Agenda::must_begin_again(std::size_t run, RunStatus status) const {
  const FinishedRun& one = runs_[run];
  const fs::path folder = directory_.run(one.run), file = folder / "config.toml";
  if (status == RunStatus::diverged || !fs::exists(file)) return false;
  if (is_awaited(run) && !fs::exists(folder / run::kDecayTrace)) return true;
  if (one.run.follows < 0 || status == RunStatus::done) return false;
  const run::RunConfig now = config_of(run), then = run::read_config({.files = {file}, .preset = "", .overrides = {}});
  return now.optimizer.density_from != then.optimizer.density_from || now.optimizer.budget_from != then.optimizer.budget_from;
}

void Agenda::refresh() {
  const std::map<std::string, std::string> others = directory_.claims().others();
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    FinishedRun& one = runs_[i];
    const bool ours = one.status == RunStatus::running && one.worker.empty();
    if (ours || has_ended(one.status) || one.status == RunStatus::left_out) continue;
    const auto found = others.find(one.run.folder);
    if (found != others.end()) {
      one.status = RunStatus::running;
      one.worker = found->second;
    } else if (one.status == RunStatus::running) {
      ended_elsewhere(i);
    }
  }
}

// Whether another process has brought it to its end, which then counts here too; else it waits. A failure that was there when
// this began does not count: it is tried again, by one of the processes.
bool Agenda::ended_elsewhere(std::size_t run) {
  FinishedRun& one = runs_[run];
  const fs::path folder = directory_.run(one.run);
  look_into(folder);
  FinishedRun now = read_(folder, one.run);
  const bool failed = now.status == RunStatus::failed && failure_time(folder) != failures_[run];
  if (!failed && (!has_ended(now.status) || must_begin_again(run, now.status))) {
    one.status = RunStatus::waiting;
    one.worker.clear();
    return false;
  }
  one = std::move(now);
  settle_after(run);
  return true;
}

// Runs that compute the same have ended with it, and points may be chosen.
void Agenda::settle_after(std::size_t run) {
  const FinishedRun ended = runs_[run];
  for (FinishedRun& same : runs_) {
    if (same.run.folder != ended.run.folder || same.status == RunStatus::left_out) continue;
    PlannedRun planned = std::move(same.run);
    same = ended;
    same.run = std::move(planned);
  }
  if (ended.run.tuning) choices_ = settle(plan_, runs_);
}

bool Agenda::is_at_work(const std::string& folder) const {
  return std::ranges::any_of(
      runs_, [&](const FinishedRun& one) { return one.status == RunStatus::running && one.run.folder == folder; });
}

// Whether a waiting run can start; one that never will is failed.
bool Agenda::may_start(std::size_t run) {
  const FinishedRun& one = runs_[run];
  if (!in_shard_[run] || one.status != RunStatus::waiting || is_at_work(one.run.folder)) return false;
  if (one.run.candidate && !choices_.at(one.run.arm).decided) {
    const std::string& chooser = std::ranges::find(plan_.arms, one.run.arm, &Arm::name)->chooser();
    const auto failed = std::ranges::find_if(runs_, [&](const FinishedRun& other) {
      return other.run.tuning && other.run.arm == chooser && other.status == RunStatus::failed;
    });
    if (failed != runs_.end()) fail_unbegun(run, fmt::format("its point cannot be chosen: {} failed", failed->run.folder));
    return false;
  }
  if (one.run.follows < 0) return true;
  const FinishedRun& reference = runs_[static_cast<std::size_t>(one.run.follows)];
  if (reference.status == RunStatus::failed || reference.status == RunStatus::diverged) {
    fail_unbegun(run, fmt::format("its reference run, {}, {}", reference.run.folder, word_of(reference.status)));
  }
  return reference.status == RunStatus::done;
}

// A process that a killed worker has started holds the run's directory until it has saved.
bool Agenda::claim(std::size_t run) {
  const std::string& folder = runs_[run].run.folder;
  const bool taken = !base::DirectoryLock::is_held(directory_.run(runs_[run].run)) && directory_.claims().take(folder);
  if (taken) {
    directory_.check_plan();
    if (!ended_elsewhere(run)) return true;
    directory_.claims().give_back(folder);
  }
  changed_ = true;
  return false;
}

std::optional<std::size_t> Agenda::next() {
  changed_ = false;
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (may_start(i) && claim(i)) return i;
  }
  return std::nullopt;
}

bool Agenda::waits() const {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (in_shard_[i] && runs_[i].status == RunStatus::running && !runs_[i].worker.empty()) return true;
  }
  return changed_;
}

bool Agenda::holds(std::size_t run) { return directory_.claims().holds(runs_[run].run.folder); }

void Agenda::begin(std::size_t run) {
  FinishedRun& one = runs_[run];
  const fs::path folder = directory_.run(one.run);
  if (must_begin_again(run, one.status)) {
    directory_.log(fmt::format("{}: begins again, because its reference run or its controls have changed", one.run.folder));
    fs::remove_all(folder);
  }
  fs::remove(folder / kFailure);
  one.status = RunStatus::running;
  directory_.log(fmt::format("{}: {}", one.run.folder, fs::exists(folder / "config.toml") ? "continued" : "started"));
}

void Agenda::conclude(std::size_t run, const Ending& ending) {
  FinishedRun& one = runs_[run];
  const std::string folder = one.run.folder;
  if (!holds(run)) {
    directory_.log(fmt::format("{}: another process has taken it over", folder));
    ended_elsewhere(run);
    return;
  }
  one = read_(directory_.run(one.run), one.run);
  if (one.status == RunStatus::done) {
    directory_.log(fmt::format("{}: done, {} {}", folder, measure_of(one.run).name, base::to_text(one.loss)));
  } else if (one.status == RunStatus::diverged) {
    directory_.log(fmt::format("{}: {}", folder, ending.said.empty() ? word_of(one.status) : ending.said));
  } else if (ending.interrupted) {
    one.status = RunStatus::waiting;
    directory_.log(fmt::format("{}: interrupted", folder));
  } else {
    fail(run, ending.said);
  }
  settle_after(run);
  directory_.claims().give_back(folder);
}

void Agenda::fail_unbegun(std::size_t run, const std::string& why) {
  if (!claim(run)) return;
  fail(run, why);
  directory_.claims().give_back(runs_[run].run.folder);
}

void Agenda::fail(std::size_t run, const std::string& why) {
  FinishedRun& one = runs_[run];
  const fs::path folder = directory_.run(one.run);
  fs::create_directories(folder);
  base::write_atomically(folder / kFailure, why + "\n");
  directory_.log(fmt::format("{}: failed: {}", one.run.folder, why));
  one.status = RunStatus::failed;
  one.failure = why;
}

}  // namespace cautious::study
