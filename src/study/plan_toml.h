// The values of a plan's tables as text, typed strictly, with their lines. An Error names file, line, key, value and what is
// valid.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <toml++/toml.h>

#include "base/text.h"

namespace cautious::study {

struct Plan;

toml::table parsed(const std::string& text, const std::string& name);
// read_plan() of a file that is parsed already; `name` is the file's in messages.
Plan read_plan(const toml::table& top, const std::string& name);

unsigned line_of(const toml::node& node);

// Where a key stands, for messages.
struct Place {
  std::string file;
  std::string table;  // "[[contrast]]"; empty at the top
};

[[noreturn]] void refuse(const Place& place, const toml::node& at, std::string_view words);

// Throws an Error unless every key of the table is one of the names.
void check_keys(const Place& place, const toml::table& table, base::Names names);

// Empty or `missing` if there is no such key.
std::string string_in(const Place& place, const toml::table& table, std::string_view key);
bool boolean_in(const Place& place, const toml::table& table, std::string_view key, bool missing);

// The tables of [[key]]; none if it is not there.
std::vector<const toml::table*> tables_in(const Place& place, const toml::table& table, std::string_view key);
// The table of [key], null if it is not there.
const toml::table* table_in(const Place& place, const toml::table& table, std::string_view key);

// A value as it would be typed after --key=.
std::string typed_text(const Place& place, std::string_view key, const toml::node& value);

// A key of a run and its value.
struct Setting {
  std::string key;  // "optimizer.lr"
  const toml::node* value;
};
// Those of the table in the order of the file, but for its keys in `others`. A table in it must be a section of a run.
std::vector<Setting> settings_in(const Place& place, const toml::table& table, base::Names others = {});

}  // namespace cautious::study
