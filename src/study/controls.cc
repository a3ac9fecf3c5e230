#include "study/controls.h"

#include <algorithm>

#include "run/decay_trace.h"

namespace cautious::study {

run::RunConfig Controls::config_of(const PlannedRun& run) const {
  run::RunConfig config = run.config;
  if (run.follows < 0) return config;
  const auto arm = std::ranges::find(plan_.arms, run.arm, &Arm::name);
  const bool density = arm != plan_.arms.end() && !arm->density_of.empty();
  const std::filesystem::path followed = directory_.run(runs_[static_cast<std::size_t>(run.follows)].run);
  (density ? config.optimizer.density_from : config.optimizer.budget_from) = followed.string();
  return config;
}

bool Controls::must_begin_again(std::size_t run) const {
  const FinishedRun& one = runs_[run];
  const std::filesystem::path folder = directory_.run(one.run), file = folder / "config.toml";
  if (one.status == RunStatus::diverged || !std::filesystem::exists(file)) return false;
  if (is_awaited(run) && !std::filesystem::exists(folder / run::kDecayTrace)) return true;
  if (one.run.follows < 0 || one.status == RunStatus::done) return false;
  const run::RunConfig now = config_of(one.run), then = run::read_config({.file = file, .preset = "", .overrides = {}});
  return now.optimizer.density_from != then.optimizer.density_from || now.optimizer.budget_from != then.optimizer.budget_from;
}

// Whether a run follows it that has not ended.
bool Controls::is_awaited(std::size_t run) const {
  return std::ranges::any_of(runs_, [&](const FinishedRun& other) {
    return other.run.follows == static_cast<std::ptrdiff_t>(run) && other.status != RunStatus::done &&
           other.status != RunStatus::diverged;
  });
}

}  // namespace cautious::study
