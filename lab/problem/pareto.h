// Is a stationary point x locally Pareto-optimal on M: does a neighbourhood hold no other stationary point y with |y| <= |x|?
// First order: a direction d of the tangent space with sgn(x_i) d_i <= 0, and d_i = 0 where x_i = 0, would lead to one. These
// directions are also the motions -s x with selectors s in [0,1] of equation (2). That there is none but 0 is a linear program.
#pragma once

#include <optional>
#include <string_view>

#include "lab/problem/manifold.h"

namespace cautious::lab {

enum class Pareto {
  optimal,    // no direction: proof of local optimality
  beaten,     // `better` is a stationary point near x, no coordinate larger and one smaller: proof of the contrary
  undecided,  // there are directions, but following them found no better point
};

struct ParetoVerdict {
  Pareto pareto = Pareto::undecided;
  Point direction;       // the one that shrinks |x|_1 most with |d_i| <= |x_i|; zeros if optimal
  double shrinkage = 0;  // how much: the program's optimum, -sum sgn(x_i) d_i
  std::optional<Point> better;
};

// `at` is on M. Coordinates within `zero` of 0 count as 0.
ParetoVerdict pareto(const Problem& problem, const Stationary& at, double zero = 1e-9);

}  // namespace cautious::lab
