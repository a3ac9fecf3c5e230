// Edit distance for suggestions and std::from_chars for numbers: no locale, no half-read text.
#include "base/fields.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>

namespace cautious {
namespace {

std::string end_of_range(double end) {
  if (end >= kLargest) return "inf";
  int exponent = 0;
  const bool large_power = end >= 0x1p53 && std::frexp(end, &exponent) == 0.5;
  return large_power ? fmt::format("2^{}", exponent - 1) : fmt::format("{}", end);
}

}  // namespace

std::string to_string(const Range& range) {
  return fmt::format("{}{}, {}{}", range.low_open ? '(' : '[', range.low, end_of_range(range.high),
                     range.high_open ? ')' : ']');
}

namespace base {
namespace {

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return result;
}

// Damerau-Levenshtein: insertions, deletions, replacements and swaps of neighbours (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> older(b.size() + 1), old(b.size() + 1), now(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) old[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    now[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      now[j] = std::min({old[j] + 1, now[j - 1] + 1, old[j - 1] + (a[i - 1] != b[j - 1])});
      const bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
      if (swapped) now[j] = std::min(now[j], older[j - 2] + 1);
    }
    older.swap(old);
    old.swap(now);
  }
  return old[b.size()];
}

// How many bytes at the beginning are a character that a terminal obeys instead of showing: controls of ASCII, U+0080 to
// U+009F, and those that turn the direction of text, U+202A to U+202E and U+2066 to U+2069.
std::size_t control_at(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xc2 && byte(1) >= 0x80 && byte(1) <= 0x9f) return 2;
  const bool turns =
      byte(1) == 0x80 ? byte(2) >= 0xaa && byte(2) <= 0xae : byte(1) == 0x81 && byte(2) >= 0xa6 && byte(2) <= 0xa9;
  return byte(0) == 0xe2 && turns ? 3 : 0;
}

// With `shown(bytes)` in place of each such character.
template <class Shown>
std::string without_controls(std::string_view text, const Shown& shown) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t control = control_at(text.substr(at));
    result += control == 0 ? std::string(1, text[at]) : shown(text.substr(at, control));
    at += std::max<std::size_t>(control, 1);
  }
  return result;
}

std::string in_hex(std::string_view bytes) {
  std::string result;
  for (const char c : bytes) result += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  return result;
}

// At most `most` bytes, cut between UTF-8 characters.
std::string_view first_bytes(std::string_view text, std::size_t most) {
  std::size_t length = std::min(text.size(), most);
  while (length > 0 && length < text.size() && (text[length] & 0xc0) == 0x80) --length;
  return text.substr(0, length);
}

// One mistake in three letters, or a beginning.
bool close(std::string_view value, std::string_view choice, std::size_t mistakes) {
  const bool beginning = value.size() >= 2 && choice.substr(0, value.size()) == value;
  return beginning || 3 * mistakes <= std::max(value.size(), choice.size());
}

[[noreturn]] void refuse(std::string_view what, std::string_view key, const std::string& why) {
  throw Error(Fault::usage, fmt::format("{} is {}", what, why), {.key = std::string(key.empty() ? what : key)});
}

template <class Number>
Number read(std::string_view what, std::string_view text, const Range& range, std::string_view kind, std::string_view key) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number);
  const bool whole = stop == end && fault == std::errc{};
  if (whole && range.contains(static_cast<long double>(number))) return number;
  if (!whole && fault != std::errc::result_out_of_range) {
    refuse(what, key, fmt::format("{}, not {}; valid: {}", in_quotes(text), kind, to_string(range)));
  }
  out_of_range(what, in_quotes(text), range, key);
}

}  // namespace

std::string in_quotes(std::string_view text) {
  const std::string_view start = first_bytes(text, 80);
  const std::string result = "'" + without_controls(start, in_hex);
  return result + (start.size() < text.size() ? fmt::format("...' ({} bytes)", text.size()) : "'");
}

std::string in_one_line(std::string_view text) { return printable(first_bytes(text, 200)); }

std::string printable(std::string_view text) {
  return without_controls(text, [](std::string_view) { return std::string(" "); });
}

std::string shell_word(const std::string& text) {
  const auto plain = [](unsigned char c) {
    return c >= 0x80 || std::isalnum(c) || std::string_view("/._-+=:,@%").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::ranges::all_of(text, plain)) return text;
  if (printable(text) != text) {  // $'...' has escapes
    std::string escaped;
    for (const char c : text) escaped += c == '\'' || c == '\\' ? std::string{'\\', c} : std::string(1, c);
    return "$'" + without_controls(escaped, in_hex) + "'";
  }
  std::string quoted = "'";
  for (const char c : text) quoted += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return quoted + "'";
}

