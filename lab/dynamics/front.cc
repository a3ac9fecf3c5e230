// Ends of the flow of SGD + CWD against the front, the front's own ends, and what LaSalle's principle needs.
#include "lab/dynamics/convergence.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <optional>

#include <fmt/format.h>

#include "lab/linear.h"

namespace cautious::lab {
namespace {

constexpr double kFrontTime = 80;
constexpr double kZero = 1e-3;  // of the largest |x_i|: coordinates below this have gone to 0

LinearProgram bounded_program(Eigen::Index rows, Eigen::Index variables) {
  constexpr double kFree = std::numeric_limits<double>::infinity();
  LinearProgram program;
  program.c = Eigen::VectorXd::Zero(variables);
  program.a = Matrix::Zero(rows, variables);
  program.low = Eigen::VectorXd::Constant(rows, -kFree);
  program.high = Eigen::VectorXd::Zero(rows);
  program.y_low = Eigen::VectorXd::Constant(variables, -1);
  program.y_high = Eigen::VectorXd::Ones(variables);
  return program;
}

// Columns: an orthonormal basis of what the tangent space leaves.
Eigen::MatrixXd normals_of(const Stationary& at) {
  const auto d = static_cast<Eigen::Index>(at.x.size());
  const Eigensystem rest = eigensystem(Eigen::MatrixXd::Identity(d, d) - Eigen::MatrixXd(at.tangent * at.tangent.transpose()));
  return rest.vectors.rightCols(d - at.tangent.cols());
}

// The sign, 0 for what counts as 0.
double side_of(double x, double zero) { return std::abs(x) <= zero ? 0 : sign(x); }

}  // namespace

double strict_shrinkage(const Stationary& at, double zero) {
  const auto d = static_cast<Eigen::Index>(at.x.size()), k = at.tangent.cols();
  if (k == 0) return 0;
  LinearProgram program = bounded_program(d, k + 1);
  program.c[k] = 1;
  program.y_low[k] = 0;
  for (Eigen::Index i = 0; i < d; ++i) {
    const double side = side_of(at.x[static_cast<std::size_t>(i)], zero);
    program.a.row(i).head(k) = (side == 0 ? 1 : side) * at.tangent.row(i);
    if (side == 0) program.low[i] = 0;
    if (side != 0) program.a(i, k) = 1;
  }
  return (*solve(program))[k];
}

double normal_in_orthant(const Stationary& at, double zero) {
  const Eigen::MatrixXd normals = normals_of(at);
  const auto d = static_cast<Eigen::Index>(at.x.size());
  if (normals.cols() == 0) return 0;
  LinearProgram program = bounded_program(d, normals.cols());
  for (Eigen::Index i = 0; i < d; ++i) program.a.row(i) = -side_of(at.x[static_cast<std::size_t>(i)], zero) * normals.row(i);
  program.c = -program.a.colwise().sum();
  return program.c.dot(*solve(program));
}

bool is_transversal(const Stationary& at, double zero) {
  std::vector<Eigen::Index> zeros;
  for (std::size_t i = 0; i < at.x.size(); ++i) {
    if (side_of(at.x[i], zero) == 0) zeros.push_back(static_cast<Eigen::Index>(i));
  }
  if (zeros.empty()) return true;
  const auto count = static_cast<Eigen::Index>(zeros.size());
  if (count > at.tangent.cols()) return false;
  return singular_values(Matrix(at.tangent(zeros, Eigen::all)))(count - 1) > 1e-6;
}

namespace {

// Where flows from random starts on random manifolds end.
struct FrontEnds {
  std::size_t flows = 0, judged = 0, strictly = 0;  // strictly beaten
  std::size_t zeros = 0;                            // of the judged: with coordinates at 0
  std::size_t moving = 0, touching = 0, lost = 0;   // left out: in motion; not transversal; not on the manifold
  double worst = 0;                                 // largest strict_shrinkage
  double least_sum = INFINITY;                      // of the selectors, while it slides where it is strictly beaten
  std::size_t slid = 0;                             // points for that
};

double zero_of(PointView x) { return kZero * as_vector(x).lpNorm<Eigen::Infinity>(); }

bool has_zero(PointView x) { return as_vector(x).cwiseAbs().minCoeff() <= zero_of(x); }

// In the last tenth of the time.
bool is_moving(const Trajectory& trajectory) {
  const FlowPoint& end = trajectory.points.back();
  double most = 0;
  for (const FlowPoint& point : trajectory.points) {
    if (point.t < 0.9 * end.t) continue;
    most = std::max(most, (as_vector(PointView(point.z)) - as_vector(PointView(end.z))).lpNorm<Eigen::Infinity>());
  }
  return most > zero_of(end.z);
}

// The slide's selectors where the codimension is 1 and they are unique.
void add_slide(FrontEnds& ends, const System& system, const Problem& problem, const Trajectory& trajectory) {
  for (const FlowPoint& point : trajectory.points) {
    if (std::find(point.sliding.begin(), point.sliding.end(), false) != point.sliding.end() || has_zero(point.z)) continue;
    const auto at = nearest_stationary(problem, point.z, 1e-3);
    if (!at || at->tangent.cols() + 1 != static_cast<Eigen::Index>(point.z.size()) || strict_shrinkage(*at) < 1e-2) continue;
    double sum = 0;
    for (std::size_t i = 0; i < point.z.size(); ++i) sum += selector(system, point.z, point.side, {}, i);
    ends.least_sum = std::min(ends.least_sum, sum);
    ++ends.slid;
  }
}

void judge(FrontEnds& ends, const Problem& problem, const Trajectory& trajectory) {
  const auto at = nearest_stationary(problem, trajectory.points.back().z, 0.05);
  if (!at) {
    ++ends.lost;
  } else if (is_moving(trajectory)) {
    ++ends.moving;
  } else if (const double zero = zero_of(at->x); !is_transversal(*at, zero)) {
    ++ends.touching;
  } else {
    ++ends.judged;
    ends.zeros += has_zero(at->x);
    const double shrinkage = strict_shrinkage(*at, zero);
    ends.strictly += shrinkage > kStrictly;
    ends.worst = std::max(ends.worst, shrinkage);
  }
}

FrontEnds front_ends(System system, const DynamicsOptions& options) {
  FrontEnds ends;
  Random random(options.seed + 41);
  for (std::size_t n = 0; n < 4 * options.trials; ++n) {
    const std::size_t d = 3 + random.below(4);
    system.lambda = random.uniform(kLeastLambda, kMostLambda);
    const Problem problem = n % 3 == 2 ? random_ellipsoid(random, d) : random_quadratic(random, d, 1 + n % 2);
    const Trajectory trajectory =
        flow(inclusion_of(system, problem), problem.start, {.t_end = kFrontTime, .relative = 1e-9, .absolute = 1e-11});
    ++ends.flows;
    judge(ends, problem, trajectory);
    if (system.decay == FlowDecay::cautious && !system.reversed) add_slide(ends, system, problem, trajectory);
  }
  return ends;
}

// At random points of random planes exactly one of the alternatives holds.
struct Alternatives {
  std::size_t points = 0, first = 0, second = 0, exactly_one = 0;
};

Alternatives alternatives(std::uint64_t seed) {
  Random random(seed);
  Alternatives found;
  for (std::size_t n = 0; n < 200; ++n) {
    const auto d = static_cast<Eigen::Index>(2 + n % 5),
               k = static_cast<Eigen::Index>(1 + random.below(static_cast<std::size_t>(d - 1)));
    Eigen::MatrixXd a(d, d);
    for (double& entry : a.reshaped()) entry = random.normal();
    Stationary at;
    for (Eigen::Index i = 0; i < d; ++i) at.x.push_back(random.below(4) == 0 ? 0 : random.normal());
    at.tangent = orthogonal_factor(a).leftCols(k);
    const bool beaten = strict_shrinkage(at) > kStrictly, opposed = normal_in_orthant(at) > kStrictly;
    ++found.points;
    found.first += beaten;
    found.second += opposed;
    found.exactly_one += beaten != opposed;
  }
  return found;
}

// Flows that end off the manifold say nothing about it.
bool is_enough(const FrontEnds& ends) { return 2 * ends.judged >= ends.flows; }

std::string ended(const FrontEnds& ends) {
  return fmt::format("{} of {} strictly beaten, the largest rate {:.1e}", ends.strictly, ends.judged, ends.worst);
}

Claim front_claim(const DynamicsOptions& options) {
  const System sgd{.flow = Flow::sgd};
  System reversed = sgd, without = sgd;
  reversed.reversed = true;
  without.decay = FlowDecay::none;
  const FrontEnds cwd = front_ends(sgd, options), none = front_ends(without, options), turned = front_ends(reversed, options);
  return {
      "SGD + CWD's flow ends at no minimiser where all nonzero |x_i| could shrink at once",
      "section 3.2",
      is_enough(cwd) ? outcome_of(cwd.strictly == 0) : Outcome::undecided,
      fmt::format(
          "flows from random starts on planes and ellipsoids of minimisers to time {:g}: {}, {} of them with "
          "coordinates at 0; left out: {} in motion, {} where the manifold only touches the plane of the zeros, {} not on "
          "the manifold; at {} points of slides that are strictly beaten the selectors add up to {:.3f} at least, where "
          "the proof says 1",
          kFrontTime, ended(cwd), cwd.zeros, cwd.moving, cwd.touching, cwd.lost, cwd.slid, cwd.slid > 0 ? cwd.least_sum : 0.0),
      "",
      {{"without decay", ended(none), none.strictly > 0},
       {"with the mask reversed", fmt::format("{}; {} not on the manifold", ended(turned), turned.lost),
        turned.strictly > 0 || !is_enough(turned)}}};
}

Claim alternative_claim(const DynamicsOptions& options) {
  const Alternatives found = alternatives(options.seed + 42);
  const std::string text =
      "Either all nonzero |x_i| can shrink at once along the manifold, or a normal has w x ≥ 0 and not 0 (Stiemke, Motzkin)";
  return {found.exactly_one == found.points ? text : "Not in this run: " + text, "", Outcome::noted,
          fmt::format("two linear programs at {} random points: the first is true at {}, the second at {}, exactly one at {}",
                      found.points, found.first, found.second, found.exactly_one)};
}

// The lowest point of the circle: s = (1, 0) solves equation (2), yet no other point near is as small in both coordinates.
Claim ends_claim() {
  const Problem& circle = problem("circle");
  const Point x = {3, 2};
  const Matrix h = hessian(circle, x);
  const double along = (h * Eigen::Vector2d(x[0], 0)).norm();
  std::size_t smaller = 0, seen = 0;
  for (int n = -500; n <= 500; ++n) {
    if (n == 0) continue;
    const double angle = -std::numbers::pi / 2 + 1e-3 * n;
    ++seen;
    smaller += 3 + std::cos(angle) <= x[0] && 3 + std::sin(angle) <= x[1];
  }
  return {"The local Pareto front is where the tangent space allows no nonzero s", "section 3.2",
          outcome_of(along > 1e-12 || smaller > 0),
          fmt::format(
              "on the circle at (3, 2): |∇²f (s x)| = {:.0e} for s = (1, 0), and {} of {} points of the circle within 29° are "
              "as small in both coordinates; that no nonzero s implies the front is right, the converse is not",
              along, smaller, seen),
          "the circle's lowest point (3, 2) has the tangent (1, 0), so x' = -λ s x with s = (1, 0) is allowed; but every other "
          "point of the circle is higher than 2, so none is as small in both coordinates, and (3, 2) is on the front"};
}

// f = e^-x is bounded below and the flow is x = log(e^x0 + t): H falls, the gradient vanishes, and there is no accumulation
// point.
Claim lasalle_claim() {
  Problem slope;
  slope.start = {1};
  slope.value = [](PointView x) { return std::exp(-x[0]); };
  slope.gradient = [](PointView x, std::span<double> g) { g[0] = -std::exp(-x[0]); };
  slope.hessian = [](PointView x, Matrix& h) { h = Matrix::Constant(1, 1, std::exp(-x[0])); };
  const double t_end = 1000;
  const Trajectory trajectory =
      flow(inclusion_of({.flow = Flow::sgd}, slope), slope.start, {.t_end = t_end, .relative = 1e-9, .absolute = 1e-11});
  const double x = trajectory.points.back().z[0], expected = std::log(std::exp(1.0) + t_end);
  const std::string text =
      "LaSalle's principle needs bounded trajectories and a field without t: e^-x has no accumulation point, and Adam's field "
      "has t";
  return {
      std::abs(x - expected) < 1e-6 ? text : "Not in this run: " + text, "", Outcome::noted,
      fmt::format("f = e^-x, SGD + CWD from x = 1: x = {:.4f} at time {:g} (log(e + t) = {:.4f}), while f falls to {:.0e}; the "
                  "paper assumes that f is bounded below, not that trajectories are bounded",
                  x, t_end, expected, std::exp(-x))};
}

}  // namespace

Section front_section(const DynamicsOptions& options, const Progress& progress) {
  Section section = new_section(
      "Does it converge to the front?",
      "The paper concludes it from equation (2) without a proof. For SGD's flow there is one of a part (docs/theory.md): an "
      "accumulation point that is a regular minimiser is not strictly beaten: no tangent direction shrinks every |x_i| that is "
      "not 0 and leaves the others. Open: saddles, degenerate minimisers, manifolds that only touch the plane of the zeros, "
      "and points that are beaten in some coordinates only.",
      options);
  progress(0, "the front");
  section.claims = {ends_claim(), front_claim(options), alternative_claim(options), lasalle_claim()};
  return section;
}

}  // namespace cautious::lab
