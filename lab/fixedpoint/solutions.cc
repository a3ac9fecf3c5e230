// Proximal points, residuals and solutions of the problems that an optimizer may solve.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <boost/math/tools/roots.hpp>

#include <cautious/error.h>

#include "lab/fixedpoint/problems.h"
#include "lab/linear.h"

namespace cautious::lab::fixedpoint {
std::string_view name_of(Target target) {
  constexpr std::array<std::string_view, 8> names{
      "f",         "f + λ|x|²/2",          "f in the box",          "f in the ball", "f + eλ|x|²/2 in the box",
      "f + e|x|₁", "f + e|x|₁ in the box", "f in the spectral ball"};
  return names.at(static_cast<std::size_t>(target));
}

double soft(double z, double e) { return std::copysign(std::max(0.0, std::abs(z) - e), z); }

Matrix with_clipped_singular_values(const Matrix& matrix) {
  const auto [u, values, v] = svd(Eigen::MatrixXd(matrix));
  return u * values.cwiseMin(1).asDiagonal() * v.transpose();
}

Point nearest(const Surrogate& surrogate, PointView z) {
  Point y(z.begin(), z.end());
  auto vector = as_vector(std::span<double>(y));
  switch (surrogate.target) {
    case Target::original:
      break;
    case Target::ridge:
      vector /= 2;
      break;
    case Target::box:
      vector = vector.cwiseMax(-1).cwiseMin(1).eval();
      break;
    case Target::ball:
      vector /= std::max(1.0, vector.norm());
      break;
    case Target::huber:
      vector = (vector / (1 + surrogate.e)).cwiseMax(-1).cwiseMin(1).eval();
      break;
    case Target::lasso:
      for (double& entry : y) entry = soft(entry, surrogate.e);
      break;
    case Target::lasso_box:
      for (double& entry : y) entry = std::clamp(soft(entry, surrogate.e), -1.0, 1.0);
      break;
    case Target::spectral: {
      const auto columns = static_cast<Eigen::Index>(y.size()) / surrogate.rows;
      Eigen::Map<Matrix> matrix(y.data(), surrogate.rows, columns);
      matrix = with_clipped_singular_values(matrix);
      break;
    }
  }
  return y;
}

double residual(const Surrogate& surrogate, PointView y, PointView g) {
  Point z(y.size());
  as_vector(std::span<double>(z)) = as_vector(y) - as_vector(g);
  const Point near = nearest(surrogate, z);
  return (as_vector(y) - as_vector(PointView(near))).lpNorm<Eigen::Infinity>();
}

double barrier_residual(PointView y, PointView g, double eps) {
  const auto position = as_vector(y).array();
  return (as_vector(g).array() + eps * position / (1 - position.abs())).abs().maxCoeff();
}

namespace {

constexpr int kSweeps = 100000;

double ridge_of(const Surrogate& surrogate) { return surrogate.target == Target::huber ? surrogate.e : 0; }

// The minimiser of h y^2 / 2 - pull y + K*(y).
double along_coordinate(const Surrogate& surrogate, double h, double pull) {
  const bool sparse = surrogate.target == Target::lasso || surrogate.target == Target::lasso_box;
  const double y = (sparse ? soft(pull, surrogate.e) : pull) / (h + ridge_of(surrogate));
  return surrogate.target == Target::lasso ? y : std::clamp(y, -1.0, 1.0);
}

// Of "at -1, between, at 1" per coordinate: the point that this choice determines, and by how much it violates KKT.
struct Candidate {
  Eigen::VectorXd y;
  double violation = 0;
};

Candidate candidate(const Eigen::MatrixXd& h, const Eigen::VectorXd& b, const std::vector<int>& side) {
  std::vector<Eigen::Index> free;
  Eigen::VectorXd y(b.size());
  for (Eigen::Index i = 0; i < b.size(); ++i) {
    y(i) = side[static_cast<std::size_t>(i)];
    if (y(i) == 0) free.push_back(i);
  }
  if (!free.empty()) {
    const Eigen::VectorXd rest = b - h * y;
    const Eigen::VectorXd solved = solve_definite(h(free, free), Eigen::VectorXd(rest(free)));
    y(free) = solved;
  }
  const Eigen::VectorXd slope = h * y - b;
  double violation = 0;
  for (Eigen::Index i = 0; i < b.size(); ++i) {
    const int at = side[static_cast<std::size_t>(i)];
    // At a face the slope pushes outward; between the faces y stays there.
    violation = std::max(violation, at == 0 ? std::abs(y(i)) - 1 : at * slope(i));
  }
  return {y, violation};
}

// |y(mu)| - 1 decreases in mu, where y(mu) = (H + mu I)^{-1} H c.
Eigen::VectorXd in_ball(const Quadratic& quadratic) {
  if (quadratic.c.norm() <= 1) return quadratic.c;
  const Eigensystem eigen = eigensystem(quadratic.h);
  const Eigen::ArrayXd values = eigen.values.array();
  const Eigen::ArrayXd pull = values * (eigen.vectors.transpose() * quadratic.c).array();
  const auto excess = [&](double mu) { return (pull / (values + mu)).matrix().norm() - 1; };
  std::uintmax_t most = 200;
  const auto [low, high] =
      boost::math::tools::toms748_solve(excess, 0.0, pull.matrix().norm(), boost::math::tools::eps_tolerance<double>(), most);
  return eigen.vectors * (pull / (values + (low + high) / 2)).matrix();
}

}  // namespace

Eigen::VectorXd solve_by_enumeration(const Quadratic& quadratic, const Surrogate& surrogate) {
  const auto size = static_cast<std::size_t>(quadratic.c.size());
  Eigen::MatrixXd h = quadratic.h;
  h.diagonal().array() += ridge_of(surrogate);
  const Eigen::VectorXd b = quadratic.h * quadratic.c;
  Candidate best{{}, std::numeric_limits<double>::infinity()};
  std::vector<int> side(size, -1);
  for (std::size_t place = 0; place < size;) {
    Candidate next = candidate(h, b, side);
    if (next.violation < best.violation) best = std::move(next);
    for (place = 0; place < size && ++side[place] > 1; ++place) side[place] = -1;
  }
  return best.y;
}

Eigen::VectorXd solve_by_descent(const Quadratic& quadratic, const Surrogate& surrogate) {
  const Eigen::MatrixXd& h = quadratic.h;
  const Eigen::VectorXd b = h * quadratic.c;
  Eigen::VectorXd y = Eigen::VectorXd::Zero(b.size());
  double change = 1;
  for (int sweep = 0; sweep < kSweeps && change > 1e-16; ++sweep) {
    change = 0;
    for (Eigen::Index i = 0; i < b.size(); ++i) {
      const double pull = b(i) - h.row(i).dot(y) + h(i, i) * y(i);
      const double next = along_coordinate(surrogate, h(i, i), pull);
      change = std::max(change, std::abs(next - y(i)));
      y(i) = next;
    }
  }
  return y;
}

Eigen::VectorXd solve(const Quadratic& quadratic, const Surrogate& surrogate) {
  const auto size = quadratic.c.size();
  switch (surrogate.target) {
    case Target::original:
      return quadratic.c;
    case Target::ridge:
      return solve_definite(quadratic.h + Eigen::MatrixXd::Identity(size, size), Eigen::VectorXd(quadratic.h * quadratic.c));
    case Target::ball:
      return in_ball(quadratic);
    case Target::box:
    case Target::huber:
      return solve_by_enumeration(quadratic, surrogate);
    case Target::lasso:
    case Target::lasso_box:
      return solve_by_descent(quadratic, surrogate);
    case Target::spectral:
      break;
  }
  throw Error(Fault::usage,
              "a quadratic of a vector has no spectral solution; valid: original, ridge, box, ball, huber, lasso, lasso_box");
}

Matrix solve_spectral(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b) {
  const Eigen::MatrixXd gram = a.transpose() * a;
  const Eigen::MatrixXd pull = a.transpose() * b;
  const double step = 1 / gram.norm();
  Matrix y = Matrix::Zero(a.cols(), b.cols());
  double change = 1;
  for (int sweep = 0; sweep < kSweeps && change > 1e-15; ++sweep) {
    const Matrix next = with_clipped_singular_values(y - step * (gram * y - pull));
    change = (next - y).lpNorm<Eigen::Infinity>();
    y = next;
  }
  return y;
}

}  // namespace cautious::lab::fixedpoint
