// From a plan to its runs: base, then arm, then grid point, then seed; a later layer's key replaces an earlier one's.
#include "study/plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <variant>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/sha256.h"
#include "run/config_table.h"
#include "study/report.h"

namespace cautious::study {
namespace {

// With a budget, the tensors of [optimizer.rest] that do not decay at all stay so; with densities, theirs is 0.
void drop_decided(Overrides& all, const Arm& control) {
  std::erase_if(all, [&](const auto& entry) {
    const bool stays = entry.first == "optimizer.rest.decay" && entry.second == "none" && !control.budget_of.empty();
    return decided_by_reference(control, entry.first) && !stays;
  });
}

// What makes a run a control; the directory is filled in when there is one.
Overrides control_of(const Arm& control) {
  if (!control.density_of.empty()) return {{"optimizer.decay", "random"}, {"optimizer.density_from", control.density_of}};
  return {{"optimizer.decay", "decoupled"}, {"optimizer.coupling", "plain"}, {"optimizer.budget_from", control.budget_of}};
}

std::vector<Overrides> points_in(const Plan& plan, const Arm& arm) {
  std::vector<Overrides> points{{}};
  for (const Axis& axis : axes_of(plan, arm)) {
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

Overrides settings_of(const Plan& plan, const Arm& arm, const Overrides& point) {
  Overrides all = plan.base;
  const Arm* const reference = reference_of(plan, arm);
  put(all, reference ? reference->overrides : arm.overrides);
  put(all, point);
  if (reference) {
    drop_decided(all, arm);
    put(all, control_of(arm));
    put(all, arm.overrides);
  }
  return all;
}

bool is_reference(const Plan& plan, const Arm& arm) {
  return std::ranges::any_of(plan.arms, [&](const Arm& other) { return reference_of(plan, other) == &arm; });
}

run::RunConfig config_of(const Plan& plan, const Arm& arm, const Overrides& point, std::uint64_t seed, bool tuning) {
  Overrides settings = settings_of(plan, arm, point);
  put(settings, {{"train.seed", fmt::format("{}", seed)}});
  const bool external = std::ranges::find(settings, std::pair<std::string, std::string>("task", "external")) != settings.end();
  if (!external) put(settings, {{"train.threads", "1"}});
  if (!tuning && is_reference(plan, arm)) put(settings, {{"log.decay_trace", "true"}});
  const std::string who = fmt::format("arm '{}'{}", arm.name, point.empty() ? "" : " at " + point_text(point));
  run::RunConfig config = base::with_context(
      who, [&] { return run::read_config({.files = {}, .preset = "", .overrides = settings, .typed = false}); });
  config.optimizer.density_from.clear();
  config.optimizer.budget_from.clear();
  return config;
}

// The keys of benchmarks, which do nothing without eval.tasks.
bool is_benchmarks(std::string_view key) {
  return key == "eval.tasks" || key == "eval.data" || key == "eval.shots" || key == "eval.limit";
}

// Without weight decay it does not matter which coordinates would decay.
void forget_idle_decay(Recipe& recipe) {
  if (recipe.weight_decay > 0 && !std::holds_alternative<None>(recipe.decay)) return;
  recipe.decay = None{};
  recipe.coupling = Coupling::plain;
  recipe.weight_decay = 0;
}

// Keys and values alone: comments and help texts may change.
std::string hash_of(run::RunConfig config, const std::string& reference) {
  forget_idle_decay(config.optimizer.recipe);
  forget_idle_decay(config.optimizer.rest);
  std::string text;
  for (const run::ConfigKey& key : run::config_keys(config)) {
    if (is_benchmarks(key.name) && config.eval.tasks.empty()) continue;
    if (key.name == "train.precision" && config.train.precision == run::Precision::f32) continue;  // younger than many studies
    if (changes_numbers(key.name)) text += fmt::format("{} = {}\n", key.name, key.value);
  }
  return base::sha256_of(text + reference).substr(0, 16);
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

// A seed's runs so far, found by what they are and by what they compute.
struct Planned {
  std::vector<PlannedRun> runs;
  std::map<std::pair<std::string, Overrides>, std::ptrdiff_t> at;  // arm and point
  std::map<std::string, std::string> folders;                      // by hash, of runs that another may be
};

std::string part_of(const Plan& plan, const Arm& arm) { return fmt::format("arm {}", &arm - plan.arms.data()); }

// All that an arm computes for a seed: a hash for each point.
using Hashes = std::vector<std::string>;

void check_different(const Plan& plan, const std::vector<PlannedRun>& runs) {
  std::map<std::string, Hashes> of_arm;
  for (const PlannedRun& run : runs) of_arm[run.arm].push_back(run.hash);
  std::map<Hashes, const Arm*> seen;
  for (const Arm& arm : plan.arms) {
    const Hashes& hashes = of_arm[arm.name];
    const auto [other, added] = seen.emplace(hashes, &arm);
    if (!added) {
      plan.lines.refuse(part_of(plan, arm),
                        fmt::format("arm '{}' is the same configuration as arm '{}'{}; change or remove one of them", arm.name,
                                    other->second->name, plan.lines.in_line(part_of(plan, *other->second))));
    }
    Hashes sorted = hashes;
    std::ranges::sort(sorted);
    if (std::ranges::adjacent_find(sorted) == sorted.end()) continue;
    plan.lines.refuse(part_of(plan, arm),
                      fmt::format("arm '{}' is the same configuration at different points of the grid; remove what makes no "
                                  "difference from the grid, or give the arm grid = false",
                                  arm.name));
  }
}

// Language models and image classifiers have no measure in common.
void check_one_task(const Plan& plan, const std::vector<PlannedRun>& runs) {
  for (const PlannedRun& run : runs) {
    const PlannedRun& first = runs.front();
    if (run.config.task == first.config.task) continue;
    const auto arm = std::ranges::find(plan.arms, run.arm, &Arm::name);
    plan.lines.refuse(
        part_of(plan, *arm),
        fmt::format("task of arm '{}' is {}, that of arm '{}' is {}: they cannot be compared; make two plans", run.arm,
                    cautious::name_of(run.config.task), first.arm, cautious::name_of(first.config.task)));
  }
}

void check_objective(const Plan& plan, const std::vector<PlannedRun>& runs) {
  plan.lines.at("objective", [&] { std::ranges::for_each(runs, [](const PlannedRun& run) { (void)measure_of(run); }); });
}

void check_figure(const Plan& plan, const std::vector<PlannedRun>& runs) {
  if (plan.figure.empty()) return;
  const std::vector<std::string> names = lead_figures(plan, runs.front().config.task);
  if (std::ranges::find(names, plan.figure) != names.end()) return;
  const std::vector<std::string_view> choices(names.begin(), names.end());
  plan.lines.refuse("figure", base::unknown("figure", plan.figure, choices));
}

// What a control takes from its reference run must be there for its every step and tensor. External runs are asked when they
// are made.
void check_reference(const PlannedRun& run, const PlannedRun& reference) {
  if (run.config.task == run::TaskKind::external) return;
  const std::int64_t steps = steps_of(run.config), most = steps_of(reference.config);
  if (steps > most) {
    throw Error(Fault::usage, fmt::format("arm '{}' has {} steps, but its reference arm '{}' has {}; remove what makes it "
                                          "longer",
                                          run.arm, steps, reference.arm, most));
  }
  const auto same = [](const model::Shape& a, const model::Shape& b) { return a.name == b.name && a.sides == b.sides; };
  const auto own = run::parameter_shapes(run.config), other = run::parameter_shapes(reference.config);
  if (std::ranges::equal(own, other, same)) return;
  throw Error(Fault::usage, fmt::format("arm '{}' has another model than its reference arm '{}'; remove its keys of model",
                                        run.arm, reference.arm));
}

// A run that others follow has a trace to write, so it is never another's.
void share_folder(PlannedRun& run, Planned& before) {
  if (run.config.log.decay_trace || run.follows >= 0) return;
  const auto [same, first] = before.folders.emplace(run.hash, run.folder);
  if (first) return;
  run.folder = same->second;
  run.share = 0;
}

PlannedRun& add_run(const Plan& plan, const Arm& arm, const Overrides& point, std::uint64_t seed, bool tuning,
                    Planned& before) {
  PlannedRun run{.arm = arm.name,
                 .point = point,
                 .seed = seed,
                 .tuning = tuning,
                 .config = config_of(plan, arm, point, seed, tuning),
                 .objective = plan.objective,
                 .hash = {},
                 .folder = {}};
  std::string kind;
  if (const Arm* const other = reference_of(plan, arm)) {
    run.follows = before.at.at({other->name, point});
    const PlannedRun& reference = before.runs.at(static_cast<std::size_t>(run.follows));
    check_reference(run, reference);
    kind = fmt::format("{} {}\n", arm.density_of.empty() ? "budget_of" : "density_of", reference.hash);
  }
  run.hash = hash_of(run.config, kind);
  run.folder = folder_of(run);
  share_folder(run, before);
  before.at.emplace(std::pair(arm.name, point), std::ssize(before.runs));
  return before.runs.emplace_back(std::move(run));
}

// Whether the arm runs on a tuning seed: it has points to choose from, and does the choosing.
bool is_tuned(const Plan& plan, const Arm& arm) { return arm.chooser() == arm.name && count_points(plan, arm) > 1; }

bool point_by_point(const Plan& plan, const Arm& arm) {
  return std::ranges::any_of(plan.contrasts, [&](const Contrast& contrast) {
    return !contrast.best && (contrast.a == arm.name || contrast.b == arm.name);
  });
}

// Of an arm's candidates one is run: as a rule one that no other arm makes as well.
void share_among_candidates(std::vector<PlannedRun>& runs) {
  std::map<std::string, double> own;
  for (const PlannedRun& run : runs) own[run.arm] += run.candidate && run.share > 0 ? 1 : 0;
  for (PlannedRun& run : runs) {
    if (run.candidate && run.share > 0) run.share = 1 / own[run.arm];
  }
}

std::vector<PlannedRun> runs_of(const Plan& plan, std::uint64_t seed, bool tuning) {
  Planned planned;
  for (const std::pair<const Arm*, Overrides>& at : arms_at_points(plan)) {
    const Arm& arm = *at.first;
    if (tuning && !is_tuned(plan, arm)) continue;
    const std::size_t points = count_points(plan, arm);
    plan.lines.at(part_of(plan, arm), [&] {
      PlannedRun& run = add_run(plan, arm, at.second, seed, tuning, planned);
      run.candidate = !tuning && !plan.tune_seeds.empty() && points > 1 && !point_by_point(plan, arm);
    });
  }
  share_among_candidates(planned.runs);
  return std::move(planned.runs);
}

}  // namespace

bool changes_numbers(std::string_view key) {
  return !key.starts_with("log.") && !key.starts_with("checkpoint.") && key != "data.cache" && key != "data.workers" &&
         key != "objective.unit" && key != "objective.target" && key != "task" &&  // it follows from the preset
         key != "optimizer.density_from" && key != "optimizer.budget_from" && key != "train.timeout" && key != "train.device";
}

std::vector<std::uint64_t> tuning_seeds(std::size_t count) {
  constexpr std::uint64_t kFirst = 100000;
  std::vector<std::uint64_t> seeds(count);
  std::iota(seeds.begin(), seeds.end(), kFirst);
  return seeds;
}

const std::vector<Axis>& axes_of(const Plan& plan, const Arm& arm) {
  static const std::vector<Axis> none;
  if (!arm.grid) return none;
  if (!arm.axes.empty()) return arm.axes;
  const auto other = std::ranges::find(plan.arms, arm.chooser(), &Arm::name);
  return other == plan.arms.end() || other->axes.empty() ? plan.grid : other->axes;
}

std::size_t count_points(const Plan& plan, const Arm& arm) {
  std::size_t points = 1;
  for (const Axis& axis : axes_of(plan, arm)) points *= axis.values.size();
  return points;
}

bool chooses(const Plan& plan) {
  return std::ranges::any_of(plan.arms, [&](const Arm& arm) {
    const auto names = [&](const Contrast& contrast) {
      return contrast.best && (contrast.a == arm.name || contrast.b == arm.name);
    };
    return count_points(plan, arm) > 1 && std::ranges::any_of(plan.contrasts, names);
  });
}

std::string point_text(const Overrides& point) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : point) parts.push_back(fmt::format("{}={}", run::without_section(key), value));
  return fmt::format("{}", fmt::join(parts, ", "));
}

std::string name_of(const std::string& arm, const Overrides& point) {
  std::string name = arm;
  for (const auto& [key, value] : point) name += fmt::format(" {}={}", run::without_section(key), value);
  return name;
}

std::vector<std::pair<const Arm*, Overrides>> arms_at_points(const Plan& plan) {
  std::vector<std::pair<const Arm*, Overrides>> all;
  for (const bool controls : {false, true}) {
    for (const Arm& arm : plan.arms) {
      if ((reference_of(plan, arm) != nullptr) != controls) continue;
      for (Overrides& point : points_in(plan, arm)) all.emplace_back(&arm, std::move(point));
    }
  }
  return all;
}

std::vector<PlannedRun> expand(const Plan& plan) {
  check(plan);
  std::vector<PlannedRun> runs;
  const auto add = [&](const std::vector<std::uint64_t>& seeds, bool tuning) {
    for (const std::uint64_t seed : seeds) {
      const auto first = static_cast<std::ptrdiff_t>(runs.size());
      std::vector<PlannedRun> of_seed = runs_of(plan, seed, tuning);
      if (!tuning && seed == seeds.front()) check_different(plan, of_seed);
      for (PlannedRun& run : of_seed) {
        if (run.follows >= 0) run.follows += first;
        runs.push_back(std::move(run));
      }
    }
  };
  add(plan.tune_seeds, true);
  add(plan.seeds, false);
  check_one_task(plan, runs);
  check_objective(plan, runs);
  check_figure(plan, runs);
  return runs;
}

}  // namespace cautious::study
