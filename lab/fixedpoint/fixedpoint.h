// `cautious lab fixedpoint`: section 2.2 and appendix C. Which problem does an optimizer solve? AdamW and Lion: min f with
// |x|_inf <= 1/lambda; Muon: ||X||_op <= 1/lambda; SGD: f + lambda |x|^2 / 2; with CWD all of them: f itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <cautious/detail/field.h>
#include <cautious/recipe.h>
#include <cautious/schedule.h>

#include "lab/experiment.h"
#include "lab/fixedpoint/problems.h"

namespace cautious::lab {

struct FixedpointOptions {
  std::int64_t steps = 20000;
  std::uint64_t seed = 0;
};

inline constexpr Range kFixedpointSteps{10000, 1e6, false, false};  // with fewer, the arms are not at rest

// Throws an Error(Fault::usage) that names the value and the valid range.
void check(const FixedpointOptions& options);

// Repeats the run.
std::string command_of(const FixedpointOptions& options);

Experiment run_fixedpoint(const FixedpointOptions& options, const Progress& progress);

}  // namespace cautious::lab

namespace cautious::lab::fixedpoint {

// An optimizer and the problem it is said to solve.
struct Arm {
  std::string name;
  Recipe recipe;
  Surrogate surrogate;
};

// Widths of huber and threshold, compared with gradients of size 1.
inline constexpr double kHuber = 0.5, kThreshold = 0.2;

// Of AdamW unless said otherwise: beta2 as in language models, eps far below every gradient that does not vanish.
inline constexpr double kEps = 1e-10;

// Plain weight decay: SGD, SGDM, AdamW, Lion, and Lion-K with l2 and huber.
std::vector<Arm> plain_arms(double weight_decay);

// The same with cautious weight decay; their problem is f.
std::vector<Arm> cautious_arms(double weight_decay);

// On a matrix with that number of rows: Muon with exact factors, Lion-K with the nuclear norm, AdamW, SGD; Muon + CWD.
std::vector<Arm> matrix_arms(double weight_decay, Eigen::Index rows);

// Lion-K with K = sum max(|z| - e, 0), which is least wherever |z| <= e.
Arm threshold(double weight_decay);

Arm adamw(double weight_decay, double beta2 = 0.95, double eps = kEps);
Arm muon(double weight_decay, Eigen::Index rows, NewtonSchulz schedule = NewtonSchulz::exact);
// Its problem becomes f; of threshold, f + e |x|_1: where |g| <= e there is no update and x decays.
Arm with_cwd(Arm arm);
// The mask of CWD reversed: decay only where u x < 0. Its problem stays.
Arm opposed(Arm arm);

// The learning rate in units of the box: a step of a sign is lr / lambda, one of decay shrinks x by the part lr.
struct Pace {
  double lr = 0.01;
  std::int64_t steps = 20000;
  ScheduleKind kind = ScheduleKind::cosine;  // down to 0
};

// Called after each step with x in units of the box.
using Watch = std::function<void(std::int64_t step, PointView y)>;

// Where the arm ends, in units of the box.
Point rest(const Arm& arm, const Posed& problem, const Pace& pace, const Watch& watch = {});

// A problem counts as solved if the natural residual, and the distance from the solution where it
// is known, are at most kSolved; as not solved if the residual is at least kApart. Both are in units of the box.
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
  double reversed = 0;             // plain arms: residual of its own on the coupled quadratic with the mask reversed
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

// The fixed-point equations of appendix C under cautious decay, tried out: which (λx, g) of one coordinate satisfy them?
struct CaseworkCount {
  std::size_t solutions = 0;
  std::size_t nonzero = 0;              // of these, with sides that are not 0
  double example_y = 0, example_g = 0;  // one of those
};

// Appendix C prints the equation of Lion-K with a sign that does not follow from Algorithm 1.
//   as_printed        -grad K(-g) = 1(grad K(-g) y <= 0) y
//   of_the_algorithm   grad K(-g) = 1(grad K(-g) y <= 0) y
enum class Sign { as_printed, of_the_algorithm };

// g / (|g| + eps) = -1(g y >= 0) y, for several eps; as_printed: with the same wrong sign, which the paper does not have here.
CaseworkCount count_adam(Sign sign);

// For K = |z| and huber.
CaseworkCount count_lion_k(Sign sign);

// |A X - B|_F^2 / 2 with a random 6 x 5 matrix A and 6 x 4 matrix B.
MatrixLeastSquares random_least_squares(Random& random);
inline constexpr Eigen::Index kRows = 5, kColumns = 4;  // of X

// Twelve, all others with another seed.
std::vector<MatrixLeastSquares> muon_cwd_problems(std::uint64_t seed);

// Muon + CWD and its masks; see bias.cc. The default is algorithm 5's, by the orthogonal factor.
Arm muon_cwd(Eigen::Index rows, Decay decay = Cautious{});
Section bias_section(const FixedpointOptions& options);

}  // namespace cautious::lab::fixedpoint
