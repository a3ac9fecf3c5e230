// The minimisers of a problem of two variables as curves, where on them no other is smaller in both coordinates, and how far a
// point is from there: for pictures and distances.
#pragma once

#include <vector>

#include "lab/drawing/figures.h"
#include "lab/problem/pareto.h"
#include "lab/problem/problem.h"

namespace cautious::lab {

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
