// The switches of the systems and grad K(m) with given sides; their fields as inclusions, and their starts.
#include "lab/dynamics/system.h"
#include "lab/linear.h"

#include <algorithm>
#include <optional>

#include <cautious/error.h>
#include <cautious/polar.h>

#include "base/text.h"

namespace cautious::lab {
namespace {

bool is_square(const System& system) { return system.k.k == Convex::nuclear && system.rows == system.cols; }

// Jumps that the decay's mask has not: they are events, and nothing slides there.
std::size_t extra_switches(const System& system, std::size_t d) {
  if (system.flow != Flow::lion_k) return 0;
  if (system.k.k == Convex::threshold) return 2 * d;
  if (system.k.k == Convex::topk) return d * (d - 1);
  return is_square(system) ? 1 : 0;
}

// The orthogonal factor; for matrices this small Jacobi's method is faster than polar(). That of a square matrix jumps where
// its least singular value, with the sign of the determinant, passes 0. Returns that value; `side` is the switch's.
double polar_factor(const System& system, PointView m, std::span<double> u, std::optional<double> side = {}) {
  std::copy(m.begin(), m.end(), u.begin());
  Eigen::Map<Matrix> matrix(u.data(), system.rows, system.cols);
  if (matrix.squaredNorm() == 0) return 0;
  auto [left, values, right] = svd(Matrix(matrix));
  const Eigen::Index last = values.size() - 1;
  const double sign = is_square(system) && determinant(left) * determinant(right) < 0 ? -1 : 1;
  if (side && is_square(system)) left.col(last) *= sign * *side;
  matrix.noalias() = left * right.transpose();
  return sign * values(last);
}

// Sides of the pairs: the product of both says which is larger, and so which entries are among the k largest.
void topk_gradient(const System& system, PointView side, std::span<double> u) {
  const std::size_t d = u.size();
  std::vector<std::size_t> larger(d, 0);  // entries before this one in the order of size
  std::size_t pair = d;
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = i + 1; j < d; ++j, pair += 2) ++larger[side[pair] * side[pair + 1] > 0 ? j : i];
  }
  const double kept = std::ceil(system.k.fraction * static_cast<double>(d));
  for (std::size_t i = 0; i < d; ++i) u[i] = static_cast<double>(larger[i]) < kept ? side[i] : 0;
}

}  // namespace

bool mask_follows_polar(const System& system) {
  return system.flow == Flow::lion_k && system.k.k == Convex::nuclear && !system.mask_by_momentum;
}

StateView parts(const System& system, PointView z) {
  if (system.flow == Flow::sgd) return {.x = z, .m = {}, .v = {}};
  const std::size_t d = system.flow == Flow::adam ? z.size() / 3 : z.size() / 2;
  return {.x = z.subspan(0, d), .m = z.subspan(d, d), .v = z.subspan(2 * d)};
}

std::size_t state_size(const System& system, std::size_t d) {
  return system.flow == Flow::sgd ? d : system.flow == Flow::adam ? 3 * d : 2 * d;
}

std::size_t switch_count(const System& system, std::size_t d) {
  const bool jumps = system.decay == FlowDecay::cautious ||
                     (system.flow == Flow::lion_k && (system.k.k == Convex::l1 || extra_switches(system, d) > 0));
  return jumps ? d + extra_switches(system, d) : 0;
}

void indicators(const System& system, PointView z, PointView g, std::span<double> q) {
  const auto [x, m, v] = parts(system, z);
  const std::size_t d = x.size();
  if (q.empty()) return;
  if (system.flow == Flow::lion_k && system.k.k == Convex::nuclear) {
    const double least = polar_factor(system, m, q.first(d));
    if (is_square(system)) q[d] = least;
    if (mask_follows_polar(system)) return;
  }
  const PointView decides = system.flow == Flow::sgd ? g : m;
  std::copy(decides.begin(), decides.end(), q.begin());
  if (system.flow != Flow::lion_k) return;
  if (system.k.k == Convex::threshold) {
    for (std::size_t i = 0; i < d; ++i) q[d + i] = m[i] - system.k.e, q[2 * d + i] = m[i] + system.k.e;
  }
  if (system.k.k != Convex::topk) return;
  std::size_t pair = d;
  for (std::size_t i = 0; i < d; ++i) {
    for (std::size_t j = i + 1; j < d; ++j, pair += 2) q[pair] = m[i] - m[j], q[pair + 1] = m[i] + m[j];
  }
}

