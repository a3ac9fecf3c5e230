// Edit distance for suggestions and std::from_chars for numbers: no locale, no half-read text.
#include "base/text.h"

#include <algorithm>
#include <charconv>

#include <fmt/format.h>

#include <cautious/error.h>

namespace cautious {

std::string to_string(const Range& range) {
  return fmt::format("{}{}, {}{}", range.low_open ? '(' : '[', range.low,
                     range.high >= kLargest ? "inf" : fmt::format("{}", range.high), range.high_open ? ')' : ']');
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

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

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

template <class Number>
Number read(std::string_view what, std::string_view text, const Range& range, std::string_view kind) {
  Number number{};
  const char* const end = text.data() + text.size();
  const auto [stop, fault] = std::from_chars(text.data(), end, number);
  if (fault == std::errc::result_out_of_range || (fault == std::errc{} && stop == end)) {
    if (fault == std::errc{} && range.contains(static_cast<double>(number))) return number;
    throw Error(Fault::usage, fmt::format("{} is {}; valid: {}", what, in_quotes(text), to_string(range)));
  }
  throw Error(Fault::usage, fmt::format("{} is {}, not {}; valid: {}", what, in_quotes(text), kind, to_string(range)));
}

}  // namespace

std::string in_quotes(std::string_view text) {
  const std::string_view start = first_bytes(text, 80);
  std::string result = "'";
  for (const char c : start)
    result += is_control(c) ? fmt::format("\\x{:02x}", static_cast<unsigned char>(c)) : std::string(1, c);
  return result + (start.size() < text.size() ? fmt::format("...' ({} bytes)", text.size()) : "'");
}

std::string in_one_line(std::string_view text) {
  std::string result(first_bytes(text, 200));
  std::ranges::replace_if(result, is_control, ' ');
  return result;
}

std::string join(Names names) { return fmt::format("{}", fmt::join(names, ", ")); }
std::string join(const std::vector<std::string>& names) { return fmt::format("{}", fmt::join(names, ", ")); }

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

std::size_t index_of_name(std::string_view what, std::string_view value, Names choices) {
  const auto at = std::find(choices.begin(), choices.end(), value);
  if (at == choices.end()) throw Error(Fault::usage, unknown(what, value, choices));
  return static_cast<std::size_t>(at - choices.begin());
}

void no_such_choice(std::string_view what, int value, Names choices) {
  throw Error(Fault::usage, fmt::format("{} is number {}; choices: {}", what, value, join(choices)));
}

std::string to_text(double number) { return fmt::format("{}", number); }

double to_number(std::string_view what, std::string_view text, const Range& range) {
  return read<double>(what, text, range, "a number");
}

std::int64_t to_integer(std::string_view what, std::string_view text, const Range& range) {
  return read<std::int64_t>(what, text, range, "a whole number");
}

void check_range(std::string_view what, double value, const Range& range) {
  if (range.contains(value)) return;
  throw Error(Fault::usage, fmt::format("{} is {}; valid: {}", what, value, to_string(range)));
}

}  // namespace base
}  // namespace cautious
