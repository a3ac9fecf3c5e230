// One trajectory of a system with what the paper's claims need of it: H along it, gradient and momentum at its end, and how
// well the analytic dH/dt fits.
#pragma once

#include <vector>

#include "lab/dynamics/system.h"
#include "lab/random.h"

namespace cautious::lab {

constexpr double kRises = 1e-6;  // of the fall of H: above what the solver's tolerance explains

struct Watched {
  Trajectory trajectory;
  std::vector<double> h;              // at the trajectory's points
  double rise = 0;                    // the most that H is above an earlier value, over its fall from the start
  double gradient = 0, momentum = 0;  // norms at the end, over that of the gradient at the start
};

Watched watch(const System& system, const Problem& problem, PointView x, const FlowOptions& options);

// The most that values rise above an earlier one.
double largest_rise(const std::vector<double>& values);

// Analytic dH/dt against differences of H along the field, relative, at about 100 points away from switches.
std::vector<double> rate_mismatches(const System& system, const Problem& problem, const Trajectory& trajectory);

// What random_system() draws lambda from.
constexpr double kLeastLambda = 0.2, kMostLambda = 1;

// The same system with lambda, alpha, beta, gamma drawn at random; gamma of Adam is at most 4 alpha.
System random_system(Random& random, System system);

// From shortly after 0 to t_end.
FlowOptions usual_options(double t_end);

}  // namespace cautious::lab
