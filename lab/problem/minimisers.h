// Stationary points, whether they are Pareto-optimal, and curves of minimisers in the plane.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "lab/drawing/figures.h"
#include "lab/problem/problem.h"

namespace cautious::lab {

// The set M of stationary points near a point: the nearest one by Newton's method on grad f = 0 with the pseudo-inverse of the
// Hessian, and the tangent space of M there.
struct Stationary {
  Point x;
  double distance = 0;       // from where the search began
  double gradient_norm = 0;  // what is left of it
  Matrix hessian;
  Matrix tangent;  // columns: an orthonormal basis of the Hessian's null space, which is the tangent space of M
};

// Nothing where Newton's method does not come to rest on a stationary point within `reach` of x.
std::optional<Stationary> nearest_stationary(const Problem& problem, PointView x, double reach);

// Is a stationary point x locally Pareto-optimal on M: does a neighbourhood hold no other stationary point y with |y| <= |x|?
// First order: a direction d of the tangent space with sgn(x_i) d_i <= 0, and d_i = 0 where x_i = 0, would lead to one. These
// directions are also the motions -s x with selectors s in [0,1] of equation (2). That there is none but 0 is a linear program.
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

// The minimisers of a problem of two variables as curves, where on them no other is smaller in both coordinates, and how far a
// point is from there: for pictures and distances.
struct FrontPoint {
  drawing::PlanePoint at;
  Pareto local = Pareto::undecided;
  bool global = false;  // locally not beaten, and no point of the trace is better: |y| <= |x| and smaller in one coordinate
};

// Neighbours are at most 1/80 of the square's side apart, nearer where the curve bends and where `local` or `global` changes. A
// closed curve ends with its first point. An isolated minimiser is a curve of one point.
struct FrontTrace {
  std::vector<std::vector<FrontPoint>> curves;
};

// Minimisers, f least up to rounding, in the square [low, high]^2. A part of M that is an area, and minima of a higher order,
// are left out. Throws an Error (Fault::usage) if the problem has not two variables.
FrontTrace trace_minimisers(const Problem& problem, double low, double high);

// Distances to the traced curves, to the locally optimal parts of them and to the global front; infinite if there are none.
double to_minimisers(const FrontTrace& trace, drawing::PlanePoint p);
double to_local_front(const FrontTrace& trace, drawing::PlanePoint p);
double to_global_front(const FrontTrace& trace, drawing::PlanePoint p);

}  // namespace cautious::lab
