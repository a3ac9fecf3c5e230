// The layers of a configuration as lists of assignments: what a TOML file says, what the command line says. Knows names of
// sections but no keys.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "run/config.h"
#include "run/config_value.h"

namespace cautious::run {

enum class Layer { file, command_line };

struct Assignment {
  Layer layer;
  std::string place;  // "run.toml:3", or the flag
  std::string name;   // "optimizer.lr"
  ConfigValue value;
};

// How an Error names it: "run.toml:3: optimizer.lr" or "--optimizer.lr".
std::string what_of(const Assignment& assignment);

// "run.toml:3", or "command line": for a name that may be any text.
std::string place_of(const Assignment& assignment);

// Every value of the file; an Error if the file cannot be read, is not TOML, or has a section that there is not.
std::vector<Assignment> read_file(const std::filesystem::path& file);

// --preset, then the overrides in their order.
std::vector<Assignment> read_command_line(const ConfigSource& source);

// A single value written in TOML.
ConfigValue toml_value(std::string_view what, std::string_view text);

}  // namespace cautious::run
