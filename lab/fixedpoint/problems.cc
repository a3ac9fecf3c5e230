// The problems, the optimizers, and running one of these on one of those until it rests.
#include "lab/fixedpoint/problems.h"

#include <utility>

#include <cautious/optimizer.h>

#include "lab/fixedpoint/fixedpoint.h"
#include "lab/linear.h"

namespace cautious::lab::fixedpoint {
namespace {

constexpr Eigen::Index kUnknowns = 6, kEquations = 3;
constexpr double kCentre = 1.5, kRadius = 0.5;

Eigen::MatrixXd orthogonal(Random& random, Eigen::Index size) { return orthogonal_factor(random_matrix(random, size, size)); }

// Alternately outside and inside of the box, of either sign.
Eigen::VectorXd random_targets(Random& random) {
  Eigen::VectorXd c(kUnknowns);
  for (Eigen::Index i = 0; i < kUnknowns; ++i) {
    c(i) = random.sign() * (i % 2 == 0 ? random.uniform(1.5, 2.5) : random.uniform(0.3, 0.8));
  }
  return c;
}

Eigen::VectorXd curvatures() { return Eigen::VectorXd::LinSpaced(kUnknowns, 0.5, 3); }

// slope(y, g) writes the gradient of F at y.
template <class Slope>
Posed posed(std::string title, std::vector<std::int64_t> shape, double weight_decay, Point start, Slope slope) {
  Eigen::VectorXd y(static_cast<Eigen::Index>(start.size()));
  auto gradient = [weight_decay, slope, y](PointView x, std::span<double> g) mutable {
    y = weight_decay * as_vector(x);
    slope(y, as_vector(g));
  };
  return {std::move(title), std::move(shape), std::move(start), weight_decay, std::move(gradient)};
}

std::int64_t entries(const Point& start) { return static_cast<std::int64_t>(start.size()); }

}  // namespace

Eigen::MatrixXd random_matrix(Random& random, Eigen::Index rows, Eigen::Index columns) {
  Eigen::MatrixXd matrix(rows, columns);
  for (double& entry : matrix.reshaped()) entry = random.normal();
  return matrix;
}

Eigen::MatrixXd with_singular_values(Random& random, Eigen::Index rows, Eigen::Index columns, const Point& values) {
  const auto rank = static_cast<Eigen::Index>(values.size());
  const Eigen::MatrixXd left = orthogonal(random, rows).leftCols(rank);
  const Eigen::MatrixXd right = orthogonal(random, columns).leftCols(rank);
  return left * as_vector(PointView(values)).asDiagonal() * right.transpose();
}

Point random_start(Random& random, std::size_t size, double weight_decay) {
  Point start(size);
  for (double& entry : start) entry = random.uniform(-2, 2) / weight_decay;
  return start;
}

Quadratic separable(Random& random) { return {curvatures().asDiagonal().toDenseMatrix(), random_targets(random)}; }

Quadratic coupled(Random& random) {
  const Eigen::MatrixXd axes = orthogonal(random, kUnknowns);
  return {axes * curvatures().asDiagonal() * axes.transpose(), random_targets(random)};
}

Posed pose(std::string title, const Quadratic& quadratic, double weight_decay, Point start) {
  const auto size = entries(start);
  return posed(std::move(title), {size}, weight_decay, std::move(start),
               [quadratic](const Eigen::VectorXd& y, auto g) { g.noalias() = quadratic.h * (y - quadratic.c); });
}

Posed pose_underdetermined(Random& random, double weight_decay, Point start) {
  const auto size = entries(start);
  const Eigen::MatrixXd a = random_matrix(random, kEquations, size) / 2;
  const Eigen::VectorXd b = a * random_targets(random);
  return posed("least squares, 3 equations for 6 unknowns", {size}, weight_decay, std::move(start),
               [a, b](const Eigen::VectorXd& y, auto g) { g.noalias() = a.transpose() * (a * y - b); });
}

Posed pose_circle(double weight_decay, Point start) {
  const Eigen::Vector2d centre(kCentre, kCentre);
  return posed("circle (not convex)", {2}, weight_decay, std::move(start), [centre](const Eigen::VectorXd& y, auto g) {
    g = 4 * ((y - centre).squaredNorm() - kRadius * kRadius) * (y - centre);
  });
}

Posed pose(std::string title, const MatrixLeastSquares& problem, double weight_decay) {
  const Eigen::Index rows = problem.a.cols(), columns = problem.b.cols();
  const Eigen::MatrixXd gram = problem.a.transpose() * problem.a, pull = problem.a.transpose() * problem.b;
  return posed(std::move(title), {rows, columns}, weight_decay, Point(static_cast<std::size_t>(rows * columns), 0.0),
               [gram, pull, rows, columns](const Eigen::VectorXd& y, auto g) {
                 Eigen::Map<Matrix> slope(g.data(), rows, columns);
                 slope.noalias() = gram * Eigen::Map<const Matrix>(y.data(), rows, columns);
                 slope -= pull;
               });
}

Point slope_at(const Posed& problem, PointView y) {
  Point x(y.begin(), y.end()), g(y.size());
  for (double& entry : x) entry /= problem.weight_decay;
  problem.gradient(x, g);
  return g;
}

double residual_at(const Surrogate& surrogate, const Posed& problem, PointView y) {
  return residual(surrogate, y, slope_at(problem, y));
}

namespace {

Arm arm(std::string name, Rule rule, double weight_decay, Surrogate surrogate) {
  return {std::move(name), {.rule = std::move(rule), .decay = Decoupled{}, .weight_decay = weight_decay}, surrogate};
}

Point scaled(PointView x, double factor) {
  Point result(x.begin(), x.end());
  for (double& entry : result) entry *= factor;
  return result;
}

}  // namespace

Arm adamw(double weight_decay, double beta2, double eps) {
  return arm("AdamW", Adam{.beta1 = 0.9, .beta2 = beta2, .eps = eps}, weight_decay, {.target = Target::box});
}

Arm muon(double weight_decay, Eigen::Index rows, NewtonSchulz schedule) {
  return arm("Muon", Muon{.polar = {.schedule = schedule}}, weight_decay, {.target = Target::spectral, .rows = rows});
}

Arm threshold(double weight_decay) {
  return arm("Lion-K threshold", LionK{.k = Convex::threshold, .e = kThreshold}, weight_decay,
             {.target = Target::lasso_box, .e = kThreshold});
}

Arm with_cwd(Arm arm) {
  arm.name = arm.name == "AdamW" ? "Adam + CWD" : arm.name + " + CWD";
  arm.recipe.decay = Cautious{};
  const bool sparse = arm.surrogate.target == Target::lasso_box;
  arm.surrogate = {.target = sparse ? Target::lasso : Target::original, .e = sparse ? arm.surrogate.e : 0};
  return arm;
}

Arm opposed(Arm arm) {
  arm.recipe.decay = Opposed{};
  return arm;
}

std::vector<Arm> plain_arms(double weight_decay) {
  return {arm("SGD", Sgd{}, weight_decay, {.target = Target::ridge}),
          arm("SGDM", Sgdm{}, weight_decay, {.target = Target::ridge}),
          adamw(weight_decay),
          arm("Lion", Lion{}, weight_decay, {.target = Target::box}),
          arm("Lion-K l2", LionK{.k = Convex::l2}, weight_decay, {.target = Target::ball}),
          arm("Lion-K huber", LionK{.k = Convex::huber, .e = kHuber}, weight_decay, {.target = Target::huber, .e = kHuber})};
}

std::vector<Arm> cautious_arms(double weight_decay) {
  std::vector<Arm> arms = plain_arms(weight_decay);
  for (Arm& arm : arms) arm = with_cwd(std::move(arm));
  return arms;
}

std::vector<Arm> matrix_arms(double weight_decay, Eigen::Index rows) {
  LionK nuclear{.k = Convex::nuclear};
  nuclear.polar.schedule = NewtonSchulz::exact;
  return {muon(weight_decay, rows), arm("Lion-K nuclear", nuclear, weight_decay, {.target = Target::spectral, .rows = rows}),
          adamw(weight_decay), arm("SGD", Sgd{}, weight_decay, {.target = Target::ridge}), with_cwd(muon(weight_decay, rows))};
}

Point rest(const Arm& arm, const Posed& problem, const Pace& pace, const Watch& watch) {
  Options quick;
  quick.norms = Norms::off;
  quick.threads = 1;
  Optimizer optimizer(arm.recipe, quick);
  Point x = problem.start;
  Point g(x.size());
  optimizer.add("x", problem.shape, x.data(), static_cast<const double*>(g.data()));
  const double weight_decay = arm.recipe.weight_decay;
  const Schedule schedule{.kind = pace.kind, .lr = pace.lr / weight_decay, .steps = pace.steps};
  for (std::int64_t step = 1; step <= pace.steps; ++step) {
    problem.gradient(x, g);
    optimizer.step({.lr = lr_at(schedule, step), .lr_max = schedule.lr});
    if (watch) watch(step, scaled(x, weight_decay));
  }
  return scaled(x, weight_decay);
}

}  // namespace cautious::lab::fixedpoint
