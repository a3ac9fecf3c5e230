// D is the cone of directions d of the tangent space with sgn(x_i) d_i <= 0, and d_i = 0 where x_i = 0. Better points y of M
// that tend to x have a limit direction, and it is in D, so that D = {0} proves x optimal. Otherwise M is followed along D for
// a few short steps; a y that is found there proves that x is not. Neither happens where M is as curved as at the top of a
// circle.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "lab/linear.h"
#include "lab/problem/minimisers.h"

namespace cautious::lab {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kTangent = 1e-8;      // error of a vector of length 1 in T or normal to it
constexpr double kFree = 1e3;          // bound of w_i where x_i = 0
constexpr double kUnmoved = 1e-6;      // part of a direction's largest coordinate that counts as 0
constexpr double kLongest = 1e-2;      // of the steps along D, as part of |x|
constexpr double kLeave = 0.1;         // what M may be away from the end of a step, as part of the step
constexpr double kCurvature = 1e-6;    // times |x|: M counts as straight below
constexpr double kOnManifold = 2e-15;  // of a point on M, as part of |x|

class Cone {
 public:
  Cone(const Stationary& at, double zero) : x_(as_vector(PointView(at.x))), tangent_(at.tangent), zero_(zero) {}

  double scale() const { return x_.lpNorm<Eigen::Infinity>(); }

  bool moves(Index i) const { return std::abs(x_[i]) > zero_; }

  // The w with the largest of the least sgn(x_i) w_i while they are at most 1.
  bool is_trivial() const {
    if (tangent_.cols() == 0) return true;
    if (tangent_.cols() == 1) {  // D is {0}, or a ray, on which the largest |d_i| gets to 1
      const VectorXd ones = VectorXd::Ones(x_.size());
      return shrinkage(best(ones, ones)) < 0.5;
    }
    const Index n = x_.size(), normal = n - tangent_.cols();
    const Eigen::MatrixXd q = orthogonal_factor(tangent_);
    LinearProgram program;
    program.c = VectorXd::Unit(normal + 1, normal);
    program.a = Matrix::Zero(2 * n, normal + 1);
    program.low = VectorXd::Zero(2 * n);
    program.high = VectorXd::Constant(2 * n, kInfinity);
    program.y_low = VectorXd::Constant(normal + 1, -kInfinity);
    program.y_high = VectorXd::Constant(normal + 1, kInfinity);
    program.y_high[normal] = 1;
    for (Index i = 0; i < n; ++i) {
      program.a.row(i).head(normal) = sign(i) * q.row(i).tail(normal);
      program.a.row(n + i) = program.a.row(i);
      program.a(n + i, normal) = moves(i) ? -1 : 0;
      program.low[i] = moves(i) ? 0 : -kFree;
      program.high[i] = moves(i) ? 1 : kFree;
      if (!moves(i)) program.low[n + i] = -kInfinity;
    }
    const auto y = solve(program);
    if (!y) return false;
    const VectorXd w = q.rightCols(normal) * y->head(normal);
    for (Index i = 0; i < n; ++i) {
      if (moves(i) && sign(i) * w[i] <= kTangent * w.norm()) return false;
    }
    return true;
  }

  // The d in D that maximises sum weight_i (-sgn(x_i) d_i) with |d_i| <= most_i.
  VectorXd best(const VectorXd& weight, const VectorXd& most) const {
    const Index n = x_.size(), flat = tangent_.cols();
    LinearProgram program;
    program.a.resize(n, flat);
    program.c = VectorXd::Zero(flat);
    program.low = VectorXd::Constant(n, -kTangent);
    program.high = VectorXd::Constant(n, kTangent);
    program.y_low = VectorXd::Constant(flat, -kInfinity);
    program.y_high = VectorXd::Constant(flat, kInfinity);
    for (Index i = 0; i < n; ++i) {
      program.a.row(i) = -sign(i) * tangent_.row(i);
      if (!moves(i)) continue;
      program.c += weight[i] * program.a.row(i).transpose();
      program.high[i] = most[i];
    }
    const auto z = solve(program);
    return z ? VectorXd(tangent_ * *z) : VectorXd(VectorXd::Zero(n));  // 0 is always feasible
  }

