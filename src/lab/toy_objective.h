// The two toy objectives of the paper's figure "toy_example", with exact distances to their minimisers.
//   circle    f = ((y-3)^2 + (x-3)^2 - 1)^2
//   parabola  f = (y - 3 - (x-3)^2)^2
// The minimisers form a curve M. Its Pareto front holds the points that no other point of M beats in both |x| and |y|; the
// paper's P asks that of near points only, so P is the front and, on the circle, also the arc on the far side.
#pragma once

#include <limits>
#include <optional>
#include <span>
#include <string_view>

namespace cautious {

struct ToyPoint {
  double x = 0, y = 0;
};

double distance(ToyPoint a, ToyPoint b);

// A part of M as an interval of its parameter: the angle on the circle, x on the parabola.
struct ToyArc {
  double from, to;
};

struct ToyObjective {
  std::string_view name, title;
  std::string_view formula;
  ToyPoint start;  // of the default run
  double (*value)(ToyPoint);
  ToyPoint (*gradient)(ToyPoint);
  ToyPoint (*minimiser)(double parameter);   // the point of M
  double (*distance)(ToyPoint, ToyArc);      // to that part of M
  double (*least_in_box)(double half_side);  // the least f where |x| and |y| are at most half_side
  ToyArc manifold;
  ToyArc front;
  std::optional<ToyArc> local_front;  // what P has beyond the front; open at both ends
};

std::span<const ToyObjective> toy_objectives();

// An unknown name is an Error with a suggestion.
const ToyObjective& toy_objective(std::string_view name);

// Distances to M, to its front and to P.
double to_manifold(const ToyObjective& objective, ToyPoint at);
double to_front(const ToyObjective& objective, ToyPoint at);
double to_local_front(const ToyObjective& objective, ToyPoint at);

// Distance to the box |x|, |y| <= half_side; 0 inside. Infinite half_side: no box.
double to_box(double half_side, ToyPoint at);

}  // namespace cautious
