// Random functions to minimise, bounded below, with exact derivatives.
#pragma once

#include "lab/problem/problem.h"
#include "lab/random.h"

namespace cautious::lab {

// f = |A x - b|^2 / 2 with `rank` rows; below d its minimisers form a plane of d - rank dimensions.
Problem random_quadratic(Random& random, std::size_t d, std::size_t rank);

// A strongly convex quadratic plus waves: sum of w_j cos(a_j x + c_j).
Problem random_waves(Random& random, std::size_t d);

// f = (sum of w_i (x_i - c_i)^2 - 1)^2 / 4: its minimisers are an ellipsoid.
Problem random_ellipsoid(Random& random, std::size_t d);

// One of the above, in turn; `number` counts from 0.
Problem random_problem(Random& random, std::size_t number, std::size_t d);

// Not random: f = (a x - b)^2 / 2 in three variables. Decay of the third makes room for that of the others, so all three move
// along the plane.
Problem tilted_plane();

}  // namespace cautious::lab
