#include "study/halving.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>

#include "run/config/config_keys.h"
#include "study/plan_keys.h"

namespace cautious::study {
namespace {

std::vector<PlannedRun> runs_of_one_seed(Plan plan) {
  plan.seeds.resize(1);
  return expand(plan);
}

std::string name_of(const std::string& arm, const Overrides& point) {
  std::string name = arm;
  for (const auto& [key, value] : point) {
    name += fmt::format("{}{}-{}", name.empty() ? "" : "+", without_section(key), value);
  }
  return name;
}

double mean_of(const std::vector<double>& losses) {
  double sum = 0;
  std::size_t count = 0;
  for (const double loss : losses) {
    if (std::isnan(loss)) continue;
    sum += loss;
    ++count;
  }
  return count == 0 ? std::nan("") : sum / static_cast<double>(count);
}

}  // namespace

std::size_t kept(std::size_t points) { return (points + 2) / 3; }

Plan without_grid(const Plan& plan) {
  Plan flat = plan;
  flat.arms.clear();
  flat.grid.clear();
  for (const PlannedRun& run : runs_of_one_seed(plan)) {
    Arm arm = *std::ranges::find(plan.arms, run.arm, &Arm::name);
    if (!run.point.empty()) arm.name = name_of(plan.arms.size() == 1 ? "" : run.arm, run.point);
    arm.overrides.insert(arm.overrides.end(), run.point.begin(), run.point.end());
    flat.arms.push_back(std::move(arm));
  }
  return flat;
}

Plan next_stage(const Plan& plan, const Results& results) {
  std::vector<std::pair<double, Arm>> ranked;
  for (const Arm& arm : plan.arms) {
    const double loss = mean_of(losses_of(results, arm.name, {}));
    if (!std::isnan(loss)) ranked.emplace_back(loss, arm);
  }
  if (ranked.empty()) {
    throw Error(Fault::failure, fmt::format("{}: no run of this stage is done; see its log.txt", results.directory.string()));
  }
  std::ranges::stable_sort(ranked, {}, [](const auto& entry) { return entry.first; });
  ranked.resize(std::min(ranked.size(), kept(plan.arms.size())));
  Plan next = plan;
  next.arms.clear();
  for (auto& [loss, arm] : ranked) next.arms.push_back(std::move(arm));
  const std::string steps = fmt::format("{}", 2 * steps_of(runs_of_one_seed(plan).front().config));
  std::erase_if(next.base, [](const auto& entry) { return compete("train.steps", entry.first); });
  next.base.emplace_back("train.steps", steps);
  return next;
}

}  // namespace cautious::study
