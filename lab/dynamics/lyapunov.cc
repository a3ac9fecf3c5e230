// H and dH/dt of appendix D. With g = grad f(x) and the selectors s of the decay:
//   SGD, CWD           H = f
//                      dH/dt = -|g|^2 - lambda <s g, x>
//   SGD, decoupled     H = f + lambda |x|^2 / 2
//                      dH/dt = -|g + lambda x|^2
//   SGDM, CWD          H = beta f + |m|^2 / 2 + lambda |(m x)+|_1
//                      dH/dt = -<beta + lambda s, m^2> - lambda (beta + lambda) <s m, x>
//   Lion-K, CWD        H = alpha f + K(m) + lambda |(-m x)+|_1
//                      dH/dt = -<gamma + lambda s, u m> + lambda (gamma + lambda) <s m, x>
//   Lion-K, decoupled  H = alpha f + (1 + gamma / lambda) K*(lambda x) + K(m) - <m, lambda x>
//                      dH/dt = -(gamma + lambda) <m - grad K*(lambda x), u - lambda x>
// with u = grad K(m). SGDM with decoupled decay is Lion-K with K = |.|^2 / 2 and -m for m; no decay is CWD with lambda = 0.
#include <algorithm>
#include <limits>

#include "lab/dynamics/system.h"
#include "lab/linear.h"

namespace cautious::lab {
namespace {

double square(double a) { return a * a; }

double squared_norm(PointView a) { return as_vector(a).squaredNorm(); }

// The conjugate K*(y). Norms have that of the dual norm's unit ball: 0 inside, infinite outside.
double conjugate(const System& system, PointView y) {
  const ConvexFunction& k = system.k;
  const auto sizes = as_vector(y).cwiseAbs();
  double dual = sizes.maxCoeff(), inside = 0;
  switch (k.k) {
    case Convex::l1:
      break;
    case Convex::l2:
      dual = sizes.norm();
      break;
    case Convex::lp:
      if (k.p > 1) dual = std::pow(sizes.array().pow(k.p / (k.p - 1)).sum(), 1 - 1 / k.p);
      break;
    case Convex::topk:
      dual = std::max(dual, sizes.sum() / std::ceil(k.fraction * static_cast<double>(y.size())));
      break;
    case Convex::nuclear:
      dual = singular_values(Matrix(Eigen::Map<const Matrix>(y.data(), system.rows, system.cols)))(0);
      break;
    case Convex::huber:
      inside = k.e * sizes.squaredNorm() / 2;
      break;
    case Convex::relativistic:
      for (const double entry : y) inside -= k.e * std::sqrt(positive_part(1 - entry * entry));
      break;
    case Convex::threshold:
      inside = k.e * sizes.sum();
      break;
  }
  return dual <= 1 ? inside : std::numeric_limits<double>::infinity();
}

// One entry of grad K* inside the ball.
double conjugate_gradient(const ConvexFunction& k, double y) {
  switch (k.k) {
    case Convex::huber:
      return k.e * y;
    case Convex::relativistic:
      return k.e * y / std::sqrt(positive_part(1 - y * y));
    case Convex::threshold:
      return k.e * sign(y);
    default:
      return 0;
  }
}

// What lambda |(a)+|_1 of the cautious H is in the decoupled candidate: lambda <a, 1>.
double product_term(const System& system, double product) {
  if (system.decay == FlowDecay::none) return 0;
  return system.lambda * (system.decay == FlowDecay::cautious ? positive_part(product) : product);
}

double lion_k_value(const System& system, double f, PointView x, PointView m, const LyapunovWeights& weights) {
  double h = system.alpha * f + weights.momentum * k_value(system, m);
  if (system.decay == FlowDecay::decoupled) {
    Point y(x.begin(), x.end());
    for (double& entry : y) entry *= system.lambda;
    h += (1 + system.gamma / system.lambda) * conjugate(system, y);
  }
  for (std::size_t i = 0; i < x.size(); ++i) h += weights.cross * product_term(system, -m[i] * x[i]);
  return h;
}

// Where the mask is not that of m, H's own selector `mine` differs from the decay's s, and g does not cancel.
double lion_k_rate(const System& system, PointView x, PointView m, PointView g, PointView side) {
  const double lambda = system.lambda, gamma = system.gamma;
  Point u(x.size());
  k_gradient(system, m, side, u);
  double rate = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (system.decay == FlowDecay::decoupled) {
      const double y = lambda * x[i];
      rate -= (gamma + lambda) * (m[i] - conjugate_gradient(system.k, y)) * (u[i] - y);
      continue;
    }
    const double s = selector(system, x, side, u, i);
    const double mine = mask_follows_polar(system)            ? (1 - sign(m[i]) * sign(x[i])) / 2
                        : system.decay == FlowDecay::cautious ? (1 - side[i] * sign(x[i])) / 2
                                                              : s;
    rate -= (gamma + lambda * mine) * u[i] * m[i] - lambda * (gamma + lambda * s) * mine * m[i] * x[i];
    rate += lambda * system.alpha * (mine - s) * g[i] * x[i];
  }
  return rate;
}

// The equality of the appendix before terms are dropped.
double adam_rate(const System& system, double t, const StateView& z, PointView g, PointView side) {
  const double alpha = system.alpha, gamma = system.gamma, lambda = system.lambda;
  const double alpha_t = bias_correction(alpha, t), gamma_t = bias_correction(gamma, t);
  double rate = 0;
  for (std::size_t i = 0; i < z.x.size(); ++i) {
    const double s = selector(system, z.x, side, {}, i), m2 = square(z.m[i]);
    rate -= lambda * (alpha + lambda) * s * z.m[i] * z.x[i];
    if (m2 == 0) continue;
    const double root = std::sqrt(z.v[i]), h = std::sqrt(gamma_t) * root + system.eps;
    rate -= (alpha + lambda * s) * alpha_t * m2 / h;
    rate -= alpha_t * gamma * std::sqrt(gamma_t) * m2 * (square(g[i]) - z.v[i]) / (4 * root * square(h));
    const double of_alpha = alpha * std::exp(-alpha * t) * alpha_t, of_gamma = gamma * std::exp(-gamma * t) * gamma_t;
    rate -= alpha_t * m2 / (2 * h) * (of_alpha - of_gamma * std::sqrt(gamma_t) * root / (2 * h));
  }
  return rate;
}

}  // namespace

