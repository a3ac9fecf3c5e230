// The set M of stationary points near a point: the nearest one by Newton's method on grad f = 0 with the pseudo-inverse of the
// Hessian, and the tangent space of M there.
#pragma once

#include <optional>

#include "lab/problem/problem.h"

namespace cautious::lab {

struct Stationary {
  Point x;
  double distance = 0;       // from where the search began
  double gradient_norm = 0;  // what is left of it
  Matrix hessian;
  Matrix tangent;  // columns: an orthonormal basis of the Hessian's null space, which is the tangent space of M
};

// Nothing where Newton's method does not come to rest on a stationary point within `reach` of x.
std::optional<Stationary> nearest_stationary(const Problem& problem, PointView x, double reach);

}  // namespace cautious::lab
