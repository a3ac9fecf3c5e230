#include "lab/fixedpoint/fixedpoint_problem.h"

#include <utility>

#include <Eigen/QR>

namespace cautious::lab::fixedpoint {
namespace {

constexpr Eigen::Index kSize = 6, kEquations = 3;
constexpr double kCentre = 1.5, kRadius = 0.5;

Eigen::MatrixXd orthogonal(Random& random, Eigen::Index size) {
  return Eigen::HouseholderQR<Eigen::MatrixXd>(random_matrix(random, size, size)).householderQ();
}

// Alternately outside and inside of the box, of either sign.
Eigen::VectorXd targets(Random& random) {
  Eigen::VectorXd c(kSize);
  for (Eigen::Index i = 0; i < kSize; ++i) {
    c(i) = random.sign() * (i % 2 == 0 ? random.uniform(1.5, 2.5) : random.uniform(0.3, 0.8));
  }
  return c;
}

Eigen::VectorXd curvatures() { return Eigen::VectorXd::LinSpaced(kSize, 0.5, 3); }

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

Quadratic separable(Random& random) { return {curvatures().asDiagonal().toDenseMatrix(), targets(random)}; }

Quadratic coupled(Random& random) {
  const Eigen::MatrixXd axes = orthogonal(random, kSize);
  return {axes * curvatures().asDiagonal() * axes.transpose(), targets(random)};
}

Posed pose(std::string title, const Quadratic& quadratic, double weight_decay, Point start) {
  const auto size = entries(start);
  return posed(std::move(title), {size}, weight_decay, std::move(start),
               [quadratic](const Eigen::VectorXd& y, auto g) { g.noalias() = quadratic.h * (y - quadratic.c); });
}

Posed pose_underdetermined(Random& random, double weight_decay, Point start) {
  const auto size = entries(start);
  const Eigen::MatrixXd a = random_matrix(random, kEquations, size) / 2;
  const Eigen::VectorXd b = a * targets(random);
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

}  // namespace cautious::lab::fixedpoint