double k_value(const System& system, PointView m) {
  return system.k.k == Convex::nuclear ? nuclear_norm(m, system.rows, system.cols) : value(system.k, m);
}

void k_gradient(const System& system, PointView m, PointView side, std::span<double> u) {
  const std::size_t d = m.size();
  switch (system.k.k) {
    case Convex::l1:
      std::copy_n(side.begin(), d, u.begin());
      return;
    case Convex::threshold:
      for (std::size_t i = 0; i < d; ++i) u[i] = (side[d + i] + side[2 * d + i]) / 2;
      return;
    case Convex::topk:
      return topk_gradient(system, side, u);
    case Convex::nuclear:
      polar_factor(system, m, u, side.size() > d ? std::optional(side[d]) : std::nullopt);
      return;
    default:
      std::copy(m.begin(), m.end(), u.begin());
      return subgradient(system.k, u);
  }
}

double selector(const System& system, PointView x, PointView side, PointView u, std::size_t i) {
  if (system.decay != FlowDecay::cautious) return system.decay == FlowDecay::none ? 0 : 1;
  if (system.reversed) return (1 - (system.flow == Flow::lion_k ? -1 : 1) * side[i] * sign(x[i])) / 2;
  if (system.flow != Flow::lion_k) return (1 + side[i] * sign(x[i])) / 2;
  if (!system.mask_by_momentum && u[i] == 0) return 1;  // 0 <= 0
  return (1 - side[i] * sign(x[i])) / 2;
}

namespace {

// z' for one set of sides. Holds room for the gradient and the direction.
class Field {
 public:
  Field(const System& system, const Problem& problem)
      : system_(system), problem_(&problem), g_(problem.size()), u_(problem.size()) {}

  void operator()(double t, PointView z, PointView side, std::span<double> dz) {
    const auto [x, m, v] = parts(system_, z);
    const std::size_t d = x.size();
    problem_->gradient(x, g_);
    direction(t, m, v, side);
    for (std::size_t i = 0; i < d; ++i) {
      dz[i] = u_[i];
      if (const double s = selector(system_, x, side, u_, i); s != 0) dz[i] -= system_.lambda * s * x[i];
    }
    for (std::size_t i = 0; i < m.size(); ++i) dz[d + i] = momentum_rate(g_[i], m[i]);
    for (std::size_t i = 0; i < v.size(); ++i) dz[2 * d + i] = system_.gamma * (g_[i] * g_[i] - v[i]);
  }

 private:
  // x' without the decay.
  void direction(double t, PointView m, PointView v, PointView side) {
    const std::size_t d = u_.size();
    switch (system_.flow) {
      case Flow::sgd:
        for (std::size_t i = 0; i < d; ++i) u_[i] = -g_[i];
        return;
      case Flow::sgdm:
        for (std::size_t i = 0; i < d; ++i) u_[i] = -m[i];
        return;
      case Flow::lion_k:
        return k_gradient(system_, m, side, u_);
      case Flow::adam:
        break;
    }
    const double alpha_t = bias_correction(system_.alpha, t), gamma_t = bias_correction(system_.gamma, t);
    for (std::size_t i = 0; i < d; ++i) {
      const double h = std::sqrt(gamma_t * positive_part(v[i])) + system_.eps;
      u_[i] = m[i] == 0 ? 0 : -alpha_t * m[i] / h;
    }
  }