std::vector<Word> words_of(std::string_view line) {
  std::vector<Word> words;
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t from = line.find_first_not_of(" \t", at);
    if (from == std::string_view::npos) break;
    at = std::min(line.find_first_of(" \t", from), line.size());
    words.push_back({line.substr(from, at - from), from + 1});
  }
  return words;
}

std::string position_of(std::string_view what, std::string_view line, const Word& word) {
  return fmt::format("{} {}, character {}", what, in_quotes(line), word.character);
}

std::vector<Setting> settings_of(std::string_view what, std::string_view line, std::span<const Word> words) {
  std::vector<Setting> settings;
  for (const Word& word : words) {
    const std::size_t equals = word.text.find('=');
    const std::string_view field = word.text.substr(0, equals);
    const auto refuse = [&](const std::string& why) {
      throw Error(Fault::usage, why, {.key = std::string(field), .where = position_of(what, line, word)});
    };
    if (equals == std::string_view::npos || equals == 0) refuse("expected FIELD=VALUE, found " + in_quotes(word.text));
    const auto same = [&](const Setting& other) { return other.field == field; };
    if (std::ranges::any_of(settings, same)) refuse(fmt::format("{} is given twice", field));
    settings.push_back({field, word.text.substr(equals + 1), position_of(what, line, word)});
  }
  return settings;
}

std::string join(Names names) { return fmt::format("{}", fmt::join(names, ", ")); }
std::string join(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

std::string counted(std::size_t count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "s");
}

std::string_view closest(std::string_view value, Names choices) {
  const std::string wanted = lower(value.substr(0, 80));
  std::string_view best;
  std::size_t fewest = 0;
  for (const std::string_view choice : choices) {
    const std::size_t mistakes = distance(wanted, lower(choice));
    if (!close(wanted, lower(choice), mistakes) || (!best.empty() && mistakes >= fewest)) continue;
    best = choice;
    fewest = mistakes;
  }
  return best;
}

std::string unknown(std::string_view what, std::string_view value, Names choices) {
  const std::string_view meant = closest(value, choices);
  const std::string suggestion = meant.empty() ? "" : fmt::format(" did you mean '{}'?", meant);
  return fmt::format("no {} named {};{} choices: {}", what, in_quotes(value), suggestion, join(choices));
}

std::size_t index_of_name(std::string_view what, std::string_view value, Names choices, std::string_view key) {
  const auto at = std::find(choices.begin(), choices.end(), value);
  if (at != choices.end()) return static_cast<std::size_t>(at - choices.begin());
  throw Error(Fault::usage, unknown(what, value, choices), {.key = std::string(key.empty() ? what : key)});
}

void no_such_choice(std::string_view what, int value, Names choices, std::string_view key) {
  refuse(what, key, fmt::format("number {}; choices: {}", value, join(choices)));
}

std::string to_text(double number) { return fmt::format("{}", number); }

double to_number(std::string_view what, std::string_view text, const Range& range, std::string_view key) {
  return read<double>(what, text, range, "a number", key);
}

std::int64_t to_integer(std::string_view what, std::string_view text, const Range& range, std::string_view key) {
  return read<std::int64_t>(what, text, range, "a whole number", key);
}

std::uint64_t to_unsigned(std::string_view what, std::string_view text, const Range& range, std::string_view key) {
  const bool negative = text.starts_with('-');
  if (negative)
    return static_cast<std::uint64_t>(to_integer(what, text, range, key));  // the range begins at 0: "-1" is outside
  return read<std::uint64_t>(what, text, range, "a whole number", key);
}

void out_of_range(std::string_view what, std::string_view value, const Range& range, std::string_view key) {
  refuse(what, key, fmt::format("{}; valid: {}", value, to_string(range)));
}

void check_range(std::string_view what, double value, const Range& range, std::string_view key) {
  if (!range.contains(value)) out_of_range(what, to_text(value), range, key);
}

std::string to_line(const std::vector<FieldInfo>& fields) {
  std::string line;
  for (const FieldInfo& field : fields) line += fmt::format("{}{}={}", line.empty() ? "" : " ", field.name, field.value);
  return line;
}

std::string to_base64(std::string_view bytes) {
  constexpr std::string_view kLetters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string result;
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    std::uint32_t group = 0;
    for (std::size_t k = 0; k < 3; ++k) {
      group = group << 8 | (i + k < bytes.size() ? static_cast<unsigned char>(bytes[i + k]) : 0u);
    }
    for (std::size_t k = 0; k < 4; ++k) result += i + k > bytes.size() ? '=' : kLetters[group >> (18 - 6 * k) & 63];
  }
  return result;
}

}  // namespace base
}  // namespace cautious
