// What the solver of inclusions is made of: the search for events, swings, and sliding switches.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

#include <Eigen/Core>

#include "lab/dynamics/inclusion.h"
#include "lab/numbers.h"

namespace cautious::lab {

// What happens first in a step, and when.
struct Event {
  double t = 0;
  std::size_t which = 0;
};

class EventSearch {
 public:
  // Sets the values at time t that must not fall below 0 by more than their slack.
  using Watch = std::function<void(double t, std::vector<double>& values, std::vector<double>& slacks)>;

  // The first time in (begin, end] from which one of the values is below 0. `seen` is called at times before it, in their
  // order. The values are looked at in a few places, and where a parabola through three of them gets near 0 in between.
  std::optional<Event> first(const Watch& watch, double begin, double end, const std::function<void()>& seen);

 private:
  std::optional<Event> search(const Watch& watch, double low, double high);

  std::vector<double> looks_[3];  // values at the last places
  std::vector<double> values_, slacks_;
  std::vector<std::size_t> below_;
};

// How far the indicators of switches swing about 0 between their sign changes.
class Swings {
 public:
  explicit Swings(std::size_t switches) : now_(switches, 0), last_(switches, 0), crossing_(switches, 0) {}

  void see(PointView q) {
    for (std::size_t i = 0; i < q.size(); ++i) now_[i] = std::max(now_[i], std::abs(q[i]));
  }
  // Switch i changed its side; `event` counts from 1.
  void cross(std::size_t i, std::size_t event) {
    last_[i] = now_[i];
    now_[i] = 0;
    crossing_[i] = event;
  }
  // Largest |q_i| since the sign change before the last.
  double size(std::size_t i) const { return std::max(now_[i], last_[i]); }
  // Whether it changed its side in the last few events, a few for each switch.
  bool is_lively(std::size_t i, std::size_t events) const {
    return crossing_[i] > 0 && events - crossing_[i] < 20 * crossing_.size();
  }

 private:
  Point now_, last_;
  std::vector<std::size_t> crossing_;
};

// The sides of sliding switches as a linear complementarity problem over the box [-1, 1]^n:
// tau such that for y = c + b tau: y_i = 0, or y_i > 0 with tau_i = 1, or y_i < 0 with tau_i = -1. Unique where -b is a
// P-matrix. Where -b is a singular matrix that is positive semidefinite after a scaling of its rows, the solution of least
// |tau|_2.
void solve_box(const Eigen::MatrixXd& b, const Eigen::VectorXd& c, Eigen::VectorXd& tau);

// Sliding switches: which of them act as one, the sides that hold them, and the way back to their surfaces.
class Sliding {
 public:
  // A class that leaves its surfaces faster than this part of the speed that its sides can give has left.
  static constexpr double kLeaves = 1e-7;

  // `z`: any point, to see whether the drive is the indicator.
  Sliding(const Inclusion& inclusion, PointView z);

  // Whether the indicator itself feels the sides: q is p. Otherwise q is a momentum that follows p.
  bool is_first_order() const { return first_order_; }

  // Groups the marked switches into classes as they are at z.
  void group(PointView z, const std::vector<bool>& marked);
  // Normals and representatives of the classes at a z further along.
  void refresh(PointView z);
  // What follows when the company of switch i (below) got below 0.
  void turn(std::size_t i, double t, PointView z, Point& side);

  std::size_t classes() const { return classes_.size(); }
  bool slides(std::size_t i) const { return class_of_[i] != kNone; }
  std::size_t class_of(std::size_t i) const { return class_of_[i]; }

  // Sets the sides of the grouped switches, and dz to the field with them.
  void solve(double t, PointView z, Point& side, std::span<double> dz);
  // Of the last solve: how fast class c leaves, as a part of what its sides can give; 0 if it stays.
  double leaving(std::size_t c) const;
  double drive(std::size_t c, PointView p) const { return std::abs(p[classes_[c].representative]); }
  // Of the last solve: whether its own side drives class c away from its surfaces.
  bool repels(std::size_t c) const { return b_(index(c), index(c)) > 0; }
  // Of the last solve: how far q of class c will swing about 0, if its drive is p now and the sides switch as they must to hold
  // it.
  double swing(std::size_t c, PointView p) const;

  // Of the last solve, per switch of a class of several: how much its drive still follows that of the class, 1 for the
  // representative; if it is held: by how much its side may still grow. Below 0 its place in the class has changed.
  void company(PointView z, std::span<double> part);

  // Moves z along the jumps of the field (of the last solve) to where the drive p of the classes is 0.
  void shift(PointView p, std::span<double> z) const;
  // Moves z by as little as possible to where the drives of the marked switches are 0; the largest that is left of them.
  double project(std::span<double> z, const std::vector<bool>& marked);

  // Whether the marked switches may begin to slide at z while the others swing on. Not if the drive of another one is held with
  // theirs (its momentum must die out first), nor if their own drives hardly depend on z but through the swings of others.
  bool may_begin(PointView z, const std::vector<bool>& marked, double within);

 private:
  static Eigen::Index index(std::size_t i) { return static_cast<Eigen::Index>(i); }

  static constexpr std::size_t kNone = static_cast<std::size_t>(-1);

  struct Class {
    std::size_t representative = 0, members = 0;
    double norm = 0;  // of the representative's row
    Point normal;     // that row, of length 1
  };

  double find_orientation(Point z);
  void find_rows(PointView z);
  void hold(double t, PointView z, Point& side, std::span<double> dz);
  Eigen::VectorXd turning(PointView z, PointView velocity);
  Class make_class(std::size_t i) const;

  const Inclusion& inclusion_;
  bool first_order_ = true;
  double orientation_ = 1;  // 1: a positive drive makes q positive
  std::vector<Class> classes_;
  std::vector<std::size_t> class_of_;
  std::vector<double> sign_;       // side = sign tau
  std::vector<std::size_t> held_;  // see company.cc
  std::vector<double> held_side_;
  Eigen::MatrixXd rows_;   // Jacobian of the drive
  Eigen::MatrixXd jumps_;  // d field / d tau
  Eigen::MatrixXd b_;
  Eigen::VectorXd c_, tau_, y_;
  Point unit_, drive_, moved_;
};

}  // namespace cautious::lab
