// Recipe = rule x decay x coupling: an optimizer as plain data, the named ones, and the routing of tensors to recipes.
//
//   Recipe ours = recipe("adamc");
//   ours.decay = Cautious{};                  // "AdamC + CWD"
//   set(ours, "beta2", 0.95);                 // any field by name, checked
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <cautious/decays.h>
#include <cautious/detail/field.h>
#include <cautious/rules.h>

namespace cautious {

// How weight decay follows the learning rate: the factor that multiplies a decayed parameter in step t.
//   plain        lr_t * wd                 (AdamW as in PyTorch)
//   corrected    lr_t^2 / lr_max * wd      (AdamC)
//   independent  lr_t / lr_max * wd        (wd alone at the peak)
//   squared      lr_t^2 * wd
enum class Coupling { plain, corrected, independent, squared };

constexpr auto names_of(Coupling) { return std::array<std::string_view, 4>{"plain", "corrected", "independent", "squared"}; }

// The weight decay that, multiplied by lr, gives the coupled factor. lr_max is the schedule's peak; corrected and independent
// throw an Error where it is not positive.
double coupled_weight_decay(Coupling coupling, double weight_decay, double lr, double lr_max);

struct Recipe {
  Rule rule;
  Decay decay = Decoupled{};
  Coupling coupling = Coupling::plain;
  double weight_decay = 0;

  static constexpr auto fields() {  // besides those of the rule and the decay
    return std::tuple{Choice{"coupling", &Recipe::coupling, "how decay follows the learning rate"},
                      Field{"weight_decay", &Recipe::weight_decay, kNonnegative, "strength of the decay"}};
  }
};

// The named recipe with its defaults; an unknown name is an Error with a suggestion.
Recipe recipe(std::string_view name);
std::vector<std::string> recipe_names();
std::vector<std::string> decay_names();

// The decay of that name with its defaults.
Decay decay(std::string_view name);

// The same decay beside another rule: a mask by the momentum is one by the direction where the rule does not shape it.
Decay decay_for(const Rule& rule, Decay decay);

std::string_view name_of(const Rule& rule);
std::string_view name_of(const Decay& decay);

// All fields: of the rule, `decay` and its own fields, `coupling` and `weight_decay`; set() in this order repeats the recipe.
std::vector<FieldInfo> fields(const Recipe& recipe);

// Sets one field by name. Unknown name, unreadable value or value out of range: an Error; the recipe is unchanged.
// Setting `decay` resets the decay's own fields to their defaults.
void set(Recipe& recipe, std::string_view field, std::string_view value);
void set(Recipe& recipe, std::string_view field, double value);

// Throws an Error if a member set directly is out of range.
void check(const Recipe& recipe);

// One line, "adam beta1=0.9 beta2=0.999 eps=1e-08 decay=decoupled coupling=plain weight_decay=0.1"; equal lines, equal recipes.
std::string to_string(const Recipe& recipe);

// The recipe of such a line: a named recipe, then FIELD=VALUE for those fields that differ from it, as in
// "adamw decay=cautious beta2=0.95". The inverse of to_string(). An Error has the line and the character in where(), the field
// in key().
Recipe parse_recipe(std::string_view line);

// Parameter groups and the rules that send tensors to them, as data. The first route that fits a tensor decides.

// Whether weight decay applies in a group at all.
enum class DecaySwitch { on, off };

struct Group {
  std::string name;
  Recipe recipe;
  double lr_multiplier = 1;
  DecaySwitch decay = DecaySwitch::on;
};

struct Route {
  static constexpr std::int64_t kUnlimited = std::numeric_limits<std::int64_t>::max();
  std::string group;
  std::string pattern = "*";  // of the tensor's name; '*' is any text, '?' any character
  std::int64_t min_rank = 0;  // of the shape without sides of length 1: a 1 x n matrix is a vector
  std::int64_t max_rank = kUnlimited;
  std::int64_t max_side = kUnlimited;  // longest side
};

struct Routing {
  std::vector<Group> groups;
  std::vector<Route> routes;
};

// Everything in one group.
Routing everything(const Recipe& recipe);

// The usual split: no decay on vectors and scalars.
Routing no_decay_on_vectors(const Recipe& recipe);

// Matrices to one recipe, the rest to another; vectors and scalars do not decay. A matrix with a side above `max_side` (an
// embedding) belongs to the rest.
Routing matrices_and_rest(const Recipe& matrices, const Recipe& rest, std::int64_t max_side = Route::kUnlimited);

// Index of the group for a tensor; an Error if no route fits or a route names no group.
std::size_t route(const Routing& routing, std::string_view name, std::span<const std::int64_t> shape);

}  // namespace cautious
