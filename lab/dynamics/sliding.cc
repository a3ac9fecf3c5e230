// Sides of sliding switches.
//
// Filippov's set at a point is the convex hull of the fields nearby. Switches whose drives have parallel gradients (rows of the
// Jacobian of p) change sign together: nearby there are only two patterns of their sides, and in the hull they are
// side_i = sign_i tau with one tau in [-1, 1]. On the minimisers of f = r(x)^2 that holds for all of them, and tau is unique.
// So the marked switches are grouped into such classes, and the taus solve the complementarity problem of box.cc for the
// rates y = c + b tau of the classes' drives. Classes can still be dependent (three drives on a manifold of codimension two):
// then many taus hold the surfaces, as section 3.2 of the paper says, and the one of least norm is taken, the closest to "no
// preference".
//
// With momentum q does not feel the sides, p does: q' = k p + ..., and the surfaces attract if a side of the sign of q drives k
// p back. k is -1 for Lion-K; the sign is read off b, because trajectories only get to surfaces that attract them.
#include "lab/dynamics/sliding.h"
#include "lab/linear.h"

#include <algorithm>
#include <cmath>

namespace cautious::lab {
namespace {

// Sine of the angle below which two rows are parallel.
constexpr double kParallel = 1e-5;

// Rows below this part of the longest one have no direction.
constexpr double kNoRow = 1e-9;

// Drives below this are near what rounding leaves of them.
constexpr double kNearRounding = 1e-9;

double largest(const Eigen::VectorXd& v) { return v.size() ? v.cwiseAbs().maxCoeff() : 0; }

}  // namespace

Sliding::Sliding(const Inclusion& inclusion, PointView z)
    : inclusion_(inclusion),
      class_of_(inclusion.switches, kNone),
      sign_(inclusion.switches, 1),
      unit_(inclusion.size),
      drive_(inclusion.switches),
      moved_(inclusion.size) {
  for (std::size_t i = 0; i < z.size(); ++i) moved_[i] = z[i] + 1e-3 * (1 + std::abs(z[i])) * static_cast<double>(i + 1);
  Point q(inclusion.switches);
  inclusion.indicator(moved_, q);
  inclusion.drive(moved_, drive_);
  for (std::size_t i = 0; i < q.size(); ++i) {
    first_order_ = first_order_ && std::abs(q[i] - drive_[i]) <= 1e-12 * std::abs(drive_[i]);
  }
  if (!first_order_) orientation_ = find_orientation(moved_);
}

// Sign of d q_i' / d p_i, by differences.
double Sliding::find_orientation(Point z) {
  constexpr double kStep = 1e-4;
  const Point side(inclusion_.switches, 0);
  Point dz(inclusion_.size), q(inclusion_.switches), later(inclusion_.switches);
  const auto rate = [&]() -> Eigen::VectorXd {
    inclusion_.indicator(z, q);
    inclusion_.field(1, z, side, dz);
    Point next = z;
    as_vector(std::span(next)) += kStep * as_vector(PointView(dz));
    inclusion_.indicator(next, later);
    return as_vector(PointView(later)) - as_vector(PointView(q));
  };
  find_rows(z);
  const Eigen::VectorXd here = rate();
  double sum = 0;
  for (std::size_t j = 0; j < z.size(); ++j) {
    const double kept = z[j];
    z[j] += kStep;
    sum += (rate() - here).dot(rows_.col(index(j)));
    z[j] = kept;
  }
  return sum < 0 ? -1 : 1;
}

void Sliding::find_rows(PointView z) {
  rows_.resize(index(inclusion_.switches), index(inclusion_.size));
  for (std::size_t j = 0; j < inclusion_.size; ++j) {
    unit_[j] = 1;
    inclusion_.drive_rate(z, unit_, drive_);
    unit_[j] = 0;
    rows_.col(index(j)) = as_vector(PointView(drive_));
  }
}

Sliding::Class Sliding::make_class(std::size_t i) const {
  Class made{.representative = i, .members = 0, .norm = rows_.row(index(i)).norm(), .normal = Point(inclusion_.size)};
  if (made.norm == 0) made.norm = 1;
  as_vector(std::span(made.normal)) = rows_.row(index(i)).transpose() / made.norm;
  return made;
}

void Sliding::group(PointView z, const std::vector<bool>& marked) {
  classes_.clear();
  held_.clear();
  std::fill(class_of_.begin(), class_of_.end(), kNone);
  if (std::find(marked.begin(), marked.end(), true) == marked.end()) return;
  find_rows(z);
  std::vector<std::size_t> order;  // longest rows first: they become the representatives
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i]) order.push_back(i);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t i, std::size_t j) { return rows_.row(index(i)).norm() > rows_.row(index(j)).norm(); });
  for (const std::size_t i : order) {
    const auto row = rows_.row(index(i));
    const double norm = row.norm();
    for (std::size_t c = 0; c < classes_.size() && class_of_[i] == kNone; ++c) {
      const auto normal = as_vector(PointView(classes_[c].normal)).transpose();
      const double along = row.dot(normal);
      const bool has_direction = norm > kNoRow * classes_[0].norm;
      if (has_direction ? (row - along * normal).norm() > kParallel * norm : classes_.size() > 1) continue;
      class_of_[i] = c;
      sign_[i] = along < 0 ? -1 : 1;
    }
    if (class_of_[i] == kNone) {
      class_of_[i] = classes_.size();
      sign_[i] = 1;
      classes_.push_back(make_class(i));
    }
    ++classes_[class_of_[i]].members;
  }
}

