// Studies in memory, out of the losses of their arms: for the tests of verdicts.
#pragma once

#include <cmath>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <cautious/recipe.h>

#include "study/results.h"

namespace cautious::study {

inline constexpr const char* kLambda = "optimizer.weight_decay";

inline Overrides at_lambda(const std::string& lambda) { return lambda.empty() ? Overrides{} : Overrides{{kLambda, lambda}}; }

// Losses of an arm at a weight decay, by seed.
using ArmLosses = std::map<std::pair<std::string, std::string>, std::vector<double>>;

inline FinishedRun run_of(const std::string& arm, const std::string& lambda, std::uint64_t seed, double loss) {
  FinishedRun run;
  run.run.arm = arm;
  run.run.point = at_lambda(lambda);
  run.run.seed = seed;
  run.status = std::isnan(loss) ? RunStatus::diverged : RunStatus::done;
  run.loss = loss;
  if (arm != "plain") run.run.config.optimizer.recipe.decay = decay(arm == "none" ? "none" : "cautious");
  return run;
}

inline void add_seeds(Results& results, const ArmLosses& losses, bool tuning) {
  std::vector<std::uint64_t>& seeds = tuning ? results.plan.tune_seeds : results.plan.seeds;
  const std::size_t count = losses.empty() ? 0 : losses.begin()->second.size();
  for (std::size_t i = 0; i < count; ++i) seeds.push_back(i + (tuning ? 100 : 0));
  for (const auto& [where, values] : losses) {
    for (std::size_t i = 0; i < count; ++i) {
      results.runs.push_back(run_of(where.first, where.second, seeds[i], values[i]));
      results.runs.back().run.tuning = tuning;
    }
  }
}

// The plan's arms are those with losses; `random` is a control of cwd.
inline Results study_of(const ArmLosses& losses, std::vector<Contrast> contrasts, const ArmLosses& tuning = {}) {
  Results results;
  Plan& plan = results.plan;
  plan.grid = {{kLambda, {"0", "0.1", "1", "3"}}};
  plan.contrasts = std::move(contrasts);
  for (const auto& [where, values] : losses) {
    if (!plan.arms.empty() && plan.arms.back().name == where.first) continue;
    plan.arms.push_back(
        {.name = where.first, .overrides = {}, .density_of = where.first == "random" ? "cwd" : "", .budget_of = ""});
  }
  add_seeds(results, losses, false);
  add_seeds(results, tuning, true);
  return results;
}

inline const Contrast kBest{.a = "cwd", .b = "plain", .best = true, .primary = true};
inline const Contrast kControl{.a = "cwd", .b = "random", .best = true, .primary = true};

// Four seeds of cwd, plain and random at one point; plain is 0.1 above cwd, random `above`.
inline ArmLosses matched(double above) {
  return {{{"cwd", "1"}, {1.90, 1.91, 1.921, 1.889}},
          {{"plain", "1"}, {2.00, 2.012, 2.02, 1.99}},
          {{"random", "1"}, {1.901 + above, 1.908 + above, 1.922 + above, 1.887 + above}}};
}

}  // namespace cautious::study
