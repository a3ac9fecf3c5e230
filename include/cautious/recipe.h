// Recipe = rule x decay x coupling: an optimizer as plain data, and the named ones.
//
//   Recipe ours = recipe("adamc");
//   ours.decay = Cautious{};                  // "AdamC + CWD"
//   set(ours, "beta2", "0.95");               // any field by name, checked
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <cautious/coupling.h>
#include <cautious/decays.h>
#include <cautious/rules.h>

namespace cautious {

struct Recipe {
  Rule rule;
  Decay decay = Decoupled{};
  Coupling coupling = Coupling::plain;
  double weight_decay = 0;
};

// What a field is, for help texts, files and checks.
struct FieldInfo {
  std::string name;
  std::string value;  // as set() would take it; numbers round-trip exactly
  std::string valid;  // "[0, 1)" or "l1, l2, ..."
  std::string help;
};

// The named recipe with its defaults; an unknown name is an Error with a suggestion.
Recipe recipe(std::string_view name);
std::vector<std::string> recipe_names();
std::vector<std::string> decay_names();

// The decay of that name with its defaults.
Decay decay(std::string_view name);

std::string_view name_of(const Rule& rule);
std::string_view name_of(const Decay& decay);
std::string_view name_of(Coupling coupling);

// All fields: of the rule, `decay` and its own fields, `coupling` and `weight_decay`; set() in this order repeats the recipe.
std::vector<FieldInfo> fields(const Recipe& recipe);

// Sets one field by name. Unknown name, unreadable value or value out of range: an Error; the recipe is unchanged.
// Setting `decay` resets the decay's own fields to their defaults.
void set(Recipe& recipe, std::string_view field, std::string_view value);

// Throws an Error if a member set directly is out of range.
void check(const Recipe& recipe);

// One line, "adam beta1=0.9 beta2=0.999 eps=1e-08 decay=cautious coupling=plain weight_decay=0.1"; equal lines, equal recipes.
std::string to_string(const Recipe& recipe);

}  // namespace cautious