void Sliding::refresh(PointView z) {
  find_rows(z);
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    std::size_t longest = classes_[c].representative;
    for (std::size_t i = 0; i < class_of_.size(); ++i) {
      if (class_of_[i] == c && rows_.row(index(i)).norm() > rows_.row(index(longest)).norm()) longest = i;
    }
    const std::size_t members = classes_[c].members;
    classes_[c] = make_class(longest);
    classes_[c].members = members;
    const double turn = sign_[longest];
    for (std::size_t i = 0; i < class_of_.size(); ++i) {
      if (class_of_[i] == c) sign_[i] *= turn;
    }
  }
}

void Sliding::solve(double t, PointView z, Point& side, std::span<double> dz) {
  const std::size_t n = classes_.size();
  b_.resize(index(n), index(n));
  c_.resize(index(n));
  jumps_.resize(index(inclusion_.size), index(n));
  const auto set_sides = [&](std::size_t c, double tau) {
    for (std::size_t i = 0; i < side.size(); ++i) {
      if (class_of_[i] == c) side[i] = sign_[i] * tau;
    }
  };
  for (std::size_t c = 0; c < n; ++c) set_sides(c, 0);
  inclusion_.field(t, z, side, dz);
  inclusion_.drive_rate(z, dz, drive_);
  for (std::size_t c = 0; c < n; ++c) c_[index(c)] = drive_[classes_[c].representative] / classes_[c].norm;
  for (std::size_t c = 0; c < n; ++c) {
    set_sides(c, 1);
    inclusion_.field(t, z, side, moved_);
    set_sides(c, 0);
    for (std::size_t i = 0; i < moved_.size(); ++i) moved_[i] -= dz[i];
    jumps_.col(index(c)) = as_vector(PointView(moved_));
    inclusion_.drive_rate(z, moved_, drive_);
    for (std::size_t k = 0; k < n; ++k) b_(index(k), index(c)) = drive_[classes_[k].representative] / classes_[k].norm;
  }
  b_ *= orientation_;
  c_ *= orientation_;
  solve_box(b_, c_, tau_);
  y_ = c_ + b_ * tau_;
  for (std::size_t c = 0; c < n; ++c) set_sides(c, tau_[index(c)]);
  as_vector(dz) += jumps_ * tau_;
  if (!held_.empty()) hold(t, z, side, dz);
}

