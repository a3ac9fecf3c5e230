// Sliding switches: which of them act as one, the sides that hold them, and the way back to their surfaces.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

#include <Eigen/Core>

#include "lab/dynamics/inclusion.h"

namespace cautious::lab {

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
  std::vector<std::size_t> held_;  // see sliding_company.cc
  std::vector<double> held_side_;
  Eigen::MatrixXd rows_;   // Jacobian of the drive
  Eigen::MatrixXd jumps_;  // d field / d tau
  Eigen::MatrixXd b_;
  Eigen::VectorXd c_, tau_, y_;
  Point unit_, drive_, moved_;
};

}  // namespace cautious::lab