  double shrinkage(const VectorXd& d) const {
    double sum = 0;
    for (Index i = 0; i < x_.size(); ++i) {
      if (moves(i)) sum -= sign(i) * d[i];
    }
    return sum;
  }

  // Shrinks every coordinate that any direction of D shrinks.
  VectorXd interior() const {
    const VectorXd ones = VectorXd::Ones(x_.size());
    VectorXd sum = VectorXd::Zero(x_.size());
    for (Index i = 0; i < x_.size(); ++i) {
      if (moves(i)) sum += best(VectorXd::Unit(x_.size(), i), ones);
    }
    return sum;
  }

  // The nearest tangent vector in which what is almost 0 is 0, without the program's tolerances.
  VectorXd cleaned(const VectorXd& d) const {
    Matrix still = tangent_;
    for (Index i = 0; i < x_.size(); ++i) {
      const bool shrinks = moves(i) && std::abs(d[i]) > kUnmoved * d.lpNorm<Eigen::Infinity>();
      if (shrinks || still.row(i).norm() <= kTangent) still.row(i).setZero();
    }
    const VectorXd z = tangent_.transpose() * d;
    return tangent_ * (z - least_norm(still, still * z, kTangent));
  }

  // How far x may go along d before a coordinate has changed its sign.
  double until_zero(const VectorXd& d) const {
    double length = kInfinity;
    for (Index i = 0; i < x_.size(); ++i) {
      if (moves(i) && std::abs(d[i]) > kTangent) length = std::min(length, std::abs(x_[i] / d[i]));
    }
    return length;
  }

 private:
  double sign(Index i) const { return std::copysign(1.0, x_[i]); }

  const VectorXd x_;
  const Matrix& tangent_;
  double zero_;
};

// No coordinate larger, and one smaller by a good part of the step h.
bool beats(const Point& y, const Point& x, double h, double scale) {
  const double rise = kCurvature * h * h / scale + kOnManifold * scale;
  double most = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double fall = std::abs(x[i]) - std::abs(y[i]);
    if (fall < -rise) return false;
    most = std::max(most, fall);
  }
  return most > std::max(0.1 * h / std::sqrt(static_cast<double>(x.size())), 10 * rise);
}

// The last of better points at growing distances, without a gap: those near x must be better too.
std::optional<Point> follow(const Problem& problem, const Stationary& at, const Cone& cone, const VectorXd& direction) {
  std::optional<Point> better;
  const VectorXd d = cone.cleaned(direction).normalized();
  const double longest = std::min(kLongest * cone.scale(), cone.until_zero(d) / 2);
  for (const double part : {1e-3, 1e-2, 1e-1, 1.0}) {
    const double h = part * longest;
    Point from(at.x);
    as_vector(std::span(from)) += h * d;
    auto y = nearest_stationary(problem, from, kLeave * h);
    if (!y || !beats(y->x, at.x, h, cone.scale())) break;
    better = std::move(y->x);
  }
  return better;
}

}  // namespace

ParetoVerdict pareto(const Problem& problem, const Stationary& at, double zero) {
  const Cone cone(at, zero);
  ParetoVerdict verdict;
  verdict.direction.assign(at.x.size(), 0);
  if (cone.is_trivial()) {
    verdict.pareto = Pareto::optimal;
    return verdict;
  }
  const VectorXd size = as_vector(PointView(at.x)).cwiseAbs();
  const VectorXd steepest = cone.scale() * cone.best(VectorXd::Ones(size.size()), size / cone.scale());
  verdict.direction.assign(steepest.begin(), steepest.end());
  verdict.shrinkage = cone.shrinkage(steepest);
  for (const VectorXd& direction : {cone.interior(), steepest}) {
    verdict.better = follow(problem, at, cone, direction);
    if (!verdict.better) continue;
    verdict.pareto = Pareto::beaten;
    break;
  }
  return verdict;
}

}  // namespace cautious::lab
