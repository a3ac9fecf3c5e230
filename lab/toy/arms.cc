// Arms from the lines that users write, and their names.
#include <algorithm>
#include <array>
#include <cctype>
#include <set>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

[[noreturn]] void refuse(std::string_view line, std::size_t character, std::string_view why) {
  throw Error(Fault::usage, fmt::format("arm {}, character {}: {}", base::in_quotes(line), character, why));
}

// What the recipe refuses is wrong at this word.
template <class Work>
void at_word(std::string_view line, const base::Word& word, const Work& work) {
  try {
    work();
  } catch (const Error& error) {
    refuse(line, word.character, error.what());
  }
}

void set_field(ToyArm& arm, std::string_view field, std::string_view value) {
  if (field == "lr") {
    arm.lr = base::to_number("lr", value, kToyLr);
  } else {
    set(arm.recipe, field, value);
  }
}

}  // namespace

std::string name_of(const Recipe& recipe) {
  struct Title {
    std::string_view rule, shown;
  };
  constexpr std::array<Title, 6> kTitles{
      {{"adam", "Adam"}, {"sgd", "SGD"}, {"sgdm", "SGDM"}, {"lion", "Lion"}, {"lion-k", "Lion-K"}, {"muon", "Muon"}}};
  std::string shown(cautious::name_of(recipe.rule));
  for (const Title& title : kTitles) {
    if (title.rule == shown) shown = title.shown;
  }
  if (const auto* lion = std::get_if<LionK>(&recipe.rule)) shown += fmt::format(" ({})", cautious::name_of(lion->k));
  if (std::holds_alternative<None>(recipe.decay)) return shown;
  if (recipe.coupling == Coupling::corrected && shown == "Adam") {
    shown = "AdamC";
  } else if (recipe.coupling != Coupling::plain) {
    shown += fmt::format(" ({})", cautious::name_of(recipe.coupling));
  }
  if (by_momentum(recipe.decay)) return shown + " + CWD by m";
  if (std::holds_alternative<Cautious>(recipe.decay)) return shown + " + CWD";
  if (!std::holds_alternative<Decoupled>(recipe.decay)) return fmt::format("{} + {}", shown, cautious::name_of(recipe.decay));
  return shown == "Adam" ? "AdamW" : shown == "AdamC" ? shown : shown + " + decay";
}

std::string key_of(const ToyArm& arm) {
  std::string key;
  for (const char c : arm.name) {
    if (std::isalnum(static_cast<unsigned char>(c)) != 0) {
      key += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    } else if (!key.empty() && key.back() != '_') {
      key += '_';
    }
  }
  while (!key.empty() && key.back() == '_') key.pop_back();
  return key;
}

ToyArm parse_arm(std::string_view line, double weight_decay) {
  const std::vector<base::Word> words = base::words_of(line);
  if (words.empty()) {
    throw Error(Fault::usage, "an arm is empty; write a recipe, as in \"adamw decay=cautious beta2=0.95\"; recipes: " +
                                  base::join(recipe_names()));
  }
  ToyArm arm;
  at_word(line, words.front(), [&] { arm.recipe = recipe(words.front().text); });
  arm.recipe.weight_decay = weight_decay;
  std::set<std::string> given;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const auto equals = words[i].text.find('=');
    if (equals == std::string_view::npos || equals == 0) {
      refuse(line, words[i].character,
             fmt::format("found {}, but FIELD=VALUE is expected here", base::in_quotes(words[i].text)));
    }
    const std::string_view field = words[i].text.substr(0, equals);
    if (!given.insert(std::string(field)).second) refuse(line, words[i].character, fmt::format("{} is given twice", field));
    at_word(line, words[i], [&] { set_field(arm, field, words[i].text.substr(equals + 1)); });
  }
  arm.name = name_of(arm.recipe);
  return arm;
}

std::vector<ToyArm> parse_arms(const std::vector<std::string>& lines, double weight_decay) {
  if (lines.size() > kMostArms) {
    throw Error(Fault::usage, fmt::format("there are {} arms; at most {} can be told apart", lines.size(), kMostArms));
  }
  std::vector<ToyArm> arms;
  for (const std::string& line : lines) arms.push_back(parse_arm(line, weight_decay));
  const auto names = [&] {
    std::vector<std::string> all;
    for (const ToyArm& arm : arms) all.push_back(arm.name);
    return all;
  }();
  for (std::size_t i = 0; i < arms.size(); ++i) {
    if (std::count(names.begin(), names.end(), names[i]) > 1) arms[i].name = lines[i];
    for (std::size_t j = 0; j < i; ++j) {
      if (key_of(arms[j]) == key_of(arms[i])) {
        throw Error(Fault::usage, fmt::format("two arms are {}; give each its own fields", base::in_quotes(arms[i].name)));
      }
    }
  }
  return arms;
}

}  // namespace cautious::lab
