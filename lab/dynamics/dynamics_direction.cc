#include "lab/dynamics/dynamics_direction.h"

#include <algorithm>
#include <optional>

#include <cautious/polar.h>
#include <Eigen/LU>
#include <Eigen/SVD>

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
  Eigen::JacobiSVD<Matrix> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  const Eigen::Index last = svd.singularValues().size() - 1;
  Matrix left = svd.matrixU();
  const double sign = is_square(system) && left.determinant() * svd.matrixV().determinant() < 0 ? -1 : 1;
  if (side && is_square(system)) left.col(last) *= sign * *side;
  matrix.noalias() = left * svd.matrixV().transpose();
  return sign * svd.singularValues()(last);
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
  if (system.flow != Flow::lion_k) return (1 + side[i] * sign(x[i])) / 2;
  if (!system.mask_by_momentum && u[i] == 0) return 1;  // 0 <= 0
  return (1 - side[i] * sign(x[i])) / 2;
}

}  // namespace cautious::lab
