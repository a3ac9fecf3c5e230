// Instructions out of a dictionary: "Define the noun abbey." and what Webster's of 1913 says first about it.
#include "data/sets/catalog.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

namespace cautious::data {
namespace {

constexpr std::string_view kSource = " [1913 Webster]";
constexpr std::size_t kShortest = 30, kLongest = 300;  // bytes of a definition

constexpr std::array<std::pair<std::string_view, std::string_view>, 5> kWordKinds{{{", n. ", "noun"},
                                                                                   {", a. ", "adjective"},
                                                                                   {", v. t. ", "transitive verb"},
                                                                                   {", v. i. ", "intransitive verb"},
                                                                                   {", adv. ", "adverb"}}};

// An entry on one line, with single spaces.
std::string joined(std::string_view entry) {
  std::string line;
  for (const char c : entry) {
    const bool space = c == ' ' || c == '\n';
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

// Without "[L. abbatia]", "(Anat.)" and "1." at its front.
std::string_view bare(std::string_view text) {
  for (;;) {
    const std::string_view before = text;
    const std::size_t close = text.starts_with('[') ? text.find("] ") : text.starts_with('(') ? text.find(") ") : text.npos;
    if (close != text.npos) text.remove_prefix(close + 2);
    if (text.starts_with("1. ")) text.remove_prefix(3);
    if (text == before) return text;
  }
}

bool is_plain(std::string_view text) {
  constexpr std::string_view kMarkup = "[]{}\\";
  return std::ranges::all_of(text, [&](char c) { return c >= ' ' && c <= '~' && kMarkup.find(c) == kMarkup.npos; });
}

// `entry` is "Abbey \Ab"bey\, n.; ... Definition. [1913 Webster] ...".
std::optional<Definition> definition_of(std::string_view entry) {
  const std::string line = joined(entry);
  const std::size_t open = line.find(" \\"), close = line.find("\\, ", open + 2);
  if (open == line.npos || close == line.npos) return std::nullopt;
  const std::string_view word = std::string_view(line).substr(0, open), rest = std::string_view(line).substr(close + 1);
  const auto kind = std::ranges::find_if(kWordKinds, [&](const auto& each) { return rest.starts_with(each.first); });
  if (kind == kWordKinds.end() || word.find_first_of(" \\") != word.npos || !is_plain(word)) return std::nullopt;
  std::string_view text = bare(rest.substr(kind->first.size()));
  text = text.substr(0, text.find(kSource));
  text = text.substr(0, text.find(" --"));  // whose words they are
  const bool fits = text.size() >= kShortest && text.size() <= kLongest && text.ends_with('.');
  if (!fits || !is_plain(text) || std::isupper(static_cast<unsigned char>(text.front())) == 0) return std::nullopt;
  std::string small(word);
  std::ranges::transform(small, small.begin(), [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return Definition{small, std::string(kind->second), std::string(text)};
}

}  // namespace

std::vector<Definition> definitions_in(std::string_view dictionary) {
  std::vector<Definition> all;
  std::set<std::pair<std::string, std::string>> seen;
  while (!dictionary.empty()) {
    // Entries begin at the left; what belongs to them is indented or empty.
    std::size_t end = 0;
    do {
      end = dictionary.find('\n', end);
      end = end == dictionary.npos ? dictionary.size() : end + 1;
    } while (end < dictionary.size() && (dictionary[end] == ' ' || dictionary[end] == '\n'));
    auto found = definition_of(dictionary.substr(0, end));
    if (found && seen.insert({found->word, found->kind}).second) all.push_back(*std::move(found));
    dictionary.remove_prefix(end);
  }
  return all;
}

}  // namespace cautious::data
