// An arm of the toy experiment: a recipe, written on a line as to_string(Recipe) does: "adamw decay=cautious beta2=0.95
// lr=0.02".
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/detail/field.h>
#include <cautious/recipe.h>

namespace cautious::lab {

struct ToyArm {
  std::string name;  // "Adam + CWD"
  Recipe recipe;
  std::optional<double> lr;  // instead of the one all arms share
};

inline constexpr std::size_t kMostArms = 8;
inline constexpr Range kToyLr{0, 1, true, false};
inline constexpr Range kToyWeightDecay{0, 100, true, false};

// weight_decay where the line does not say. Throws an Error that names the word it cannot use and its character.
ToyArm parse_arm(std::string_view line, double weight_decay);

// "Adam", "AdamW", "Adam + CWD", "Lion + decay", "Muon + CWD", "Adam + random".
std::string name_of(const Recipe& recipe);

// For files: letters, digits and '_'.
std::string key_of(const ToyArm& arm);

// Two arms of one name get the lines they came from as names.
std::vector<ToyArm> parse_arms(const std::vector<std::string>& lines, double weight_decay);

}  // namespace cautious::lab
