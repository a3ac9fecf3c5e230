// The least value of a problem in the box |x_i| <= half_side that projected gradient descent finds.
#pragma once

#include "lab/problem/problem.h"

namespace cautious::lab {

// From the guesses (moved into the box), the origin and a few random points.
double least_in_box(const Problem& problem, double half_side, const std::vector<Point>& guesses);

}  // namespace cautious::lab
