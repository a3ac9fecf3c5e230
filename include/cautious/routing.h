// Parameter groups and the rules that send tensors to them, as data. The first route that fits a tensor decides.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/recipe.h>

namespace cautious {

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
