// The tree of toml++ copied into ours, so that its headers are compiled once.
#include "base/toml.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cautious/error.h>

namespace cautious::base {
namespace {

using FileName = std::shared_ptr<const std::string>;

TomlValue::Position position(const toml::source_position& at) { return {at.line, at.column}; }

// Behind the string that begins at `at`.
std::size_t end_of_string(std::string_view text, std::size_t at) {
  const char quote = text[at];
  const std::string three(3, quote);
  const bool long_one = text.substr(at, 3) == three;
  for (std::size_t i = at + (long_one ? 3 : 1); i < text.size(); ++i) {
    if (quote == '"' && text[i] == '\\') {
      ++i;
    } else if (!long_one && (text[i] == quote || text[i] == '\n')) {
      return text[i] == quote ? i + 1 : i;
    } else if (long_one && text.substr(i, 3) == three) {
      for (i += 3; i < text.size() && text[i] == quote;) ++i;  // up to two more are the string's own
      return i;
    }
  }
  return text.size();
}

// toml++ limits how deeply values are nested, but not the parts of a key, and takes stack by both.
void check_keys_of_text(std::string_view text, const std::string& file) {
  constexpr int kMostDots = 15;
  int dots = 0, line = 1;
  for (std::size_t i = 0; i < text.size();) {
    const char c = text[i];
    if (c == '"' || c == '\'') {
      const std::size_t end = end_of_string(text, i);
      line += static_cast<int>(
          std::count(text.begin() + static_cast<std::ptrdiff_t>(i), text.begin() + static_cast<std::ptrdiff_t>(end), '\n'));
      i = end;
      continue;
    }
    if (c == '#') {
      i = std::min(text.find('\n', i), text.size());
      continue;
    }
    if (std::string_view("=,[]{}\n").find(c) != std::string_view::npos) dots = 0;
    if (c == '\n') ++line;
    if (c == '.' && ++dots > kMostDots) {
      throw Error(Fault::usage, fmt::format("a key of more than {} parts; valid: section.key = value", kMostDots + 1),
                  {.where = fmt::format("{}:{}", file, line)});
    }
    ++i;
  }
}

TomlValue copied(const toml::node& node, const FileName& file);

std::vector<TomlEntry> entries_of(const toml::table& table, const FileName& file) {
  std::vector<TomlEntry> entries;
  for (const auto& [key, node] : table) {
    entries.push_back({std::string(key.str()), position(key.source().begin), copied(node, file)});
  }
  std::ranges::stable_sort(entries, {}, [](const TomlEntry& entry) { return std::pair(entry.at.line, entry.at.column); });
  return entries;
}

TomlValue copied(const toml::node& node, const FileName& file) {
  using Kind = TomlValue::Kind;
  TomlValue value;
  value.kind = Kind::date;
  value.begin = position(node.source().begin);
  value.end = position(node.source().end);
  value.file = file;
  if (const auto* string = node.as_string()) {
    value.kind = Kind::string;
    value.text = string->get();
  } else if (const auto* whole = node.as_integer()) {
    value.kind = Kind::integer;
    value.integer = whole->get();
    value.number = static_cast<double>(whole->get());
    value.text = fmt::format("{}", whole->get());
  } else if (const auto* number = node.as_floating_point()) {
    value.kind = Kind::number;
    value.number = number->get();
    value.text = to_text(number->get());
  } else if (const auto* boolean = node.as_boolean()) {
    value.kind = Kind::boolean;
    value.boolean = boolean->get();
    value.text = boolean->get() ? "true" : "false";
  } else if (const auto* array = node.as_array()) {
    value.kind = Kind::array;
    for (const toml::node& item : *array) value.items.push_back(copied(item, file));
  } else if (const auto* table = node.as_table()) {
    value.kind = Kind::table;
    value.entries = entries_of(*table, file);
  }
  return value;
}

}  // namespace

const TomlValue* TomlValue::get(std::string_view key) const {
  const auto found = std::ranges::find(entries, key, &TomlEntry::key);
  return found == entries.end() ? nullptr : &found->value;
}

std::string TomlValue::where() const { return fmt::format("{}:{}", *file, begin.line); }

std::string TomlValue::described() const {
  switch (kind) {
    case Kind::string:
      return "the string " + in_quotes(text);
    case Kind::array:
      return "an array";
    case Kind::table:
      return "a table";
    case Kind::date:
      return "a date or a time";
    default:
      return text;
  }
}

void TomlValue::refuse(std::string_view message) const { throw Error(Fault::usage, std::string(message), {.where = where()}); }

void TomlValue::refuse_at_column(std::string_view message, unsigned further) const {
  throw Error(Fault::usage, std::string(message), {.where = fmt::format("{}:{}", where(), begin.column + further)});
}

TomlValue parse_toml(std::string_view text, const std::string& file) try {
  check_keys_of_text(text, file);
  return copied(toml::parse(text, file), std::make_shared<const std::string>(file));
} catch (const toml::parse_error& error) {
  const toml::source_position at = error.source().begin;
  // The description may repeat bytes of the file.
  throw Error(Fault::usage, "not TOML: " + in_one_line(error.description()),
              {.where = fmt::format("{}:{}:{}", file, at.line, at.column)});
}

TomlValue read_toml(const std::filesystem::path& file, Reading reading) {
  reading.fault = Fault::usage;
  return parse_toml(read_file(file, reading), file.string());
}

void TomlTable::check_keys(std::string_view what, Names names) const {
  for (const TomlEntry& entry : value.entries) {
    if (std::ranges::find(names, entry.key) == names.end()) entry.value.refuse(unknown(what, entry.key, names));
  }
}

std::string TomlTable::string(std::string_view key) const {
  const TomlValue* const found = value.get(key);
  if (!found) return "";
  if (found->kind != TomlValue::Kind::string) refuse_type(key, *found, "a string");
  return found->text;
}

std::string TomlTable::required_string(std::string_view key) const {
  if (!value.get(key)) value.refuse(fmt::format("{} has no {}; write {} = \"...\"", name, key, key));
  return string(key);
}

bool TomlTable::boolean(std::string_view key, bool missing) const {
  const TomlValue* const found = value.get(key);
  if (!found) return missing;
  if (found->kind != TomlValue::Kind::boolean) refuse_type(key, *found, "true or false");
  return found->boolean;
}

const TomlValue* TomlTable::table(std::string_view key) const {
  const TomlValue* const found = value.get(key);
  if (found && found->kind != TomlValue::Kind::table) {
    refuse_type(key, *found, fmt::format("a table; write [{}] above its keys", key));
  }
  return found;
}

std::vector<const TomlValue*> TomlTable::tables(std::string_view key) const {
  const TomlValue* const found = value.get(key);
  if (!found) return {};
  const auto is_table = [](const TomlValue& item) { return item.kind == TomlValue::Kind::table; };
  if (found->kind != TomlValue::Kind::array || !std::ranges::all_of(found->items, is_table)) {
    found->refuse(fmt::format("{} is {}, not a list of tables; write [[{}]] above each", key, found->described(), key));
  }
  std::vector<const TomlValue*> tables;
  for (const TomlValue& item : found->items) tables.push_back(&item);
  return tables;
}

void TomlTable::refuse_type(std::string_view key, const TomlValue& wrong, std::string_view wanted) const {
  const std::string full = name.empty() ? std::string(key) : fmt::format("{} of {}", key, name);
  wrong.refuse(fmt::format("{} is {}, not {}", full, wrong.described(), wanted));
}

}  // namespace cautious::base
