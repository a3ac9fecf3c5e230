#include "study/halving.h"

#include <algorithm>

#include <fmt/format.h>

#include <cautious/error.h>

#include "run/config_table.h"
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
    name += fmt::format("{}{}-{}", name.empty() ? "" : "+", run::without_section(key), value);
  }
  return name;
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
  std::vector<std::pair<Standing, Arm>> ranked;
  for (const Arm& arm : plan.arms) {
    const Standing standing = standing_of(losses_of(results, arm.name, {}));
    if (standing.done > 0) ranked.emplace_back(standing, arm);
  }
  if (ranked.empty()) {
    throw Error(Fault::failure, fmt::format("{}: no run of this stage is done; see its log.txt", results.directory.string()));
  }
  std::ranges::stable_sort(ranked, [](const auto& a, const auto& b) { return a.first.ahead_of(b.first); });
  ranked.resize(std::min(ranked.size(), kept(plan.arms.size())));
  Plan next = plan;
  next.arms.clear();
  for (auto& [standing, arm] : ranked) next.arms.push_back(std::move(arm));
  const std::string steps = fmt::format("{}", 2 * steps_of(runs_of_one_seed(plan).front().config));
  put(next.base, {{"train.steps", steps}});
  return next;
}

}  // namespace cautious::study
