// Values as files and command lines give them: strictly read as a key's type, and written as TOML.
#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "run/config_table.h"

namespace cautious::run {
namespace {

using Kind = ConfigValue::Kind;

std::string described(const ConfigValue& value) {
  switch (value.kind) {
    case Kind::string:
      return "the string " + base::in_quotes(value.text);
    case Kind::numbers:
    case Kind::strings:
      return "an array";
    case Kind::number:
    case Kind::boolean:
    case Kind::other:
      return value.text;
    case Kind::typed:
      break;
  }
  return base::in_quotes(value.text);
}

[[noreturn]] void refuse_type(std::string_view what, const ConfigValue& value, std::string_view wanted,
                              std::string_view valid) {
  throw Error(Fault::usage, fmt::format("{} is {}, not {}; valid: {}", what, described(value), wanted, valid));
}

bool is(const ConfigValue& value, Kind kind) { return value.kind == Kind::typed || value.kind == kind; }

std::optional<std::int64_t> read_whole(std::string_view text) {
  if (const auto whole = base::parsed<std::int64_t>(text)) return whole;
  const auto number = base::parsed<double>(text);
  constexpr double kExact = 9007199254740992;  // 2^53: every whole number up to here is a double
  if (!number || std::abs(*number) > kExact || std::floor(*number) != *number) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

std::vector<std::string> split_list(std::string_view what, std::string_view text) {
  if (text.starts_with('[')) {
    const ConfigValue array = toml_value(what, text);
    if (array.kind != Kind::strings)
      refuse_type(what, {Kind::typed, std::string(text)}, "an array of strings", "a,b or [\"a\", \"b\"]");
    return array.items;
  }
  std::vector<std::string> items;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    items.emplace_back(text.substr(0, comma));
    more = comma != std::string_view::npos;
    text = more ? text.substr(comma + 1) : "";
  }
  return items;
}

ConfigValue value_of_array(const std::vector<base::TomlValue>& array) {
  const auto is_string = [](const base::TomlValue& item) { return item.kind == base::TomlValue::Kind::string; };
  const bool strings = std::ranges::all_of(array, is_string);
  if (!strings && !std::ranges::all_of(array, &base::TomlValue::is_number))
    return {Kind::other, "an array of different things"};
  std::vector<std::string> items;
  for (const base::TomlValue& item : array) items.push_back(item.text);
  if (strings) return {Kind::strings, "", std::move(items)};
  return {Kind::numbers, fmt::format("{}", fmt::join(items, ","))};
}

}  // namespace

ConfigValue config_value(const base::TomlValue& value) {
  switch (value.kind) {
    case base::TomlValue::Kind::integer:
    case base::TomlValue::Kind::number:
      return {Kind::number, value.text};
    case base::TomlValue::Kind::boolean:
      return {Kind::boolean, value.text};
    case base::TomlValue::Kind::string:
      return {Kind::string, value.text};
    case base::TomlValue::Kind::array:
      return value_of_array(value.items);
    default:
      return {Kind::other, value.described()};
  }
}

ConfigValue toml_value(std::string_view what, std::string_view text) {
  try {
    return config_value(*base::parse_toml(fmt::format("value = {}", text), "").get("value"));
  } catch (const Error& error) {
    throw Error(Fault::usage, fmt::format("{} is {}, {}", what, base::in_quotes(text), error.message()));
  }
}

double to_number(std::string_view what, const ConfigValue& value, const Range& range) {
  if (!is(value, Kind::number)) refuse_type(what, value, "a number", to_string(range));
  return base::to_number(what, value.text, range);
}

std::int64_t to_whole(std::string_view what, const ConfigValue& value, const Range& range) {
  const auto whole = is(value, Kind::number) ? read_whole(value.text) : std::nullopt;
  if (!whole) refuse_type(what, value, "a whole number", to_string(range));
  if (!range.contains(static_cast<long double>(*whole))) base::out_of_range(what, std::to_string(*whole), range);
  return *whole;
}

bool to_boolean(std::string_view what, const ConfigValue& value) {
  const bool on = value.text == "true", off = value.text == "false";
  if (!is(value, Kind::boolean) || (!on && !off)) refuse_type(what, value, "a boolean", "true, false");
  return on;
}

std::string to_word(std::string_view what, const ConfigValue& value, std::string_view valid) {
  if (!is(value, Kind::string)) refuse_type(what, value, "a string", valid);
  return value.text;
}

std::vector<std::string> to_words(std::string_view what, const ConfigValue& value) {
  constexpr std::string_view kValid = "a string or an array of strings";
  std::vector<std::string> items;
  if (value.kind == Kind::typed) {
    items = split_list(what, value.text);
  } else if (value.kind == Kind::strings) {
    items = value.items;
  } else if (value.kind == Kind::string) {
    if (!value.text.empty()) items = {value.text};
  } else {
    refuse_type(what, value, "text", kValid);
  }
  for (const std::string& item : items) {
    if (item.empty()) throw Error(Fault::usage, fmt::format("{} has an empty entry; valid: {}", what, kValid));
  }
  return items;
}

std::string to_numeric_text(std::string_view what, const ConfigValue& value, std::string_view valid) {
  const bool array = value.kind == Kind::typed && value.text.starts_with('[');
  const ConfigValue numbers = array ? toml_value(what, value.text) : value;
  const bool empty = numbers.kind == Kind::strings && numbers.items.empty();
  if (!is(numbers, Kind::number) && numbers.kind != Kind::numbers && !empty) refuse_type(what, value, "a number", valid);
  return numbers.text;
}

std::string to_toml(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte == 0x7f) {
      result += fmt::format("\\u{:04x}", byte);
    } else {
      if (c == '"' || c == '\\') result += '\\';
      result += c;
    }
  }
  return result + '"';
}

std::string to_toml(const std::vector<std::string>& texts) {
  std::vector<std::string> quoted;
  for (const std::string& text : texts) quoted.push_back(to_toml(std::string_view(text)));
  return fmt::format("[{}]", fmt::join(quoted, ", "));
}

}  // namespace cautious::run
