// The parts of the experiment. A problem counts as solved if the natural residual, and the distance from the solution where it
// is known, are at most kSolved; as not solved if the residual is at least kApart. Both are in units of the box.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lab/fixedpoint/fixedpoint.h"
#include "lab/fixedpoint/fixedpoint_rest.h"

namespace cautious::lab::fixedpoint {

inline constexpr double kSolved = 0.01, kApart = 0.05;

// Problems are posed in units of the box, so that any other value gives the same numbers.
inline constexpr double kWeightDecay = 0.5;

// What the paper does not claim is noted whatever came out; the text then says so.
inline Claim observed(bool seen, const std::string& text, std::string evidence) {
  return {seen ? text : "Not in this run: " + text, "", Outcome::noted, std::move(evidence)};
}

inline Pace pace_of(const FixedpointOptions& options) { return {.steps = options.steps}; }

inline double largest(PointView y) { return as_vector(y).lpNorm<Eigen::Infinity>(); }

// Where an arm ended on the problems of vectors.
struct End {
  Arm arm;
  std::vector<Point> ends;         // one per problem
  std::vector<double> residuals;   // of its own problem, one per problem
  std::vector<double> distances;   // from the known solution: of the first two, the quadratics
  std::vector<double> of_targets;  // residuals of all of Ends::targets on the coupled quadratic
  double least_other = 0;          // the smallest of those that are not its own
};

struct Ends {
  std::vector<Posed> problems;       // separable and coupled quadratic, least squares, circle
  std::vector<Surrogate> targets;    // the problems that an arm could solve
  std::vector<End> plain, cautious;  // in the order of plain_arms() and cautious_arms(), then threshold
};

const End& end_of(const std::vector<End>& ends, std::string_view name);

// Worst of all problems.
double worst_residual(const End& end);
double worst_distance(const End& end);
bool solves_its_own(const End& end);

Ends run_vectors(const FixedpointOptions& options);

Section vectors_section(const FixedpointOptions& options, const Ends& ends);
Section curves_section(const FixedpointOptions& options);
Section matrices_section(const FixedpointOptions& options);
Section motion_section(const FixedpointOptions& options);
Section cautious_section(const Ends& ends);

}  // namespace cautious::lab::fixedpoint
