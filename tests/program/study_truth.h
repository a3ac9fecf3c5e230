// Studies with a known truth: losses drawn for every run of a plan, in memory or as files.
#pragma once

#include <cmath>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <map>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "simulated.h"
#include "study/results.h"

namespace cautious::study {

// none, plain, cwd and a random mask of the density of cwd; `lambdas` and `cautious` are TOML's lists of weight decays.
inline std::string truth_plan(std::size_t seeds, const std::string& lambdas, const std::string& cautious) {
  return fmt::format(R"(title = "Does CWD help?"
seeds = {}
tune_seeds = 2
[base]
model.preset = "nano-100k"
data.path = "gcide"
[grid]
"optimizer.weight_decay" = {}
[[arm]]
name = "none"
optimizer.decay = "none"
grid = false
[[arm]]
name = "plain"
[[arm]]
name = "cwd"
optimizer.decay = "cautious"
grid."optimizer.weight_decay" = {}
[[arm]]
name = "random"
density_of = "cwd"
[[contrast]]
a = "cwd"
b = "plain"
best = true
[[contrast]]
a = "cwd"
b = "random"
best = true
)",
                     seeds, lambdas, cautious);
}

// Mean loss of an arm at a weight decay; that without decay must not depend on the arm.
using Truth = std::function<double(const std::string& arm, double weight_decay)>;

class SimulatedStudy {
 public:
  static constexpr double kSeedSd = 0.007, kResidualSd = 0.0047;  // as measured in docs/results/ablation

  explicit SimulatedStudy(Plan plan) {
    results_.plan = std::move(plan);
    for (PlannedRun& run : expand(results_.plan)) {
      FinishedRun& added = results_.runs.emplace_back();
      added.run = std::move(run);
    }
  }

  // A new study of the same plan. Runs in one folder are one run.
  const Results& draw(Normal& normal, const Truth& truth) {
    std::map<std::uint64_t, double> seeds;
    std::map<std::string, double> residuals;
    for (FinishedRun& run : results_.runs) {
      const auto [seed, new_seed] = seeds.try_emplace(run.run.seed, 0);
      if (new_seed) seed->second = kSeedSd * normal();
      const auto [residual, new_run] = residuals.try_emplace(run.run.folder, 0);
      if (new_run) residual->second = kResidualSd * normal();
      run.loss = 1.5 + truth(run.run.arm, weight_decay_of(run.run)) + seed->second + residual->second;
      run.decay_budget = budget_of(run.run);
      run.status = run.run.candidate ? RunStatus::waiting : RunStatus::done;
    }
    settle(results_.plan, results_.runs);
    for (FinishedRun& run : results_.runs) {
      if (run.status == RunStatus::waiting) run.status = RunStatus::done;
    }
    return results_;
  }

  // What the runs would have left behind.
  void write(const std::filesystem::path& directory) const {
    std::filesystem::create_directories(directory / "runs");
    std::ofstream(directory / "plan.toml") << to_toml(results_.plan);
    for (const FinishedRun& run : results_.runs) {
      if (run.status != RunStatus::done) continue;
      const auto folder = directory / "runs" / run.run.folder;
      std::filesystem::create_directories(folder);
      std::ofstream(folder / "summary.json")
          << fmt::format(R"({{"status":"done","val_loss":{},"val_bpb":2,"val_accuracy":0.5,"decay_budget":{},"seconds":1}})",
                         run.loss, run.decay_budget);
    }
  }

 private:
  static double weight_decay_of(const PlannedRun& run) {
    const bool none = run.arm == "none";
    return none ? 0 : run.config.optimizer.recipe.weight_decay;
  }

  static double budget_of(const PlannedRun& run) { return (run.arm == "plain" ? 1000 : 400) * weight_decay_of(run); }

  Results results_;
};

}  // namespace cautious::study
