// Three parts. come_to_rest: Levenberg and Marquardt's damping of Newton's method on grad f = 0, in the eigenbasis of the
// Hessian H. For f = r^2 and the like, H has off M small eigenvalues along M that mean nothing, and dividing by them would
// throw the point along M. Its factor l / (l^2 + m) with m ~ |grad f| mutes them far from M and is the pseudo-inverse at the
// end, so that steps are normal to M and convergence stays quadratic although solutions are not isolated; a cut at a fixed
// ratio would take the flat valley of an isolated minimum (Rosenbrock: 4e-4) for a part of M. Where |grad f| has a minimum of
// its own in the way, f is descended first. slide: along M to where the way from the start is normal to it. is_tangent: H's
// null space is checked, since at x^4 or where branches cross it is larger than any tangent space.
#include <algorithm>
#include <cmath>

#include "lab/linear.h"
#include "lab/problem/minimisers.h"

namespace cautious::lab {
namespace {

using Eigen::Index;
using Eigen::VectorXd;

constexpr int kMostSteps = 100, kMostAttempts = 30, kMostSlides = 60;
constexpr double kRounding = 1e-15;  // a step that is smaller than that part of x changes nothing
constexpr double kLeastDamping = 1e-6;
constexpr double kZero = 1e-7;       // eigenvalues up to that part of the largest are 0
constexpr double kVanished = 1e-12;  // and up to that part of |H| nearby: at a minimum of a higher order all of H vanishes
constexpr double kStill = 1e-10;     // |grad f| up to that part of |H| |x| is 0 ...
constexpr double kThere = 1e-8;      // ... if also Newton's step is up to that part of x
constexpr double kProbe = 1e-3;      // part of x by which to step aside for a look
constexpr double kNormal = 1e-7;     // the way to the start may lean toward M by that part of x

Eigen::Map<const VectorXd> position(const Stationary& at) { return as_vector(PointView(at.x)); }

double scale_of(const VectorXd& x) { return 1 + x.lpNorm<Eigen::Infinity>(); }

VectorXd gradient_at(const Problem& problem, const VectorXd& x) {
  VectorXd g(x.size());
  problem.gradient({x.data(), static_cast<std::size_t>(x.size())}, {g.data(), static_cast<std::size_t>(g.size())});
  return g;
}

Matrix hessian_at(const Problem& problem, const VectorXd& x) {
  Matrix h;
  problem.hessian({x.data(), static_cast<std::size_t>(x.size())}, h);
  return h;
}

// A unit vector that is special to no problem.
VectorXd generic(Index size) {
  return VectorXd::NullaryExpr(size, [](Index i) { return std::cos(1.0 + static_cast<double>(i)); }).normalized();
}

struct Spectrum : Eigensystem {
  Matrix hessian;
  double largest = 0;  // eigenvalue, in magnitude

