#include "study/plan_toml.h"

#include <algorithm>

#include <fmt/format.h>

#include <cautious/error.h>

#include "run/config_table.h"

namespace cautious::study {
namespace {

std::string described(const toml::node& node) {
  if (const auto* string = node.as_string()) return "the string " + base::in_quotes(string->get());
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* number = node.as_floating_point()) return base::to_text(number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  return node.is_table() ? "a table" : node.is_array() ? "an array" : "a date or a time";
}

std::string in_table(const Place& place, std::string_view key) {
  return place.table.empty() ? std::string(key) : fmt::format("{} of {}", key, place.table);
}

[[noreturn]] void refuse_type(const Place& place, std::string_view key, const toml::node& node, std::string_view wanted) {
  refuse(place, node, fmt::format("{} is {}, not {}", in_table(place, key), described(node), wanted));
}

std::string text_of(const Place& place, std::string_view key, const toml::array& array) {
  if (array.empty() || array.is_homogeneous<std::string>()) {
    std::vector<std::string> items;
    for (const toml::node& item : array) items.push_back(item.as_string()->get());
    return run::to_toml(items);
  }
  std::vector<std::string> items;
  for (const toml::node& item : array) {
    if (!item.is_number()) refuse(place, item, fmt::format("{} has {} among other things", key, described(item)));
    items.push_back(described(item));
  }
  return fmt::format("{}", fmt::join(items, ","));
}

void collect(std::vector<Setting>& all, const Place& place, const std::string& prefix, const toml::table& table, base::Names others) {
  for (const auto& [key, node] : table) {
    if (std::ranges::find(others, key.str()) != others.end()) continue;
    const std::string name = prefix + std::string(key.str());
    const auto sections = run::config_sections();
    const bool is_section = std::ranges::find(sections, name) != sections.end();
    if (const auto* inner = node.as_table(); inner && is_section) {
      collect(all, place, name + ".", *inner, {});
    } else if (inner) {
      refuse(place, node, base::unknown("section", name, sections));
    } else if (is_section) {
      refuse(place, node, fmt::format("{} is a section, not a value; write {}.<key> = <value>", name, name));
    } else {
      all.push_back({name, &node});
    }
  }
}

}  // namespace

unsigned line_of(const toml::node& node) { return node.source().begin.line; }

void refuse(const Place& place, const toml::node& at, std::string_view words) {
  throw Error(Fault::usage, fmt::format("{}:{}: {}", place.file, line_of(at), words));
}

void check_keys(const Place& place, const toml::table& table, base::Names names) {
  for (const auto& [key, node] : table) {
    if (std::ranges::find(names, key.str()) != names.end()) continue;
    const std::string what = place.table.empty() ? "key of a plan" : "key of " + place.table;
    refuse(place, node, base::unknown(what, key.str(), names));
  }
}

std::string string_in(const Place& place, const toml::table& table, std::string_view key) {
  const toml::node* node = table.get(key);
  if (!node) return "";
  if (!node->is_string()) refuse_type(place, key, *node, "a string");
  return node->as_string()->get();
}

bool boolean_in(const Place& place, const toml::table& table, std::string_view key, bool missing) {
  const toml::node* node = table.get(key);
  if (!node) return missing;
  if (!node->is_boolean()) refuse_type(place, key, *node, "true or false");
  return node->as_boolean()->get();
}

std::vector<const toml::table*> tables_in(const Place& place, const toml::table& table, std::string_view key) {
  const toml::node* node = table.get(key);
  if (!node) return {};
  const auto* array = node->as_array();
  const auto is_table = [](const toml::node& item) { return item.is_table(); };
  if (!array || !std::all_of(array->begin(), array->end(), is_table)) {
    refuse(place, *node, fmt::format("{} is {}, not a list of tables; write [[{}]] above each", key, described(*node), key));
  }
  std::vector<const toml::table*> tables;
  for (const toml::node& item : *array) tables.push_back(item.as_table());
  return tables;
}

const toml::table* table_in(const Place& place, const toml::table& table, std::string_view key) {
  const toml::node* node = table.get(key);
  if (node && !node->is_table()) refuse_type(place, key, *node, fmt::format("a table; write [{}] above its keys", key));
  return node ? node->as_table() : nullptr;
}

std::string typed_text(const Place& place, std::string_view key, const toml::node& value) {
  if (const auto* string = value.as_string()) return string->get();
  if (const auto* array = value.as_array()) return text_of(place, key, *array);
  if (!value.is_number() && !value.is_boolean()) refuse_type(place, key, value, "a number, a boolean, a string or an array");
  return described(value);
}

std::vector<Setting> settings_in(const Place& place, const toml::table& table, base::Names others) {
  std::vector<Setting> all;
  collect(all, place, "", table, others);
  std::ranges::stable_sort(all, {}, [](const Setting& setting) {
    const toml::source_position at = setting.value->source().begin;
    return std::pair(at.line, at.column);
  });
  return all;
}

}  // namespace cautious::study
