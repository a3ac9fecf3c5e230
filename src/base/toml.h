// TOML files, strictly: a tree of values that know their file, line and column, and typed access whose Errors name file, line,
// key, value and what is valid. toml++ parses; only toml.cc knows it.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/text.h"

namespace cautious::base {

struct TomlEntry;

struct TomlValue {
  enum class Kind { string, integer, number, boolean, array, table, date };
  struct Position {
    unsigned line = 0, column = 0;
  };

  Kind kind = Kind::table;
  std::string text = {};  // a string's own; otherwise the shortest text of a number, "true", "false"
  std::int64_t integer = 0;
  double number = 0;  // of an integer too
  bool boolean = false;
  std::vector<TomlValue> items = {};  // of an array
  std::vector<TomlEntry> entries;     // of a table, in the order of the file
  Position begin = {}, end = {};
  std::shared_ptr<const std::string> file = {};  // its name, for messages

  bool is_number() const { return kind == Kind::integer || kind == Kind::number; }
  const TomlValue* get(std::string_view key) const;  // null if a table has no such key

  std::string where() const;      // "run.toml:3"
  std::string described() const;  // "the string 'a'", "3", "true", "an array"
  // Error(Fault::usage): "run.toml:3: <message>".
  [[noreturn]] void refuse(std::string_view message) const;
  // "run.toml:3:7: <message>", at the value's column or `further` characters behind it.
  [[noreturn]] void refuse_at_column(std::string_view message, unsigned further = 0) const;
};

struct TomlEntry {
  std::string key;
  TomlValue::Position at;  // the key's
  TomlValue value;
};

// A table. Text that is not TOML is an Error(Fault::usage): "run.toml:3:7: not TOML: ...".
TomlValue parse_toml(std::string_view text, const std::string& file);
// A file that cannot be read is an Error(Fault::usage) too.
TomlValue read_toml(const std::filesystem::path& file, Reading reading);

// Typed access to a table; `table` is its name in messages, "[[contrast]]", or empty at the top of a file. A key of another
// type is an Error.
struct TomlTable {
  const TomlValue& value;
  std::string name = "";

  // Every key is one of the names; `what` is "key of a plan".
  void check_keys(std::string_view what, Names names) const;
  std::string string(std::string_view key) const;  // empty if there is none
  std::string required_string(std::string_view key) const;
  bool boolean(std::string_view key, bool missing) const;
  // Of [key], null if it is not there; of every [[key]].
  const TomlValue* table(std::string_view key) const;
  std::vector<const TomlValue*> tables(std::string_view key) const;
  // "lr is the string 'a', not a number", with the table's name.
  [[noreturn]] void refuse_type(std::string_view key, const TomlValue& value, std::string_view wanted) const;
};

}  // namespace cautious::base
