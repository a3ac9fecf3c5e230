// From a plan to its runs: base, then arm, then grid point, then seed; a later layer's key replaces an earlier one's.
#include <algorithm>
#include <map>

#include <cautious/error.h>

#include "base/sha256.h"
#include "base/text.h"
#include "run/config_table.h"
#include "study/plan_check.h"
#include "study/plan_keys.h"

namespace cautious::study {
namespace {

// With a budget, the tensors of [optimizer.rest] that do not decay at all stay so; with densities, theirs is 0.
void drop_followed(Overrides& all, const Arm& control) {
  std::erase_if(all, [&](const auto& entry) {
    const bool stays = entry.first == "optimizer.rest.decay" && entry.second == "none" && !control.budget_of.empty();
    return comes_from_followed(control, entry.first) && !stays;
  });
}

// What makes a run a control; the directory is filled in when there is one.
Overrides control_of(const Arm& control) {
  if (!control.density_of.empty()) return {{"optimizer.decay", "random"}, {"optimizer.density_from", control.density_of}};
  return {{"optimizer.decay", "decoupled"}, {"optimizer.coupling", "plain"}, {"optimizer.budget_from", control.budget_of}};
}

std::vector<Overrides> points_in(const Plan& plan, const Arm& arm) {
  std::vector<Overrides> points{{}};
  if (!arm.grid) return points;
  for (const Axis& axis : plan.grid) {
    std::vector<Overrides> longer;
    for (const Overrides& point : points) {
      for (const std::string& value : axis.values) {
        longer.push_back(point);
        longer.back().emplace_back(axis.key, value);
      }
    }
    points = std::move(longer);
  }
  return points;
}

std::string text_of(const Overrides& point) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : point) parts.push_back(fmt::format("{}={}", run::without_section(key), value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

Overrides settings_of(const Plan& plan, const Arm& arm, const Overrides& point) {
  Overrides all = plan.base;
  const Arm* followed = followed_by(plan, arm);
  if (followed) put(all, followed->overrides);
  if (!followed) put(all, arm.overrides);
  put(all, point);
  if (followed) {
    drop_followed(all, arm);
    put(all, control_of(arm));
    put(all, arm.overrides);
  }
  return all;
}

bool is_followed(const Plan& plan, const Arm& arm) {
  return std::ranges::any_of(plan.arms, [&](const Arm& other) { return followed_by(plan, other) == &arm; });
}

run::RunConfig config_of(const Plan& plan, const Arm& arm, const Overrides& point, std::uint64_t seed,
                         const std::string& before) {
  Overrides settings = settings_of(plan, arm, point);
  put(settings, {{"train.seed", fmt::format("{}", seed)}, {"train.threads", "1"}});
  if (is_followed(plan, arm)) put(settings, {{"log.decay_trace", "true"}});
  try {
    run::RunConfig config = run::read_config({.file = {}, .preset = "", .overrides = settings, .typed = false});
    config.optimizer.density_from.clear();
    config.optimizer.budget_from.clear();
    return config;
  } catch (const Error& error) {
    throw Error(error.fault(),
                fmt::format("{}arm '{}'{}: {}", before, arm.name, point.empty() ? "" : " at " + text_of(point), error.what()));
  }
}

// Whether the key has an effect on what a run computes.
bool changes_numbers(std::string_view key) {
  return !key.starts_with("log.") && !key.starts_with("checkpoint.") && key != "data.cache" &&
         key != "optimizer.density_from" && key != "optimizer.budget_from";
}

// Keys and values alone: comments and help texts may change.
std::string hash_of(const run::RunConfig& config, const std::string& followed) {
  std::string text;
  for (const run::ConfigKey& key : run::config_keys(config)) {
    if (changes_numbers(key.name)) text += fmt::format("{} = {}\n", key.name, key.value);
  }
  return base::sha256_of(text + followed).substr(0, 16);
}

std::string folder_of(const PlannedRun& run) {
  constexpr std::size_t kLongest = 100;
  std::string name = run.arm;
  for (const auto& [key, value] : run.point) name += fmt::format("_{}={}", run::without_section(key), value);
  for (char& c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!plain && std::string_view("-_+.=").find(c) == std::string_view::npos) c = '-';
  }
  return fmt::format("{}_seed={}_{}", name.substr(0, kLongest), run.seed, run.hash);
}

// Those that follow none, then those that do.
std::vector<const Arm*> in_order(const Plan& plan) {
  std::vector<const Arm*> arms;
  for (const Arm& arm : plan.arms) arms.push_back(&arm);
  std::ranges::stable_partition(arms, [&](const Arm* arm) { return followed_by(plan, *arm) == nullptr; });
  return arms;
}

std::ptrdiff_t place_of(const std::vector<PlannedRun>& runs, const std::string& arm, const PlannedRun& like) {
  const auto found = std::ranges::find_if(
      runs, [&](const PlannedRun& run) { return run.arm == arm && run.seed == like.seed && run.point == like.point; });
  return found - runs.begin();
}

std::string part_of(const Plan& plan, const Arm& arm) { return fmt::format("arm {}", &arm - plan.arms.data()); }

// All that an arm computes for a seed: a hash for each point.
using Hashes = std::vector<std::string>;

void check_different(const Plan& plan, const std::vector<PlannedRun>& runs, const PlanLines& lines) {
  std::map<std::string, Hashes> of_arm;
  for (const PlannedRun& run : runs) of_arm[run.arm].push_back(run.hash);
  std::map<Hashes, const Arm*> seen;
  for (const Arm& arm : plan.arms) {
    const Hashes& hashes = of_arm[arm.name];
    const auto [other, added] = seen.emplace(hashes, &arm);
    if (!added) {
      throw Error(Fault::usage, fmt::format("{}arm '{}' is the same configuration as arm '{}'{}; change or remove one of them",
                                            lines.before(part_of(plan, arm)), arm.name, other->second->name,
                                            lines.behind(part_of(plan, *other->second))));
    }
    Hashes sorted = hashes;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) != sorted.end()) {
      throw Error(Fault::usage, fmt::format("{}arm '{}' is the same configuration at different points of the grid; remove what "
                                            "makes no difference from the grid, or give the arm grid = false",
                                            lines.before(part_of(plan, arm)), arm.name));
    }
  }
}

