// Switches that change their place in a class.
//
// In a class the drive of switch i is part_i times that of the representative. Where part_i gets to 0 along a sliding
// trajectory (on the manifold r = 0 of f = r^2: where dr/dx_i = 0), the switch joins the other pattern of sides: its sign
// turns. If the motion with the turned sign goes back, the trajectory slides on part_i = 0 as well: then its drive vanishes to
// second order, the other sides do not feel it, and its own side is held at the value between -|tau| and |tau| for which part_i
// stays 0.
#include <algorithm>
#include <cmath>

#include "lab/dynamics/sliding.h"
#include "lab/linear.h"

namespace cautious::lab {
namespace {

// A part that moves slower than this is at rest.
constexpr double kUnturned = 1e-9;

}  // namespace

void Sliding::company(PointView z, std::span<double> part) {
  for (std::size_t c = 0; c < classes_.size(); ++c) {
    if (classes_[c].members < 2) continue;
    inclusion_.drive_rate(z, classes_[c].normal, drive_);
    for (std::size_t i = 0; i < part.size(); ++i) {
      if (class_of_[i] == c) part[i] = sign_[i] * drive_[i] / classes_[c].norm;
    }
  }
  for (std::size_t k = 0; k < held_.size(); ++k) {
    part[held_[k]] = std::abs(tau_[index(class_of_[held_[k]])]) - std::abs(held_side_[k]);
  }
}

// Rates of the parts of the held switches where z moves with this velocity, by differences.
Eigen::VectorXd Sliding::turning(PointView z, PointView velocity) {
  const double step = 1e-5 / (1 + as_vector(velocity).norm());
  Eigen::VectorXd rates = Eigen::VectorXd::Zero(index(held_.size()));
  Point near(z.size());
  for (const double sign : {1.0, -1.0}) {
    as_vector(std::span(near)) = as_vector(z) + sign * step * as_vector(velocity);
    for (std::size_t k = 0; k < held_.size(); ++k) {
      const Class& of = classes_[class_of_[held_[k]]];
      inclusion_.drive_rate(near, of.normal, drive_);
      rates[index(k)] += sign * drive_[held_[k]] / of.norm / (2 * step);
    }
  }
  return rates;
}

void Sliding::hold(double t, PointView z, Point& side, std::span<double> dz) {
  const std::size_t n = held_.size();
  Eigen::MatrixXd jumps(index(z.size()), index(n)), effect(index(n), index(n));
  for (std::size_t k = 0; k < n; ++k) {
    side[held_[k]] = 1;
    inclusion_.field(t, z, side, moved_);
    side[held_[k]] = 0;
    for (std::size_t i = 0; i < moved_.size(); ++i) moved_[i] -= dz[i];
    jumps.col(index(k)) = as_vector(PointView(moved_));
    effect.col(index(k)) = turning(z, moved_);
  }
  const Eigen::VectorXd sides = least_norm(effect, -turning(z, dz));
  for (std::size_t k = 0; k < n; ++k) side[held_[k]] = held_side_[k] = sides[index(k)];
  as_vector(dz) += jumps * sides;
}

void Sliding::turn(std::size_t i, double t, PointView z, Point& side) {
  const double tau = tau_[index(class_of_[i])];
  if (const auto found = std::find(held_.begin(), held_.end(), i); found != held_.end()) {
    const auto k = found - held_.begin();
    sign_[i] = held_side_[static_cast<std::size_t>(k)] * tau < 0 ? -1 : 1;
    held_.erase(found);
    held_side_.erase(held_side_.begin() + k);
    return;
  }
  sign_[i] = -sign_[i];
  Point dz(z.size());
  solve(t, z, side, dz);
  held_.push_back(i);
  held_side_.push_back(0);
  if (turning(z, dz)[index(held_.size() - 1)] * sign_[i] < -kUnturned) {
    sign_[i] = 0;
  } else {
    held_.pop_back();
    held_side_.pop_back();
  }
}

}  // namespace cautious::lab
