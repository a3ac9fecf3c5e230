// Block principal pivoting (Judice and Pires) with Murty's single pivots as the safeguard that makes it finite.
#include <algorithm>
#include <cmath>
#include <vector>

#include "lab/dynamics/sliding.h"
#include "lab/linear.h"

namespace cautious::lab {
namespace {

// Singular values below this part of the largest are 0: above it would be the rounding of a Jacobian near its surface.
constexpr double kRank = 1e-7;

// Makes a singular matrix regular while the bounds that hold are sought; its solution tends to the one of least norm.
constexpr double kRegular = 1e-10;

constexpr double kInside = 1 + 1e-12;

// A rate below this part of what the sides can give is 0.
constexpr double kHeld = 1e-9;

bool is_inside(const Eigen::VectorXd& tau) { return tau.size() == 0 || tau.cwiseAbs().maxCoeff() <= kInside; }

// The free entries of tau, for y = 0 there while the others rest on their bounds.
struct Part {
  std::vector<Eigen::Index> free;
  Eigen::MatrixXd b;
  Eigen::VectorXd right;
};

Part part_of(const Eigen::MatrixXd& b, const Eigen::VectorXd& c, const std::vector<int>& bound) {
  Part part;
  for (Eigen::Index i = 0; i < c.size(); ++i) {
    if (bound[static_cast<std::size_t>(i)] == 0) part.free.push_back(i);
  }
  part.b = b(part.free, part.free);
  part.right = -c(part.free);
  for (Eigen::Index j = 0; j < c.size(); ++j) {
    if (const int at = bound[static_cast<std::size_t>(j)]; at != 0) part.right -= b(part.free, j) * at;
  }
  return part;
}

Eigen::VectorXd with_bounds(const std::vector<int>& bound, const Part& part, const Eigen::VectorXd& inner) {
  Eigen::VectorXd tau(static_cast<Eigen::Index>(bound.size()));
  for (std::size_t i = 0; i < bound.size(); ++i) tau[static_cast<Eigen::Index>(i)] = bound[i];
  tau(part.free) = inner;
  return tau;
}

// Entries that contradict their state, with the state they should have.
std::vector<std::pair<std::size_t, int>> contradictions(const Eigen::VectorXd& tau, const Eigen::VectorXd& y,
                                                        const std::vector<int>& bound, double noise) {
  std::vector<std::pair<std::size_t, int>> found;
  for (std::size_t i = 0; i < bound.size(); ++i) {
    const auto k = static_cast<Eigen::Index>(i);
    if (bound[i] == 0 && std::abs(tau[k]) > kInside) found.emplace_back(i, tau[k] > 0 ? 1 : -1);
    if (bound[i] != 0 && y[k] * bound[i] < -noise) found.emplace_back(i, 0);
  }
  return found;
}

// Which entries rest on which bound: -1, 1, or 0 for none.
std::vector<int> bounds_of(const Eigen::MatrixXd& b, const Eigen::VectorXd& c) {
  const std::size_t n = static_cast<std::size_t>(c.size());
  std::vector<int> bound(n, 0);
  const double noise = 1e-14 * (c.cwiseAbs().maxCoeff() + b.cwiseAbs().maxCoeff());
  std::size_t fewest = n + 1;
  int patience = 3;
  for (std::size_t round = 0; round < 100 * n; ++round) {
    const Part part = part_of(b, c, bound);
    const Eigen::VectorXd inner = solve_lu(part.b, part.right);
    const Eigen::VectorXd tau = with_bounds(bound, part, inner);
    const auto wrong = contradictions(tau, c + b * tau, bound, noise);
    if (wrong.empty()) return bound;
    if (wrong.size() < fewest) {
      fewest = wrong.size();
      patience = 3;
    } else {
      --patience;
    }
    if (patience >= 0) {
      for (const auto& [i, state] : wrong) bound[i] = state;
    } else {
      bound[wrong.back().first] = wrong.back().second;
    }
  }
  return bound;
}

// Among the taus with the same y the one of least norm: those entries with y = 0 minimise |y|^2 + kRegular |tau|^2 in the box.
void shorten(const Eigen::MatrixXd& b, const Eigen::VectorXd& c, double size, Eigen::VectorXd& tau) {
  const Eigen::VectorXd y = c + b * tau;
  std::vector<Eigen::Index> held;
  Eigen::VectorXd others = tau;
  for (Eigen::Index i = 0; i < c.size(); ++i) {
    if (std::abs(y[i]) > kHeld * size) continue;
    held.push_back(i);
    others[i] = 0;
  }
  if (held.empty()) return;
  const Eigen::MatrixXd inner = b(held, held);
  const Eigen::VectorXd given = (c + b * others)(held);
  const Eigen::Index n = given.size();
  const Eigen::MatrixXd square = inner.transpose() * inner;
  const Eigen::MatrixXd regular = square + kRegular * square.norm() * Eigen::MatrixXd::Identity(n, n);
  const std::vector<int> bound = bounds_of(-regular, -inner.transpose() * given);
  std::vector<Eigen::Index> free;
  Eigen::VectorXd found(n);
  for (Eigen::Index j = 0; j < n; ++j) {
    found[j] = bound[static_cast<std::size_t>(j)];
    if (found[j] == 0) free.push_back(j);
  }
  if (!free.empty()) found(free) = least_norm(inner(Eigen::all, free), -given - inner * found, kRank);
  tau(held) = found;
  tau = tau.cwiseMax(-1).cwiseMin(1);
}

}  // namespace

void solve_box(const Eigen::MatrixXd& b, const Eigen::VectorXd& c, Eigen::VectorXd& tau) {
  const Eigen::Index n = c.size();
  tau.resize(n);
  if (n == 1) {
    const double inner = b(0, 0) != 0 ? -c[0] / b(0, 0) : 0;
    const bool holds = std::abs(inner) <= 1 && (b(0, 0) != 0 || c[0] == 0);
    tau[0] = holds ? inner : (c[0] > 0 ? 1 : -1);
    return;
  }
  const double size = c.cwiseAbs().maxCoeff() + b.cwiseAbs().maxCoeff();
  tau = least_norm(b, -c, kRank);
  if (size == 0 || (is_inside(tau) && (c + b * tau).cwiseAbs().maxCoeff() <= kHeld * size)) return;

  const Eigen::MatrixXd regular = b - kRegular * b.cwiseAbs().maxCoeff() * Eigen::MatrixXd::Identity(n, n);
  const std::vector<int> bound = bounds_of(regular, c);
  const Part part = part_of(regular, c, bound);
  tau = with_bounds(bound, part, solve_lu(part.b, part.right));
  shorten(b, c, size, tau);
}

}  // namespace cautious::lab
