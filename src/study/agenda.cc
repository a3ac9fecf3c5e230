#include "study/agenda.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/atomic_file.h"
#include "base/text.h"
#include "run/decay_trace.h"
#include "study/progress.h"

namespace cautious::study {

namespace fs = std::filesystem;

Agenda::Agenda(const StudyDirectory& directory, const Plan& plan, std::vector<PlannedRun> runs, Read read)
    : directory_(directory), plan_(plan), read_(std::move(read)) {
  for (PlannedRun& run : runs) {
    const fs::path folder = directory.run(run);
    runs_.push_back(read_(folder, std::move(run)));
  }
  for (std::size_t i = 0; i < runs_.size(); ++i) make_ready(i);
  choices_ = settle(plan_, runs_);
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
    return other.run.follows == static_cast<std::ptrdiff_t>(run) && other.status != RunStatus::done &&
           other.status != RunStatus::diverged;
  });
}

// A run that had no controls wrote no trace, and one cannot be had later; a control that has not ended reads the trace where
// its configuration says, and the study may have been moved.
bool Agenda::must_begin_again(std::size_t run) const {
  const FinishedRun& one = runs_[run];
  const fs::path folder = directory_.run(one.run), file = folder / "config.toml";
  if (one.status == RunStatus::diverged || !fs::exists(file)) return false;
  if (is_awaited(run) && !fs::exists(folder / run::kDecayTrace)) return true;
  if (one.run.follows < 0 || one.status == RunStatus::done) return false;
  const run::RunConfig now = config_of(run), then = run::read_config({.file = file, .preset = "", .overrides = {}});
  return now.optimizer.density_from != then.optimizer.density_from || now.optimizer.budget_from != then.optimizer.budget_from;
}

void Agenda::make_ready(std::size_t run) {
  FinishedRun& one = runs_[run];
  if (must_begin_again(run)) {
    directory_.log(fmt::format("{}: begins again, because its reference run or its controls have changed", one.run.folder));
    fs::remove_all(directory_.run(one.run));
    one.status = RunStatus::waiting;
  }
  if (one.status == RunStatus::failed || one.status == RunStatus::running) one.status = RunStatus::waiting;
}

bool Agenda::is_at_work(const std::string& folder) const {
  return std::ranges::any_of(
      runs_, [&](const FinishedRun& one) { return one.status == RunStatus::running && one.run.folder == folder; });
}

// Whether a waiting run can start; one that never will is failed.
bool Agenda::may_start(std::size_t run) {
  const FinishedRun& one = runs_[run];
  if (one.status != RunStatus::waiting || is_at_work(one.run.folder)) return false;
  if (one.run.candidate && !choices_.at(one.run.arm).decided) {
    const std::string& chooser = std::ranges::find(plan_.arms, one.run.arm, &Arm::name)->chooser();
    const auto failed = std::ranges::find_if(runs_, [&](const FinishedRun& other) {
      return other.run.tuning && other.run.arm == chooser && other.status == RunStatus::failed;
    });
    if (failed != runs_.end()) fail(run, fmt::format("its point cannot be chosen: {} failed", failed->run.folder));
    return false;
  }
  if (one.run.follows < 0) return true;
  const FinishedRun& reference = runs_[static_cast<std::size_t>(one.run.follows)];
  if (reference.status == RunStatus::failed || reference.status == RunStatus::diverged) {
    fail(run, fmt::format("its reference run, {}, {}", reference.run.folder, word_of(reference.status)));
  }
  return reference.status == RunStatus::done;
}

std::optional<std::size_t> Agenda::next() {
  for (std::size_t i = 0; i < runs_.size(); ++i) {
    if (may_start(i)) return i;
  }
  return std::nullopt;
}

void Agenda::begin(std::size_t run) {
  FinishedRun& one = runs_[run];
  const fs::path folder = directory_.run(one.run);
  fs::remove(folder / "failure.txt");
  one.status = RunStatus::running;
  directory_.log(fmt::format("{}: {}", one.run.folder, fs::exists(folder / "config.toml") ? "continued" : "started"));
}

void Agenda::conclude(std::size_t run, const Ending& ending) {
  FinishedRun& one = runs_[run];
  const std::string folder = one.run.folder;
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
  const FinishedRun ended = one;
  for (FinishedRun& same : runs_) {  // runs that compute the same
    if (same.run.folder != folder || same.status == RunStatus::left_out) continue;
    PlannedRun planned = std::move(same.run);
    same = ended;
    same.run = std::move(planned);
  }
  if (ended.run.tuning) choices_ = settle(plan_, runs_);
}

void Agenda::fail(std::size_t run, const std::string& why) {
  FinishedRun& one = runs_[run];
  const fs::path folder = directory_.run(one.run);
  fs::create_directories(folder);
  base::write_atomically(folder / "failure.txt", why + "\n");
  directory_.log(fmt::format("{}: failed: {}", one.run.folder, why));
  one.status = RunStatus::failed;
  one.failure = why;
}

}  // namespace cautious::study