  bool counts(Index i, double nearby) const { return std::abs(values[i]) > std::max(kZero * largest, kVanished * nearby); }
};

std::optional<Spectrum> spectrum_at(const Problem& problem, const VectorXd& x) {
  const Matrix hessian = hessian_at(problem, x);
  if (!hessian.allFinite()) return std::nullopt;
  Spectrum found{eigensystem(hessian), hessian};
  found.largest = found.values.lpNorm<Eigen::Infinity>();
  return found;
}

double value_at(const Problem& problem, const VectorXd& x) {
  return problem.value({x.data(), static_cast<std::size_t>(x.size())});
}

enum class Goal { gradient, value };

// Where |grad f| falls no further: on M up to rounding, or in a dead end. Or where f falls no further: there |l| stands for l,
// so that steps are downhill. Nothing if f leaves the finite numbers.
std::optional<VectorXd> come_to_rest(const Problem& problem, VectorXd x, Goal goal = Goal::gradient) {
  VectorXd g = gradient_at(problem, x);
  if (!g.allFinite()) return std::nullopt;
  double damping = 1;
  for (int step = 0; step < kMostSteps && g.norm() > 0; ++step) {
    const auto spectrum = spectrum_at(problem, x);
    if (!spectrum) return std::nullopt;
    if (spectrum->largest == 0) return x;
    const double scale = scale_of(x);
    const VectorXd along = spectrum->vectors.transpose() * g;
    Eigen::ArrayXd values = spectrum->values.array() / spectrum->largest;
    if (goal == Goal::value) values = values.abs();
    bool better = false;
    for (int attempt = 0; attempt < kMostAttempts && !better; ++attempt, damping *= 4) {
      const double muted = damping * g.norm() / (spectrum->largest * scale);
      const VectorXd move =
          -(spectrum->vectors * (along.array() * values / (values.square() + muted)).matrix()) / spectrum->largest;
      if (move.lpNorm<Eigen::Infinity>() <= kRounding * scale) return x;
      const VectorXd next = x + move;
      const VectorXd at_next = gradient_at(problem, next);
      const bool falls = goal == Goal::value ? value_at(problem, next) < value_at(problem, x) : at_next.norm() < g.norm();
      if (!falls || !at_next.allFinite()) continue;
      x = next, g = at_next, better = true;
    }
    if (!better) return x;
    damping = std::max(damping / 16, kLeastDamping);  // the loop has multiplied once more
  }
  return x;
}

// What is known of M at x, or nothing if x is not on it.
std::optional<Stationary> settled(const Problem& problem, const VectorXd& x) {
  auto spectrum = spectrum_at(problem, x);
  if (!spectrum) return std::nullopt;
  const double nearby = hessian_at(problem, x + kProbe * scale_of(x) * generic(x.size())).norm();
  const VectorXd g = gradient_at(problem, x);
  const VectorXd along = spectrum->vectors.transpose() * g;
  Stationary at;
  double step = 0;
  Index flat = 0;
  at.tangent.resize(x.size(), x.size());
  for (Index i = 0; i < x.size(); ++i) {
    if (spectrum->counts(i, nearby)) {
      step = std::hypot(step, along[i] / spectrum->values[i]);
    } else {
      at.tangent.col(flat++) = spectrum->vectors.col(i);
    }
  }
  if (!(g.norm() <= kStill * spectrum->largest * scale_of(x) && step <= kThere * scale_of(x))) return std::nullopt;
  at.tangent.conservativeResize(Eigen::NoChange, flat);
  at.x.assign(x.begin(), x.end());
  at.gradient_norm = g.norm();
  at.hessian = std::move(spectrum->hessian);
  return at;
}

std::optional<Stationary> rest_on_manifold(const Problem& problem, const VectorXd& x) {
  const auto rest = come_to_rest(problem, x);
  return rest ? settled(problem, *rest) : std::nullopt;
}

// The part of the way to the start that is along M, T T'(start - x).
VectorXd along_manifold(const Stationary& at, const VectorXd& start) {
  return at.tangent * (at.tangent.transpose() * (start - position(at)));
}

// Steps along M toward the start, each projected back; their length is the secant method's, as M's curvature shortens or
// lengthens the way.
Stationary slide(const Problem& problem, const VectorXd& start, Stationary at) {
  double part = 1;
  VectorXd along = along_manifold(at, start);
  for (int step = 0; step < kMostSlides && along.norm() > kNormal * scale_of(start); ++step) {
    auto next = rest_on_manifold(problem, position(at) + part * along);
    if (!next || (start - position(*next)).norm() >= (start - position(at)).norm()) {
      part /= 4;
      continue;
    }
    const VectorXd moved = position(*next) - position(at), left = along_manifold(*next, start);
    const double turned = moved.dot(along - left);
    part = turned > 0 ? std::clamp(moved.squaredNorm() / turned, 1e-3, 10.0) : 2 * part;
    at = *std::move(next);
    along = left;
  }
  return at;
}

// A step h along M's tangent space leaves M by no more than about h^2; along another flat direction Newton's method comes back
// by h. All basis vectors are tried at once, by one vector with a share of each.
bool is_tangent(const Problem& problem, const Stationary& at) {
  const Index flat = at.tangent.cols();
  if (flat == 0) return true;
  const VectorXd direction = at.tangent * generic(flat);
  double h = kProbe * scale_of(position(at));
  for (int attempt = 0; attempt < 3; ++attempt, h /= 16) {
    const VectorXd probe = position(at) + h * direction;
    const auto rest = come_to_rest(problem, probe);
    if (rest && (*rest - probe).norm() <= 0.05 * h / std::sqrt(static_cast<double>(flat))) return true;
  }
  return false;
}

}  // namespace

std::optional<Stationary> nearest_stationary(const Problem& problem, PointView x, double reach) {
  const VectorXd start = as_vector(x);
  auto at = rest_on_manifold(problem, start);
  if (!at) {
    const auto below = come_to_rest(problem, start, Goal::value);
    if (below) at = rest_on_manifold(problem, *below);
  }
  if (!at || !is_tangent(problem, *at)) return std::nullopt;
  Stationary nearest = slide(problem, start, *at);
  nearest.distance = (start - position(nearest)).norm();
  if (!(nearest.distance <= reach) || (nearest.x != at->x && !is_tangent(problem, nearest))) return std::nullopt;
  return nearest;
}

}  // namespace cautious::lab
