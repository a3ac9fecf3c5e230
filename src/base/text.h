// Names and numbers that a user types: lookup with a suggestion, strict parsing, ranges in error messages.
// Every name of the library (rules, decays, couplings, K, curves, schedules) and of the program goes through here.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <cautious/detail/field.h>
#include <cautious/error.h>

namespace cautious {

// "[0, 1)"; an end at kLargest reads inf, large powers of two 2^63.
std::string to_string(const Range& range);

namespace base {

using Names = std::span<const std::string_view>;

// Between quotes, on one line and not too long, whatever the user or a file wrote: 'text' or 'long text...' (4096 bytes).
std::string in_quotes(std::string_view text);

// On one line, at most 200 bytes: for messages of others that may repeat the user's bytes.
std::string in_one_line(std::string_view text);

// With a blank for every character that a terminal would obey instead of showing it.
std::string printable(std::string_view text);

// A path in a command that is shown: as a shell takes it.
std::string shell_word(const std::string& text);

// What spaces and tabs separate in a line.
struct Word {
  std::string_view text;
  std::size_t character;  // from 1
};
std::vector<Word> words_of(std::string_view line);

// "recipe 'adamw beta3=1', character 7", where `what` is "recipe".
std::string position_of(std::string_view what, std::string_view line, const Word& word);

// One FIELD=VALUE of a line.
struct Setting {
  std::string_view field, value;
  std::string where;  // position_of()
};
// The words as settings; one that is not FIELD=VALUE, or a field that is given twice, is an Error.
std::vector<Setting> settings_of(std::string_view what, std::string_view line, std::span<const Word> words);

std::string join(Names names);
std::string join(const std::vector<std::string>& names);

// "1 seed", "2 seeds".
std::string counted(std::size_t count, std::string_view noun);

// The choice that was probably meant; empty if none is close.
std::string_view closest(std::string_view value, Names choices);

// "no decay named 'cautios'; did you mean 'cautious'? choices: none, decoupled, ..."
std::string unknown(std::string_view what, std::string_view value, Names choices);

// Below, `what` names the value in the message and `key` is the Error's key(); where `key` is not given, it is `what`.

// Position of the value among the choices; otherwise an Error that says unknown().
std::size_t index_of_name(std::string_view what, std::string_view value, Names choices, std::string_view key = {});

[[noreturn]] void no_such_choice(std::string_view what, int value, Names choices, std::string_view key = {});

// The name in names_of() that another name stands for, where the enumeration has other names (aliases_of()).
template <class Enum>
std::string_view first_name(std::string_view value) {
  if constexpr (requires { aliases_of(Enum{}); }) {
    for (const auto& [alias, meant] : aliases_of(Enum{})) {
      if (value == alias) return name_of(meant);
    }
  }
  return value;
}

// The enumerator of that name, for an enumeration with names_of().
template <class Enum>
Enum named(std::string_view what, std::string_view value, std::string_view key = {}) {
  constexpr auto names = names_of(Enum{});
  return static_cast<Enum>(index_of_name(what, first_name<Enum>(value), names, key));
}

// Throws an Error if the value is none of the enumeration's, as after a wrong cast.
template <class Enum>
void check_choice(Enum value, std::string_view what, std::string_view key = {}) {
  constexpr auto names = names_of(Enum{});
  if (static_cast<std::size_t>(value) >= names.size()) no_such_choice(what, static_cast<int>(value), names, key);
}

// Shortest text that reads back as the same number.
std::string to_text(double number);

// The whole text as a decimal number; nothing if it is none.
template <class Number>
std::optional<Number> parsed(std::string_view text) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number);
  return stop == end && fault == std::errc{} ? std::optional(number) : std::nullopt;
}

// The whole text as a decimal number inside the range; otherwise an Error that names `what`, the text and the range.
double to_number(std::string_view what, std::string_view text, const Range& range, std::string_view key = {});
std::int64_t to_integer(std::string_view what, std::string_view text, const Range& range, std::string_view key = {});
std::uint64_t to_unsigned(std::string_view what, std::string_view text, const Range& range, std::string_view key = {});

[[noreturn]] void out_of_range(std::string_view what, std::string_view value, const Range& range, std::string_view key = {});

// Throws that Error if the value is outside the range or NaN.
void check_range(std::string_view what, double value, const Range& range, std::string_view key = {});

// What the call returns; its Error again with `where` in front.
template <class Call>
auto with_context(const std::string& where, const Call& call) {
  try {
    return call();
  } catch (const Error& error) {
    throw error.within(where);
  }
}

std::string to_base64(std::string_view bytes);

}  // namespace base
}  // namespace cautious