double lyapunov(const System& system, const Problem& problem, double t, PointView z, const LyapunovWeights& weights) {
  const auto [x, m, v] = parts(system, z);
  const double f = problem.value(x);
  const bool decoupled = system.decay == FlowDecay::decoupled;
  switch (system.flow) {
    case Flow::sgd:
      return decoupled ? f + system.lambda * squared_norm(x) / 2 : f;
    case Flow::sgdm: {
      double h = system.beta * f + weights.momentum * squared_norm(m) / 2;
      if (decoupled) h += system.lambda * (system.beta + system.lambda) * squared_norm(x) / 2;
      for (std::size_t i = 0; i < x.size(); ++i) h += weights.cross * product_term(system, m[i] * x[i]);
      return h;
    }
    case Flow::lion_k:
      return lion_k_value(system, f, x, m, weights);
    case Flow::adam:
      break;
  }
  double h = system.alpha * f;
  const double alpha_t = bias_correction(system.alpha, t), gamma_t = bias_correction(system.gamma, t);
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double root = std::sqrt(gamma_t * positive_part(v[i])) + system.eps;
    h += weights.momentum * (m[i] == 0 ? 0 : alpha_t * square(m[i]) / (2 * root));
    h += weights.cross * product_term(system, m[i] * x[i]);
  }
  return h;
}

double lyapunov_rate(const System& system, const Problem& problem, double t, PointView z, PointView side) {
  const StateView state = parts(system, z);
  const auto& [x, m, v] = state;
  Point g(x.size());
  problem.gradient(x, g);
  if (system.flow == Flow::adam) return adam_rate(system, t, state, g, side);
  if (system.flow == Flow::lion_k) return lion_k_rate(system, x, m, g, side);
  const bool decoupled = system.decay == FlowDecay::decoupled;
  const double lambda = system.lambda, beta = system.beta;
  double rate = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double s = selector(system, x, side, {}, i);
    if (system.flow == Flow::sgd) {
      rate -= decoupled ? square(g[i] + lambda * x[i]) : square(g[i]) + lambda * s * g[i] * x[i];
    } else if (decoupled) {
      rate -= (beta + lambda) * square(m[i] + lambda * x[i]);
    } else {
      rate -= (beta + lambda * s) * square(m[i]) + lambda * (beta + lambda) * s * m[i] * x[i];
    }
  }
  return rate;
}

double adam_rate_bound(const System& system, double t, PointView z) {
  const auto [x, m, v] = parts(system, z);
  const double alpha = system.alpha, gamma = system.gamma;
  const double alpha_t = bias_correction(alpha, t), gamma_t = bias_correction(gamma, t);
  double bound = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double factor = gamma / 4 - alpha - alpha / (2 * std::expm1(alpha * t)) + gamma / (4 * std::expm1(gamma * t)) -
                          (m[i] * x[i] >= 0 ? system.lambda : 0);
    if (m[i] != 0) bound += factor * alpha_t * square(m[i]) / (std::sqrt(gamma_t * v[i]) + system.eps);
  }
  return bound;
}

}  // namespace cautious::lab
