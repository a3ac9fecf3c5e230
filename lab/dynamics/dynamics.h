// `cautious lab dynamics`: Table 1 in continuous time. Solves every system with and without CWD on random problems from random
// starts, watches H(t) and its analytic derivative, momentum, gradient and the motion on the manifold; and the remarks of
// appendix D.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lab/dynamics/system.h"
#include "lab/experiment.h"
#include "lab/numbers.h"
#include "lab/problem/problem.h"

namespace cautious::lab {

struct DynamicsOptions {
  std::uint64_t seed = 0;
  std::size_t trials = 12;  // random problems and starts per system
};

Experiment run_dynamics(const DynamicsOptions& options, const Progress& progress);

// Random functions to minimise, bounded below, with exact derivatives.
//
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

inline constexpr double kRises = 1e-6;  // of the fall of H: above what the solver's tolerance explains

// One trajectory of a system with what the paper's claims need of it.
struct Watched {
  Trajectory trajectory;
  std::vector<double> h;              // at the trajectory's points
  double rise = 0;                    // the most that H is above an earlier value, over its fall from the start
  double gradient = 0, momentum = 0;  // norms at the end, over that of the gradient at the start
};

Watched watch(const System& system, const Problem& problem, PointView x, const FlowOptions& options);

// The most that values rise above an earlier one, and the same over their fall from the first.
double largest_rise(const std::vector<double>& values);
double relative_rise(const std::vector<double>& values);

// The relative rise of an H with other weights along a trajectory.
double mutated_rise(const System& system, const Problem& problem, const Trajectory& trajectory, const LyapunovWeights& weights);

// Analytic dH/dt against differences of H along the field, relative, at about 100 points.
struct RateCheck {
  std::vector<double> mismatches, mutated;  // the second with half of lambda in the formula
  std::size_t sliding = 0, unclean = 0;     // points left out: sliding; a switch or rounding too near
  void include(const RateCheck& other);
};
RateCheck check_rate(const System& system, const Problem& problem, const Trajectory& trajectory);

// What random_system() draws lambda from, and gamma of all but Adam.
inline constexpr double kLeastLambda = 0.2, kMostLambda = 1;
inline constexpr double kLeastGamma = 0.7, kMostGamma = 1.5;

// The same system with lambda, alpha, beta, gamma drawn at random; gamma of Adam is at most 4 alpha.
System random_system(Random& random, System system);

// From shortly after 0 to t_end.
FlowOptions usual_options(double t_end);

// The sections. Each draws its own random numbers from the seed.
Section table1_section(const DynamicsOptions& options, const Progress& progress);
Section manifold_section(const DynamicsOptions& options, const Progress& progress);
Section pareto_section(const DynamicsOptions& options, const Progress& progress);
Section adamw_section(const DynamicsOptions& options, const Progress& progress);
Section gamma_section(const DynamicsOptions& options, const Progress& progress);
Section muon_section(const DynamicsOptions& options, const Progress& progress);
Section threshold_section(const DynamicsOptions& options, const Progress& progress);
Section front_section(const DynamicsOptions& options, const Progress& progress);

// A count over kSeeds seeds, the first of them the run's own: "4 to 18 of 48", and the same with "over seeds 0 to 3".
inline constexpr std::uint64_t kSeeds = 4;
std::string range_of(const std::vector<std::size_t>& counts, std::size_t of);
std::string over_seeds(const std::vector<std::size_t>& counts, std::size_t of, const DynamicsOptions& options);

Section new_section(std::string title, std::string text, const DynamicsOptions& options);
report::LineChart new_chart(std::string title, std::string x_label, std::string y_label, std::string description);
report::ChartSeries new_series(std::string name, std::size_t colour);

}  // namespace cautious::lab
