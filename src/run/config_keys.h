// The table of keys of a configuration. Reading, writing, overrides and help are all derived from it.
#pragma once

#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "run/config.h"
#include "run/config_value.h"

namespace cautious::run {

struct Key : ConfigKey {
  // Throws an Error that names `what` if the value has the wrong type or is out of range.
  std::function<void(RunConfig&, std::string_view what, const ConfigValue&)> set = {};
};

// The keys that there are with this configuration's recipes, in the order of to_toml(): a rule's fields with that rule,
// [optimizer.rest] with a rule for matrices alone. A key beside which another one decides has an empty value.
std::vector<Key> keys_of(const RunConfig& config);

// Every section, in the order of to_toml().
std::span<const std::string_view> config_sections();

// "optimizer.rest" of "optimizer.rest.name"; empty at the top.
std::string_view section_of(std::string_view name);
std::string_view without_section(std::string_view name);

// The keys of which one at a time decides, among them the named one; empty if there is no choice.
std::span<const std::string_view> rivals_of(std::string_view name);

// Whether the rule has directions for matrices alone.
bool works_on_matrices(const Rule& rule);

// The recipes that [optimizer.rest] can have.
std::vector<std::string> rest_names();

// Starts [optimizer.rest] anew: the recipe of that name with the decay and weight_decay of [optimizer].
void start_rest(RunConfig::Optimizer& optimizer, std::string_view name);

}  // namespace cautious::run
