#include "study/reproduce.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>

#include <cautious/error.h>

#include "study/plan_keys.h"
#include "study/plan_toml.h"

namespace cautious::study {
namespace {

constexpr std::array<std::string_view, 6> kScaleKeys{"seeds", "about", "stages", "base", "grid", "arm"};
constexpr std::array<std::string_view, 2> kWritten{"quick", "full"};  // day is the plan itself

std::int64_t whole_in(const Place& place, const toml::table& table, std::string_view key, std::int64_t missing) {
  const toml::node* node = table.get(key);
  if (!node) return missing;
  const auto* number = node->as_integer();
  if (!number || number->get() < 1 || number->get() > 1000) {
    refuse(place, *node, fmt::format("{} is no whole number from 1 to 1000", key));
  }
  return number->get();
}

Overrides settings(const Place& place, const toml::table& table) {
  Overrides all;
  for (const Setting& setting : settings_in(place, table)) {
    all.emplace_back(setting.key, typed_text(place, setting.key, *setting.value));
  }
  return all;
}

std::vector<Axis> axes(const Place& place, const toml::table& table) {
  std::vector<Axis> grid;
  for (const Setting& setting : settings_in(place, table)) {
    const auto* values = setting.value->as_array();
    if (!values) refuse(place, *setting.value, fmt::format("{} of {} is not an array", setting.key, place.table));
    Axis axis{setting.key, {}};
    for (const toml::node& value : *values) axis.values.push_back(typed_text(place, setting.key, value));
    grid.push_back(std::move(axis));
  }
  return grid;
}

void change_arms(Plan& plan, const Place& place, const toml::table& arms) {
  for (const auto& [name, node] : arms) {
    const auto found = std::ranges::find(plan.arms, name.str(), &Arm::name);
    if (found == plan.arms.end()) {
      std::vector<std::string_view> names;
      for (const Arm& arm : plan.arms) names.push_back(arm.name);
      refuse(place, node, fmt::format("{} {}", place.table, base::unknown("arm", name.str(), names)));
    }
    if (!node.is_table()) refuse(place, node, fmt::format("{} is no table of an arm's keys", name.str()));
    put(found->overrides, settings(place, *node.as_table()));
  }
}

void change(Experiment& experiment, const std::string& file, const std::string& scale, const toml::table& table) {
  const Place place{file, fmt::format("[scale.{}]", scale)};
  check_keys(place, table, kScaleKeys);
  Plan& plan = experiment.plan;
  plan.seeds.resize(static_cast<std::size_t>(whole_in(place, table, "seeds", static_cast<std::int64_t>(plan.seeds.size()))));
  std::iota(plan.seeds.begin(), plan.seeds.end(), 0);
  experiment.stages = static_cast<int>(whole_in(place, table, "stages", experiment.stages));
  if (const std::string more = string_in(place, table, "about"); !more.empty()) plan.about += " " + more;
  if (const toml::table* base = table_in(place, table, "base")) put(plan.base, settings(place, *base));
  if (const toml::table* grid = table_in(place, table, "grid")) plan.grid = axes(place, *grid);
  if (const toml::table* arms = table_in(place, table, "arm")) change_arms(plan, place, *arms);
}

std::vector<std::string> names_in(const Place& place, const toml::table& top) {
  const toml::node* node = top.get("reproduces");
  const auto* array = node ? node->as_array() : nullptr;
  if (!array || array->empty() || !array->is_homogeneous<std::string>()) {
    refuse(place, node ? *node : top, "reproduces is missing or no array of names");
  }
  std::vector<std::string> names;
  for (const toml::node& item : *array) names.push_back(item.as_string()->get());
  return names;
}

// Takes what a plan does not have out of the table.
toml::table taken(toml::table& top, const Place& place) {
  toml::table scales;
  if (const toml::table* table = table_in(place, top, "scale")) {
    check_keys({place.file, "[scale]"}, *table, kWritten);
    scales = std::move(*top.get("scale")->as_table());
  }
  for (const char* key : {"scale", "stages", "reproduces"}) top.erase(key);
  return scales;
}

std::vector<std::string> reproduced_by(const BundledPlan& bundled) {
  const std::string file = bundled.name + ".toml";
  return names_in({file, ""}, parsed(bundled.text, file));
}

}  // namespace

Experiment read_experiment(const BundledPlan& bundled, Scale scale) {
  const std::string file = bundled.name + ".toml", written = std::string(cautious::name_of(scale));
  const Place place{file, ""};
  toml::table top = parsed(bundled.text, file);
  Experiment experiment{.name = bundled.name, .reproduces = names_in(place, top), .plan = {}};
  experiment.stages = static_cast<int>(whole_in(place, top, "stages", 1));
  const toml::table scales = taken(top, place);
  experiment.plan = read_plan(top, file);
  if (const toml::table* table = table_in({file, "[scale]"}, scales, written)) change(experiment, file, written, *table);
  return experiment;
}

std::vector<std::string> reproducible() {
  std::set<std::string> names;
  for (const BundledPlan& bundled : bundled_plans()) {
    for (std::string& name : reproduced_by(bundled)) names.insert(std::move(name));
  }
  return {names.begin(), names.end()};
}

std::vector<Experiment> experiments(std::string_view name, Scale scale) {
  std::vector<Experiment> found;
  for (const BundledPlan& bundled : bundled_plans()) {
    const std::vector<std::string> names = reproduced_by(bundled);
    const bool meant = bundled.name == name || std::ranges::find(names, name) != names.end();
    if (meant) found.push_back(read_experiment(bundled, scale));
  }
  if (!found.empty()) return found;
  const std::vector<std::string> names = reproducible();
  throw Error(Fault::usage, base::unknown("experiment", name, std::vector<std::string_view>(names.begin(), names.end())));
}

}  // namespace cautious::study
