#include "study/plan_check.h"

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include <cautious/error.h>

#include "base/text.h"
#include "study/plan_keys.h"

namespace cautious::study {
namespace {

constexpr double kMostRuns = 100000;

[[noreturn]] void refuse(const std::string& message) { throw Error(Fault::usage, message); }

std::string part_of(std::string_view kind, std::size_t place, std::string_view key = "") {
  return key.empty() ? fmt::format("{} {}", kind, place) : fmt::format("{} {} {}", kind, place, key);
}

std::vector<std::string_view> names_of(const Plan& plan) {
  std::vector<std::string_view> names;
  for (const Arm& arm : plan.arms) names.push_back(arm.name);
  return names;
}

void check_name(const std::string& before, const std::string& name) {
  constexpr std::size_t kLongest = 64;
  const auto good = [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || c == '-' || c == '_' || c == '+' || c == '.';
  };
  if (!name.empty() && name.size() <= kLongest && std::ranges::all_of(name, good)) return;
  refuse(fmt::format("{}name is {}; valid: 1 to {} letters, digits, '-', '_', '+' and '.'", before, base::in_quotes(name), kLongest));
}

void check_names(const Plan& plan, const PlanLines& lines) {
  if (plan.arms.empty()) refuse(fmt::format("{}there is no arm; write [[arm]] and name = \"...\"", lines.before("arm")));
  for (std::size_t i = 0; i < plan.arms.size(); ++i) {
    const std::string part = part_of("arm", i, "name");
    check_name(lines.before(part), plan.arms[i].name);
    for (std::size_t j = 0; j < i; ++j) {
      if (plan.arms[j].name != plan.arms[i].name) continue;
      refuse(fmt::format("{}an arm named '{}' is there already{}; choose another name", lines.before(part), plan.arms[i].name,
                         lines.behind(part_of("arm", j, "name"))));
    }
  }
}

void check_settings(const Overrides& settings, std::string_view part, const PlanLines& lines) {
  std::set<std::string> seen;
  for (const auto& [key, value] : settings) {
    const std::string before = lines.before(fmt::format("{} {}", part, key));
    check_setting(before, key, value);
    if (!seen.insert(key).second) refuse(fmt::format("{}{} is set twice", before, key));
  }
}

void check_grid(const Plan& plan, const PlanLines& lines) {
  std::set<std::string> seen;
  for (const Axis& axis : plan.grid) {
    const std::string before = lines.before("grid " + axis.key);
    std::set<std::string> values;
    for (const std::string& value : axis.values) {
      check_setting(before, axis.key, value);
      if (!values.insert(value).second) refuse(fmt::format("{}{} has {} twice", before, axis.key, base::in_quotes(value)));
    }
    if (values.empty()) {
      refuse(fmt::format("{}{} has no values; write them between [ and ], or remove the axis", before, axis.key));
    }
    if (!seen.insert(axis.key).second) refuse(fmt::format("{}{} is an axis twice", before, axis.key));
  }
}

// The axis that decides the same as the key, if any.
const Axis* axis_of(const Plan& plan, std::string_view key) {
  const auto found = std::ranges::find_if(plan.grid, [&](const Axis& axis) { return compete(axis.key, key); });
  return found == plan.grid.end() ? nullptr : &*found;
}

// The grid decides its keys for every arm that has it, so nothing else may.
void check_layers(const Plan& plan, const PlanLines& lines) {
  for (std::size_t i = 0; i < plan.arms.size(); ++i) {
    for (const auto& [key, value] : plan.arms[i].overrides) {
      const Axis* axis = plan.arms[i].grid ? axis_of(plan, key) : nullptr;
      if (!axis) continue;
      refuse(fmt::format("{}arm '{}' sets {}, but the grid sets {}{}; remove one of them, or give the arm grid = false",
                         lines.before(part_of("arm", i, key)), plan.arms[i].name, key, axis->key,
                         lines.behind("grid " + axis->key)));
    }
  }
  if (std::ranges::any_of(plan.arms, [](const Arm& arm) { return !arm.grid; })) return;
  for (const auto& [key, value] : plan.base) {
    if (const Axis* axis = axis_of(plan, key)) {
      refuse(fmt::format("{}[base] sets {}, but the grid sets {}{} for every arm; remove one of them",
                         lines.before("base " + key), key, axis->key, lines.behind("grid " + axis->key)));
    }
  }
}

void check_control(const Plan& plan, std::size_t place, const PlanLines& lines) {
  const Arm& arm = plan.arms[place];
  const bool density = !arm.density_of.empty();
  const std::string_view key = density ? "density_of" : "budget_of";
  const std::string& name = density ? arm.density_of : arm.budget_of;
  const std::string before = lines.before(part_of("arm", place, key));
  const auto names = names_of(plan);
  if (density && !arm.budget_of.empty()) refuse(fmt::format("{}density_of and budget_of are both set; keep one", before));
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) refuse(fmt::format("{}{}: {}", before, key, base::unknown("arm", name, names)));
  const Arm& other = plan.arms[static_cast<std::size_t>(found - names.begin())];
  if (&other == &arm) refuse(fmt::format("{}{} is the arm itself; name the arm that it is a control of", before, key));
  if (!other.density_of.empty() || !other.budget_of.empty()) {
    refuse(fmt::format("{}{} is '{}', which is a control itself; name the arm that it follows: '{}'", before, key, name,
                       other.density_of.empty() ? other.budget_of : other.density_of));
  }
  if (arm.grid != other.grid) {
    refuse(fmt::format("{}grid is {}, but {} for arm '{}', which this one follows point by point; remove the key",
                       lines.before(part_of("arm", place, "grid")), arm.grid, other.grid, name));
  }
  for (const auto& [own, value] : arm.overrides) {
    if (!comes_from_followed(arm, own)) continue;
    refuse(fmt::format("{}arm '{}' sets {}, which {} decides; remove one of them", lines.before(part_of("arm", place, own)),
                       arm.name, own, key));
  }
}

void check_seeds(const Plan& plan, const PlanLines& lines) {
  const std::string before = lines.before("seeds");
  if (plan.seeds.empty()) refuse(fmt::format("{}there are no seeds; write seeds = [0, 1, 2], or seeds = 3", before));
  std::set<std::uint64_t> seen;
  for (const std::uint64_t seed : plan.seeds) {
    constexpr std::uint64_t kLargest = std::numeric_limits<std::int64_t>::max();
    if (seed > kLargest) refuse(fmt::format("{}seed {} is too large; valid: [0, 2^63)", before, seed));
    if (!seen.insert(seed).second) refuse(fmt::format("{}seed {} is there twice", before, seed));
  }
}

void check_contrasts(const Plan& plan, const PlanLines& lines) {
  const auto names = names_of(plan);
  for (std::size_t i = 0; i < plan.contrasts.size(); ++i) {
    const Contrast& contrast = plan.contrasts[i];
    for (const auto& [key, name] : {std::pair<std::string_view, std::string_view>{"a", contrast.a}, {"b", contrast.b}}) {
      const std::string before = lines.before(part_of("contrast", i, key));
      if (std::ranges::find(names, name) == names.end())
        refuse(fmt::format("{}{}: {}", before, key, base::unknown("arm", name, names)));
    }
    if (contrast.a == contrast.b) {
      refuse(fmt::format("{}a and b are both '{}'; name two arms", lines.before(part_of("contrast", i)), contrast.a));
    }
  }
}

void check_size(const Plan& plan, const PlanLines& lines) {
  auto runs = static_cast<double>(plan.arms.size()) * static_cast<double>(plan.seeds.size());
  for (const Axis& axis : plan.grid) runs *= static_cast<double>(axis.values.size());
  if (runs > kMostRuns) {
    refuse(fmt::format("{}arms, grid and seeds make {:.6g} runs; valid: at most {}", lines.before(""), runs, kMostRuns));
  }
}

}  // namespace