// Step by step and tensor by tensor it must be there to follow.
void check_follows(const PlannedRun& run, const PlannedRun& followed, const std::string& before) {
  const std::int64_t steps = steps_of(run.config), most = steps_of(followed.config);
  if (steps > most) {
    throw Error(Fault::usage,
                fmt::format("{}arm '{}' has {} steps, but arm '{}', which it follows, has {}; remove what makes it "
                            "longer",
                            before, run.arm, steps, followed.arm, most));
  }
  const auto same = [](const model::Shape& a, const model::Shape& b) { return a.name == b.name && a.sides == b.sides; };
  if (!std::ranges::equal(model::parameter_shapes(run.config.model.shape), model::parameter_shapes(followed.config.model.shape),
                          same)) {
    throw Error(Fault::usage,
                fmt::format("{}arm '{}' has another model than arm '{}', which it follows; remove its keys of model", before,
                            run.arm, followed.arm));
  }
}

PlannedRun planned(const Plan& plan, const Arm& arm, Overrides point, std::uint64_t seed, const std::vector<PlannedRun>& before,
                   const PlanLines& lines) {
  PlannedRun run{.arm = arm.name, .point = std::move(point), .seed = seed, .config = {}, .hash = {}, .folder = {}};
  const std::string where = lines.before(part_of(plan, arm));
  run.config = config_of(plan, arm, run.point, seed, where);
  std::string followed;
  if (const Arm* other = followed_by(plan, arm)) {
    run.follows = place_of(before, other->name, run);
    const PlannedRun& leader = before.at(static_cast<std::size_t>(run.follows));
    check_follows(run, leader, where);
    followed = fmt::format("{} {}\n", arm.density_of.empty() ? "budget_of" : "density_of", leader.hash);
  }
  run.hash = hash_of(run.config, followed);
  run.folder = folder_of(run);
  return run;
}

}  // namespace

std::vector<PlannedRun> expand(const Plan& plan, const PlanLines& lines) {
  std::vector<PlannedRun> runs;
  for (const std::uint64_t seed : plan.seeds) {
    std::vector<PlannedRun> of_seed;
    const auto first = static_cast<std::ptrdiff_t>(runs.size());
    for (const Arm* arm : in_order(plan)) {
      for (Overrides& point : points_in(plan, *arm)) {
        of_seed.push_back(planned(plan, *arm, std::move(point), seed, of_seed, lines));
      }
    }
    if (first == 0) check_different(plan, of_seed, lines);
    for (PlannedRun& run : of_seed) {
      if (run.follows >= 0) run.follows += first;
      runs.push_back(std::move(run));
    }
  }
  return runs;
}

std::vector<PlannedRun> expand(const Plan& plan) {
  check(plan, {});
  return expand(plan, {});
}

}  // namespace cautious::study