  double momentum_rate(double g, double m) const {
    switch (system_.flow) {
      case Flow::lion_k:
        return -system_.alpha * g - system_.gamma * m;
      case Flow::adam:
        return system_.alpha * (g - m);
      default:
        return system_.beta * (g - m);
    }
  }

  System system_;
  const Problem* problem_;
  Point g_, u_;
};

}  // namespace

std::string name_of(const System& system) {
  std::string name;
  switch (system.flow) {
    case Flow::sgd:
      name = "SGD";
      break;
    case Flow::sgdm:
      name = "SGDM";
      break;
    case Flow::lion_k:
      name = "Lion-K (" + std::string(cautious::name_of(system.k.k)) + ")";
      break;
    case Flow::adam:
      name = "Adam";
      break;
  }
  if (system.decay == FlowDecay::none) return name;
  return name + (system.decay == FlowDecay::cautious ? " + CWD" : " + decay");
}

Inclusion inclusion_of(const System& system, const Problem& problem) {
  const std::size_t d = problem.size();
  if (system.flow == Flow::lion_k && system.k.k == Convex::nuclear &&
      static_cast<std::size_t>(system.rows * system.cols) != d) {
    throw Error(Fault::usage, "K 'nuclear' needs a matrix of " + std::to_string(d) + " entries, not " +
                                  std::to_string(system.rows) + " x " + std::to_string(system.cols));
  }
  Inclusion inclusion;
  inclusion.size = state_size(system, d);
  inclusion.switches = switch_count(system, d);
  inclusion.field = Field(system, problem);
  inclusion.indicator = [system, &problem, g = Point(d)](PointView z, std::span<double> q) mutable {
    if (system.flow == Flow::sgd) problem.gradient(z, g);
    indicators(system, z, g, q);
  };
  // Where a switch is not a sign of g or m, nothing slides: there the drive is kept off 0.
  const std::size_t may_slide = mask_follows_polar(system) ? 0 : d;
  inclusion.drive = [&problem, d, may_slide](PointView z, std::span<double> p) {
    if (p.empty()) return;
    problem.gradient(z.first(d), p.first(d));
    std::fill(p.begin() + static_cast<std::ptrdiff_t>(may_slide), p.end(), 1);
  };
  // Called for many dz at the same x.
  inclusion.drive_rate = [&problem, d, x = Point(), h = Matrix()](PointView z, PointView dz, std::span<double> dp) mutable {
    if (dp.empty()) return;
    if (!std::equal(x.begin(), x.end(), z.begin(), z.begin() + static_cast<std::ptrdiff_t>(d))) {
      x.assign(z.begin(), z.begin() + static_cast<std::ptrdiff_t>(d));
      problem.hessian(x, h);
    }
    as_vector(dp.first(d)) = h * as_vector(dz.first(d));
    std::fill(dp.begin() + static_cast<std::ptrdiff_t>(d), dp.end(), 0);
  };
  inclusion.settle = [system, d](std::span<double> z, const std::vector<bool>& sliding) {
    if (system.flow == Flow::sgd) return;
    for (std::size_t i = 0; i < d; ++i) {
      if (sliding[i]) z[d + i] = 0;
    }
  };
  return inclusion;
}

Point state_at(const System& system, const Problem& problem, PointView x, double t) {
  const std::size_t d = problem.size();
  Point z(state_size(system, d), 0), g(d);
  std::copy(x.begin(), x.end(), z.begin());
  if (system.flow == Flow::sgd || t == 0) return z;
  problem.gradient(x, g);
  const auto grown = [t](double rate) { return -std::expm1(-rate * t); };
  for (std::size_t i = 0; i < d; ++i) {
    switch (system.flow) {
      case Flow::lion_k:
        z[d + i] = -system.alpha / system.gamma * grown(system.gamma) * g[i];
        break;
      case Flow::adam:
        z[d + i] = grown(system.alpha) * g[i];
        z[2 * d + i] = grown(system.gamma) * g[i] * g[i];
        break;
      default:
        z[d + i] = grown(system.beta) * g[i];
    }
  }
  return z;
}

}  // namespace cautious::lab
