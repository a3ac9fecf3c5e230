// What a plan must be before its runs are looked at: names, keys and their values one by one, and what goes together. A run's
// keys depend on its optimizer's rule and decay, so those of all rules and decays are asked.
#include "study/plan.h"

#include <algorithm>
#include <array>
#include <exception>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "run/config_table.h"

namespace cautious::study {
namespace {

struct Setter {
  run::Key key;
  run::RunConfig config;  // one that has the key
};
using Setters = std::map<std::string, std::vector<Setter>, std::less<>>;  // of a key that rules take differently, several

void add(Setters& all, const run::RunConfig& config) {
  for (const run::Key& key : keys_of(config)) {
    std::vector<Setter>& same = all[key.name];
    const auto is_like = [&](const Setter& other) {
      return other.key.valid == key.valid && other.config.optimizer.name == config.optimizer.name;
    };
    if (std::ranges::none_of(same, is_like)) same.push_back({key, config});
  }
}

Setters every_setter() {
  Setters all;
  for (const std::string& name : model::image_preset_names()) {
    run::RunConfig of_images = run::defaults_of(run::TaskKind::image);
    of_images.model.image = model::image_preset(name);
    add(all, of_images);
  }
  add(all, run::defaults_of(run::TaskKind::external));
  run::RunConfig config;
  for (const std::string& name : recipe_names()) {
    for (const std::string& decay_name : decay_names()) {
      config.optimizer.name = name;
      config.optimizer.recipe = recipe(name);
      config.optimizer.recipe.decay = decay(decay_name);
      add(all, config);
    }
    if (!run::works_on_matrices(config.optimizer.recipe.rule)) continue;
    for (const std::string& rest : run::rest_names()) {
      for (const std::string& decay_name : decay_names()) {
        config.optimizer.rest = recipe(rest);
        config.optimizer.rest.decay = decay(decay_name);
        add(all, config);
      }
    }
  }
  return all;
}

const Setters& setters() {
  static const Setters all = every_setter();
  return all;
}

[[noreturn]] void refuse_key(const std::string& key) {
  std::vector<std::string_view> names, endings, siblings;
  for (const auto& [name, same] : setters()) {
    names.push_back(name);
    endings.push_back(run::without_section(name));
    if (run::section_of(name) == run::section_of(key)) siblings.push_back(endings.back());
  }
  const std::string_view ending = run::without_section(key);
  std::string_view meant = base::closest(key, names);
  if (meant.empty()) {
    const auto found = std::ranges::find(endings, base::closest(ending, endings));
    if (found != endings.end()) meant = names[static_cast<std::size_t>(found - endings.begin())];
  }
  const std::string choices = siblings.empty() || run::section_of(key).empty()
                                  ? fmt::format("sections: {}", base::join(run::config_sections()))
                                  : fmt::format("keys of [{}]: {}", run::section_of(key), base::join(siblings));
  const std::string suggestion = meant.empty() ? "" : fmt::format(" did you mean '{}'?", meant);
  throw Error(Fault::usage, fmt::format("no key named {};{} {}", base::in_quotes(key), suggestion, choices), {.key = key});
}

// Keys that are the study's to decide, and how.
constexpr std::array<DecidedKey, 4> kDecided{
    {{"train.seed", "the study sets it to each of its seeds; write seeds = [0, 1, 2] at the top of the plan"},
     {"train.threads", "every run of a study has 1, so that its numbers are the same anywhere; remove it"},
     {"optimizer.density_from", "the study sets it to the reference run; write density_of = \"name of an arm\" in the arm"},
     {"optimizer.budget_from", "the study sets it to the reference run; write budget_of = \"name of an arm\" in the arm"}}};

// An Error if no run has the key or takes the value, or if the study decides the key.
void check_setting(const std::string& key, const std::string& value) {
  refuse_decided(key, kDecided);
  const auto found = setters().find(key);
  if (found == setters().end()) refuse_key(key);
  std::exception_ptr first;
  for (const Setter& setter : found->second) {
    try {
      run::RunConfig config = setter.config;
      setter.key.set(config, key, {run::ConfigValue::Kind::typed, value});
      return;
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  std::rethrow_exception(first);
}

// Whether two keys decide the same: one and the same, or train.steps and train.tokens.
bool compete(std::string_view key, std::string_view other) {
  const auto rivals_in = [&](run::TaskKind task) { return std::ranges::count(run::rivals_of(task, key), other) > 0; };
  return key == other || rivals_in(run::TaskKind::text) || rivals_in(run::TaskKind::image);
}

std::string part_of(std::string_view kind, std::size_t at, std::string_view key = "") {
  return key.empty() ? fmt::format("{} {}", kind, at) : fmt::format("{} {} {}", kind, at, key);
}

std::vector<std::string_view> names_of(const Plan& plan) {
  std::vector<std::string_view> names;
  for (const Arm& arm : plan.arms) names.push_back(arm.name);
  return names;
}

bool is_good_name(const std::string& name, std::size_t longest) {
  const auto good = [](char c) {
    const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    return letter || c == '-' || c == '_' || c == '+' || c == '.';
  };
  return !name.empty() && name.size() <= longest && std::ranges::all_of(name, good);
}

void check_names(const Plan& plan) {
  constexpr std::size_t kLongest = 64;
  if (plan.arms.empty()) plan.lines.refuse("arm", "there is no arm; write [[arm]] and name = \"...\"");
  for (std::size_t i = 0; i < plan.arms.size(); ++i) {
    const std::string part = part_of("arm", i, "name"), &name = plan.arms[i].name;
    if (!is_good_name(name, kLongest)) {
      plan.lines.refuse(part, fmt::format("name is {}; valid: 1 to {} letters, digits, '-', '_', '+' and '.'",
                                          base::in_quotes(name), kLongest));
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (plan.arms[j].name != name) continue;
      plan.lines.refuse(part, fmt::format("there is already an arm named '{}'{}; choose another name", name,
                                          plan.lines.in_line(part_of("arm", j, "name"))));
    }
  }
}

void check_settings(const Overrides& settings, std::string_view section, const PlanLines& lines) {
  std::set<std::string> seen;
  for (const auto& setting : settings) {
    const std::string& key = setting.first;
    const std::string part = fmt::format("{} {}", section, key);
    lines.at(part, [&] { check_setting(key, setting.second); });
    if (!seen.insert(key).second) lines.refuse(part, key + " is set twice");
  }
}

void check_grid(const std::vector<Axis>& axes, const std::string& grid, const PlanLines& lines) {
  std::set<std::string> seen;
  for (const Axis& axis : axes) {
    const std::string part = grid + " " + axis.key;
    std::set<std::string> values;
    for (const std::string& value : axis.values) {
      lines.at(part, [&] { check_setting(axis.key, value); });
      if (values.insert(value).second) continue;
      lines.refuse(part, fmt::format("{} has {} twice", axis.key, base::in_quotes(value)));
    }
    if (values.empty()) {
      lines.refuse(part, axis.key + " has no values; write them between [ and ], or remove the axis");
    }
    if (!seen.insert(axis.key).second) lines.refuse(part, axis.key + " is an axis twice");
  }
}

// The axis that decides the same as the key, if any.
const Axis* axis_of(const std::vector<Axis>& axes, std::string_view key) {
  const auto found = std::ranges::find_if(axes, [&](const Axis& axis) { return compete(axis.key, key); });
  return found == axes.end() ? nullptr : &*found;
}

// The grid decides its keys for every arm that has it, so nothing else may.
void check_layers(const Plan& plan) {
  const PlanLines& lines = plan.lines;
  for (std::size_t i = 0; i < plan.arms.size(); ++i) {
    for (const auto& [key, value] : plan.arms[i].overrides) {
      const Axis* axis = axis_of(axes_of(plan, plan.arms[i]), key);
      if (!axis) continue;
      lines.refuse(part_of("arm", i, key),
                   fmt::format("arm '{}' sets {}, but the grid sets {}{}; remove one of them, or give the arm grid = false",
                               plan.arms[i].name, key, axis->key, lines.in_line("grid " + axis->key)));
    }
  }
  if (std::ranges::any_of(plan.arms, [](const Arm& arm) { return !arm.grid; })) return;
  for (const auto& [key, value] : plan.base) {
    if (const Axis* axis = axis_of(plan.grid, key)) {
      lines.refuse("base " + key, fmt::format("[base] sets {}, but the grid sets {}{} for every arm; remove one of them", key,
                                              axis->key, lines.in_line("grid " + axis->key)));
    }
  }
}

// An arm whose point is chosen for another, by point_of or as a control.
void check_follower(const Plan& plan, std::size_t at) {
  const Arm& arm = plan.arms[at];
  const PlanLines& lines = plan.lines;
  std::vector<std::string> given;
  if (!arm.density_of.empty()) given.emplace_back("density_of");
  if (!arm.budget_of.empty()) given.emplace_back("budget_of");
  if (!arm.point_of.empty()) given.emplace_back("point_of");
  const std::string key = given.front(), part = part_of("arm", at, key);
  if (given.size() > 1) lines.refuse(part, fmt::format("{} and {} are both set; keep one", given[0], given[1]));
  const auto other = std::ranges::find(plan.arms, arm.chooser(), &Arm::name);
  if (other == plan.arms.end()) {
    lines.refuse(part, fmt::format("{}: {}", key, base::unknown("arm", arm.chooser(), names_of(plan))));
  }
  if (&*other == &arm) lines.refuse(part, key + " is the arm itself; name the arm that it is a control of");
  if (other->chooser() != other->name) {
    lines.refuse(part, fmt::format("{} is '{}', which is a control itself; name the arm that it is a control of: '{}'", key,
                                   other->name, other->chooser()));
  }
  if (arm.grid != other->grid || !arm.axes.empty()) {
    lines.refuse(
        part_of("arm", at, "grid"),
        fmt::format("arm '{}' has the grid of arm '{}', with which it is compared; remove the key", arm.name, other->name));
  }
  for (const auto& [own, value] : arm.overrides) {
    if (!arm.point_of.empty() || !decided_by_reference(arm, own)) continue;
    lines.refuse(part_of("arm", at, own),
                 fmt::format("arm '{}' sets {}, which {} decides; remove one of them", arm.name, own, key));
  }
}

void check_seeds(const Plan& plan) {
  constexpr std::uint64_t kLargestSeed = std::numeric_limits<std::int64_t>::max();
  if (plan.seeds.empty()) plan.lines.refuse("seeds", "there are no seeds; write seeds = [0, 1, 2], or seeds = 3");
  std::set<std::uint64_t> seen;
  const auto look_at = [&](const std::vector<std::uint64_t>& seeds, std::string_view key) {
    for (const std::uint64_t seed : seeds) {
      if (seed > kLargestSeed) plan.lines.refuse(key, fmt::format("seed {} is too large; valid: [0, 2^63)", seed));
      if (!seen.insert(seed).second) plan.lines.refuse(key, fmt::format("seed {} occurs twice", seed));
    }
  };
  look_at(plan.seeds, "seeds");
  look_at(plan.tune_seeds, "tune_seeds");
  if (plan.tune_seeds.empty() && chooses(plan)) {
    plan.lines.refuse("tune_seeds",
                      "a contrast has best = true, but there are no seeds to choose the best points on; write tune_seeds = 2");
  }
}

void check_contrasts(const Plan& plan) {
  const auto names = names_of(plan);
  for (std::size_t i = 0; i < plan.contrasts.size(); ++i) {
    const Contrast& contrast = plan.contrasts[i];
    for (const auto& [key, name] : {std::pair<std::string_view, std::string_view>{"a", contrast.a}, {"b", contrast.b}}) {
      if (std::ranges::find(names, name) != names.end()) continue;
      plan.lines.refuse(part_of("contrast", i, key), fmt::format("{}: {}", key, base::unknown("arm", name, names)));
    }
    if (contrast.a == contrast.b) {
      plan.lines.refuse(part_of("contrast", i), fmt::format("a and b are both '{}'; name two arms", contrast.a));
    }
  }
}

void check_size(const Plan& plan) {
  constexpr double kMostRuns = 100000;
  double runs = 0;
  for (const Arm& arm : plan.arms) {
    double points = 1;
    for (const Axis& axis : axes_of(plan, arm)) points *= static_cast<double>(axis.values.size());
    runs += points * static_cast<double>(plan.seeds.size() + plan.tune_seeds.size());
  }
  if (runs <= kMostRuns) return;
  plan.lines.refuse("", fmt::format("arms, grid and seeds make {:.6g} runs; valid: at most {}", runs, kMostRuns));
}

}  // namespace

void refuse_decided(const std::string& key, std::span<const DecidedKey> decided) {
  const auto found = std::ranges::find(decided, key, [](const DecidedKey& entry) { return entry.first; });
  if (found == decided.end()) return;
  throw Error(Fault::usage, fmt::format("{} cannot be set: {}", key, found->second), {.key = key});
}

std::string PlanLines::where(std::string_view part) const {
  const unsigned line = line_of(part);
  return file_.empty() || line == 0 ? file_ : fmt::format("{}:{}", file_, line);
}

std::string PlanLines::in_line(std::string_view part) const {
  const unsigned line = line_of(part);
  return line == 0 ? "" : fmt::format(" in line {}", line);
}

void PlanLines::refuse(std::string_view part, const std::string& message) const {
  throw Error(Fault::usage, message, {.where = where(part)});
}

unsigned PlanLines::line_of(std::string_view part) const {
  if (const auto found = lines_.find(part); found != lines_.end()) return found->second;
  const std::size_t space = part.rfind(' ');
  return space == std::string_view::npos ? 0 : line_of(part.substr(0, space));
}

void put(Overrides& all, const Overrides& layer) {
  std::erase_if(all, [&](const auto& old) {
    return std::ranges::any_of(layer, [&](const auto& entry) { return compete(entry.first, old.first); });
  });
  all.insert(all.end(), layer.begin(), layer.end());
}

bool decided_by_reference(const Arm& control, std::string_view key) {
  constexpr std::array<std::string_view, 4> kMask{"optimizer.decay", "optimizer.density", "optimizer.rest.decay",
                                                  "optimizer.rest.density"};
  const bool strength = key == "optimizer.coupling" || key == "optimizer.rest.coupling";
  return std::ranges::find(kMask, key) != kMask.end() || (strength && !control.budget_of.empty());
}

const Arm* reference_of(const Plan& plan, const Arm& arm) {
  const auto found = std::ranges::find(plan.arms, arm.reference(), &Arm::name);
  return arm.reference().empty() || found == plan.arms.end() ? nullptr : &*found;
}

void check(const Plan& plan) {
  check_names(plan);
  check_settings(plan.base, "base", plan.lines);
  check_grid(plan.grid, "grid", plan.lines);
  for (std::size_t i = 0; i < plan.arms.size(); ++i) {
    const Arm& arm = plan.arms[i];
    check_settings(arm.overrides, part_of("arm", i), plan.lines);
    check_grid(arm.axes, part_of("arm", i, "grid"), plan.lines);
    if (!arm.point_of.empty() || !arm.reference().empty()) check_follower(plan, i);
  }
  check_layers(plan);
  check_seeds(plan);
  check_contrasts(plan);
  check_size(plan);
}

}  // namespace cautious::study
