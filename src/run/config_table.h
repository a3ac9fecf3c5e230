// The table of keys of a configuration: reading, writing, overrides and help are all derived from it. And what a layer gives
// to the keys, assignments of values, with the checks that need them.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/detail/field.h>

#include "base/toml.h"
#include "run/config.h"

namespace cautious::run {

// A value as a file or the command line gives it.
struct ConfigValue {
  // typed: on the command line, where every type is text.
  enum class Kind { typed, number, boolean, string, numbers, strings, other };
  Kind kind = Kind::typed;
  std::string text = {};                // of numbers: joined by commas; of other: what it is
  std::vector<std::string> items = {};  // of strings
};

ConfigValue config_value(const base::TomlValue& value);
// A single value written in TOML.
ConfigValue toml_value(std::string_view what, std::string_view text);

// A value as a key's type; `what` names the key in an Error.
double to_number(std::string_view what, const ConfigValue& value, const Range& range);
// 1e6 and 8.0 are whole numbers too.
std::int64_t to_whole(std::string_view what, const ConfigValue& value, const Range& range);
bool to_boolean(std::string_view what, const ConfigValue& value);
std::string to_word(std::string_view what, const ConfigValue& value, std::string_view valid);
// Typed, they are separated by commas, or written as a TOML array. A string alone is a list of one; an empty text an empty
// list.
std::vector<std::string> to_words(std::string_view what, const ConfigValue& value);
// A number, or numbers as "1,2,3" or a TOML array, for fields that are set as text: "1,2,3".
std::string to_numeric_text(std::string_view what, const ConfigValue& value, std::string_view valid);

// The way back to TOML.
std::string to_toml(std::string_view text);
std::string to_toml(const std::vector<std::string>& texts);

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
std::span<const std::string_view> rivals_of(TaskKind task, std::string_view name);

// Whether the rule has directions for matrices alone.
bool works_on_matrices(const Rule& rule);

// The recipes that [optimizer.rest] can have.
std::vector<std::string> rest_names();

// The recipe of that name that suits what is trained, and the learning rate that suits the optimizer and the model.
Recipe recipe_for(TaskKind task, std::string_view optimizer);
double lr_for(const RunConfig& config);

// Starts [optimizer.rest] anew: the recipe of that name with the decay and weight_decay of [optimizer].
void start_rest(RunConfig& config, std::string_view name);

enum class Layer { file, command_line };

// What a layer says.
struct Assignment {
  Layer layer;
  std::size_t rank;    // among the layers: files in their order, then the command line
  std::string source;  // "run.toml", "command line"; empty if nobody typed it
  unsigned line;       // in the file
  std::string shown;   // the name in messages: "optimizer.lr", "--optimizer.lr"
  std::string name;    // "optimizer.lr"
  ConfigValue value;
};

// "run.toml:3" or "command line".
std::string where_of(const Assignment& assignment);
// "run.toml:3: optimizer.lr" or "--optimizer.lr".
std::string what_of(const Assignment& assignment);

// There is no such key with this configuration: says which was meant, or why there is none.
[[noreturn]] void refuse_key(const RunConfig& config, const std::vector<Assignment>& given, const Assignment& assignment);

// The shape and the tokenizer of model.from, where they are not all given: a configuration that was written down resolved does
// not need the model again.
void follow_model(RunConfig& config, const std::vector<Assignment>& given);

// Throws an Error if a layer sets two keys of which one decides.
void refuse_rivals(TaskKind task, const std::vector<Assignment>& given);

// Throws an Error if the values do not go together; `given` tells where they come from.
void check_together(const RunConfig& config, const std::vector<Assignment>& given);

}  // namespace cautious::run
