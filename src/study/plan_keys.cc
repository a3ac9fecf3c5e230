// The optimizer's keys depend on its rule and decay, so all of them are asked. What goes together is not asked here: expand().
#include "study/plan_keys.h"

#include <algorithm>
#include <array>
#include <exception>
#include <map>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "base/text.h"
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
    const bool known = std::ranges::any_of(same, [&](const Setter& s) { return s.key.valid == key.valid; });
    if (!known) same.push_back({key, config});
  }
}

Setters every_setter() {
  Setters all;
  run::RunConfig config;
  for (const std::string& name : recipe_names()) {
    for (const std::string& decay_name : decay_names()) {
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

[[noreturn]] void refuse_key(std::string_view before, const std::string& key) {
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
  const std::string choices = siblings.empty() ? fmt::format("sections: {}", base::join(run::config_sections()))
                                               : fmt::format("keys of [{}]: {}", run::section_of(key), base::join(siblings));
  throw Error(Fault::usage, fmt::format("{}no key named {};{} {}", before, base::in_quotes(key),
                                        meant.empty() ? "" : fmt::format(" did you mean '{}'?", meant), choices));
}

// Keys that are the study's to decide, and how.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kDecided{
    {{"train.seed", "the study sets it to each of its seeds; write seeds = [0, 1, 2] at the top of the plan"},
     {"train.threads", "every run of a study has 1, so that its numbers are the same anywhere; remove it"},
     {"optimizer.density_from", "the study sets it to the run to follow; write density_of = \"name of an arm\" in the arm"},
     {"optimizer.budget_from", "the study sets it to the run to follow; write budget_of = \"name of an arm\" in the arm"}}};

}  // namespace

void check_setting(std::string_view before, const std::string& key, const std::string& value) {
  const auto decided = std::ranges::find(kDecided, key, [](const auto& entry) { return entry.first; });
  if (decided != kDecided.end()) {
    throw Error(Fault::usage, fmt::format("{}{} cannot be set: {}", before, key, decided->second));
  }
  const auto found = setters().find(key);
  if (found == setters().end()) refuse_key(before, key);
  std::exception_ptr first;
  for (const Setter& setter : found->second) {
    try {
      run::RunConfig config = setter.config;
      setter.key.set(config, fmt::format("{}{}", before, key), {run::ConfigValue::Kind::typed, value});
      return;
    } catch (const Error&) {
      if (!first) first = std::current_exception();
    }
  }
  std::rethrow_exception(first);
}

bool compete(std::string_view key, std::string_view other) {
  const auto rivals = run::rivals_of(key);
  return key == other || std::ranges::find(rivals, other) != rivals.end();
}

void put(Overrides& all, const Overrides& layer) {
  std::erase_if(all, [&](const auto& old) {
    return std::ranges::any_of(layer, [&](const auto& entry) { return compete(entry.first, old.first); });
  });
  all.insert(all.end(), layer.begin(), layer.end());
}

}  // namespace cautious::study
