// A value of the configuration as a file or the command line gives it, the strict reading of it as a key's type, and the way
// back to TOML. `what` names the key in an Error, with the file and line or the flag it came from.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include <cautious/detail/field.h>
#include <cautious/error.h>

namespace cautious::run {

struct ConfigValue {
  // typed: on the command line, where every type is text.
  enum class Kind { typed, number, boolean, string, numbers, strings, other };
  Kind kind = Kind::typed;
  std::string text = {};                // of numbers: joined by commas; of other: what it is
  std::vector<std::string> items = {};  // of strings
};

struct WholeRange {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  std::int64_t low = 0;
  std::int64_t high = kUnlimited;
};
std::string to_string(const WholeRange& range);

double to_number(std::string_view what, const ConfigValue& value, const Range& range);
// 1e6 and 8.0 are whole numbers too.
std::int64_t to_whole(std::string_view what, const ConfigValue& value, const WholeRange& range);
bool to_boolean(std::string_view what, const ConfigValue& value);
std::string to_word(std::string_view what, const ConfigValue& value, std::string_view valid);
// Typed, they are separated by commas, or written as a TOML array. A string alone is a list of one; an empty text an empty
// list.
std::vector<std::string> to_words(std::string_view what, const ConfigValue& value);
// A number, or numbers as "1,2,3" or a TOML array, for fields that are set as text: "1,2,3".
std::string to_numeric_text(std::string_view what, const ConfigValue& value, std::string_view valid);

std::string to_toml(double number);
std::string to_toml(bool value);
std::string to_toml(std::string_view text);
std::string to_toml(const std::vector<std::string>& texts);

// What the call returns; its Error with `what` in front.
template <class Call>
auto told_of(std::string_view what, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw Error(error.fault(), fmt::format("{}: {}", what, error.what()));
  }
}

}  // namespace cautious::run