double Sliding::leaving(std::size_t c) const {
  const auto k = index(c);
  const double can_give = std::abs(c_[k]) + b_.row(k).cwiseAbs().sum();
  if (can_give == 0 || std::abs(tau_[k]) < 1) return 0;
  return std::max(0.0, y_[k] * tau_[k] / can_give);
}

double Sliding::swing(std::size_t c, PointView p) const {
  const auto k = index(c);
  const double drive = p[classes_[c].representative];
  const double slower = -b_(k, k) * classes_[c].norm * (1 - std::abs(tau_[k]));  // of the two rates of the drive
  return slower > 0 ? drive * drive / (2 * slower) : INFINITY;
}

void Sliding::shift(PointView p, std::span<double> z) const {
  Eigen::VectorXd drive(index(classes_.size()));
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    drive[index(c)] = orientation_ * p[classes_[c].representative] / classes_[c].norm;
  }
  // A swing is no wider than its drive over the rate of it: small singular values have no part in it.
  as_vector(z) -= jumps_ * least_norm(b_, drive, 1e-3);
}

// Levenberg and Marquardt's steps with a damping of the size of the residual: they converge quadratically to a manifold of
// zeros, where the Jacobian is singular and Newton's steps may run along it; slowly at first where it is badly conditioned.
double Sliding::project(std::span<double> z, const std::vector<bool>& marked) {
  std::vector<Eigen::Index> held;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i]) held.push_back(index(i));
  }
  if (held.empty()) return 0;
  const auto drive_at = [&](PointView at) -> Eigen::VectorXd {
    inclusion_.drive(at, drive_);
    return as_vector(PointView(drive_))(held);
  };
  Eigen::VectorXd p = drive_at(z);
  for (int round = 0; round < 60 && largest(p) > 0; ++round) {
    find_rows(z);
    const Eigen::MatrixXd rows = rows_(held, Eigen::all);
    Eigen::MatrixXd square = rows * rows.transpose();
    const double size = rows.norm();
    if (size == 0) break;
    square.diagonal().array() += p.norm() * size + 1e-14 * size * size;
    as_vector(std::span(moved_)) = as_vector(PointView(z)) - rows.transpose() * solve_symmetric(square, p);
    const Eigen::VectorXd next = drive_at(moved_);
    const double enough = largest(p) > kNearRounding ? 0.999 : 0.5;
    if (!(largest(next) < enough * largest(p))) break;
    std::copy(moved_.begin(), moved_.end(), z.begin());
    p = next;
  }
  return largest(p);
}

bool Sliding::may_begin(PointView z, const std::vector<bool>& marked, double within) {
  find_rows(z);
  inclusion_.drive(z, drive_);
  std::vector<Eigen::Index> held, others;
  std::vector<bool> swings = marked;
  for (std::size_t i = 0; i < marked.size(); ++i) {
    if (marked[i]) held.push_back(index(i));
    if (!marked[i] && std::abs(drive_[i]) <= within) others.push_back(index(i));
    if (std::abs(drive_[i]) <= 100 * std::sqrt(within)) swings[i] = true;
  }
  const Eigen::MatrixXd rows = rows_(held, Eigen::all);
  if (!others.empty()) {
    const Eigen::MatrixXd targets = rows_(others, Eigen::all).transpose();
    const Eigen::MatrixXd rest = targets - rows.transpose() * least_norms(rows.transpose(), targets, 1e-7);
    for (Eigen::Index j = 0; j < targets.cols(); ++j) {
      if (rest.col(j).norm() <= kParallel * targets.col(j).norm()) return false;
    }
  }
  if (swings == marked) return true;
  Point calm(z.begin(), z.end());
  project(calm, swings);
  find_rows(calm);
  const Eigen::MatrixXd calm_rows = rows_(held, Eigen::all);
  for (Eigen::Index k = 0; k < rows.rows(); ++k) {
    if ((calm_rows.row(k) - rows.row(k)).norm() > 0.5 * rows.row(k).norm()) return false;
  }
  return true;
}

}  // namespace cautious::lab