bool comes_from_followed(const Arm& control, std::string_view key) {
  constexpr std::array<std::string_view, 4> kMask{"optimizer.decay", "optimizer.density", "optimizer.rest.decay",
                                                  "optimizer.rest.density"};
  const bool strength = key == "optimizer.coupling" || key == "optimizer.rest.coupling";
  return std::ranges::find(kMask, key) != kMask.end() || (strength && !control.budget_of.empty());
}

const Arm* followed_by(const Plan& plan, const Arm& arm) {
  const std::string& name = arm.density_of.empty() ? arm.budget_of : arm.density_of;
  const auto found = std::ranges::find(plan.arms, name, &Arm::name);
  return name.empty() || found == plan.arms.end() ? nullptr : &*found;
}

void check(const Plan& plan, const PlanLines& lines) {
  check_names(plan, lines);
  check_settings(plan.base, "base", lines);
  check_grid(plan, lines);
  for (std::size_t i = 0; i < plan.arms.size(); ++i) {
    check_settings(plan.arms[i].overrides, part_of("arm", i), lines);
    if (!plan.arms[i].density_of.empty() || !plan.arms[i].budget_of.empty()) check_control(plan, i, lines);
  }
  check_layers(plan, lines);
  check_seeds(plan, lines);
  check_contrasts(plan, lines);
  check_size(plan, lines);
}

}  // namespace cautious::study
