// Benchmarks out of a dictionary: which definition is that of a word, and how does a definition end? Only of entries in its
// last twentieth, which a model that was trained on the dictionary with data.val_fraction = 0.05 has not read.
#include "data/sets/catalog.h"

#include <algorithm>
#include <cctype>

#include <fmt/format.h>

#include "base/hash.h"

namespace cautious::data {
namespace {

constexpr std::size_t kChoices = 4;
constexpr std::size_t kShortestHalf = 12;  // bytes of what a definition begins or ends with

// The first entry that begins in the last twentieth.
std::string_view last_twentieth(std::string_view dictionary) {
  std::size_t at = dictionary.size() - dictionary.size() / 20;
  while (at < dictionary.size() &&
         !(dictionary[at - 1] == '\n' && std::isspace(static_cast<unsigned char>(dictionary[at])) == 0))
    ++at;
  return dictionary.substr(at);
}

// The space in the middle; npos where a half would be too short.
std::size_t middle_of(std::string_view text) {
  const std::size_t space = text.find(' ', text.size() / 2);
  return space == text.npos || space < kShortestHalf || text.size() - space < kShortestHalf ? text.npos : space;
}

// The right one and three others of the same kind of word, in an order of their own.
DictionaryQuestion question_of(const std::vector<Definition>& all, std::size_t number) {
  DictionaryQuestion question{.about = all[number]};
  const std::uint64_t key = base::mix64(number + 1);
  question.right = key % kChoices;
  for (std::uint64_t draw = 1; question.others.size() + 1 < kChoices; ++draw) {
    const Definition& other = all[base::mix64(key + draw * base::kGolden) % all.size()];
    const bool known = other.word == question.about.word || other.text == question.about.text ||
                       std::ranges::find(question.others, other.text) != question.others.end();
    if (other.kind == question.about.kind && !known) question.others.push_back(other.text);
  }
  return question;
}

}  // namespace

std::vector<std::string> DictionaryQuestion::choices() const {
  std::vector<std::string> all = others;
  all.insert(all.begin() + static_cast<std::ptrdiff_t>(right), about.text);
  return all;
}

std::string DictionaryQuestion::beginning() const {
  return fmt::format("{}: {}", about.word, about.text.substr(0, middle_of(about.text)));
}

std::vector<std::string> DictionaryQuestion::endings() const {
  std::vector<std::string> all = choices();
  for (std::string& text : all) text = text.substr(middle_of(text) + 1);
  return all;
}

std::vector<DictionaryQuestion> questions_in(std::string_view dictionary) {
  if (dictionary.size() < 20) return {};
  std::vector<Definition> all = definitions_in(last_twentieth(dictionary));
  std::erase_if(all, [](const Definition& one) { return middle_of(one.text) == one.text.npos; });
  // Kinds of word that are too rare to draw others of.
  constexpr std::ptrdiff_t kRare = 20;
  const std::vector<Definition> before = all;
  std::erase_if(all, [&](const Definition& one) { return std::ranges::count(before, one.kind, &Definition::kind) < kRare; });
  std::vector<DictionaryQuestion> questions;
  for (std::size_t number = 0; number < all.size(); ++number) questions.push_back(question_of(all, number));
  return questions;
}

}  // namespace cautious::data
