// Adam + CWD of the library on a problem with noise, and the left side of Theorem 1 estimated over many runs.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include <cautious/optimizer.h>

#include "lab/bound/bound_problem.h"
#include "lab/bound/bound_theory.h"

namespace cautious::lab {

// All but R. The start is that of the problem unless given.
BoundConstants known_constants(const BoundProblem& problem, const BoundNoise& noise, PointView start);

// An R that holds almost surely, for a coercive problem whose noise is weaker than its slope far out; NaN otherwise.
double provable_radius(const BoundProblem& problem, const BoundNoise& noise, const BoundSetting& setting, PointView start);

class BoundRun {
 public:
  BoundRun(const BoundProblem& problem, const BoundNoise& noise, const BoundSetting& setting, PointView start,
           std::uint64_t seed);
  BoundRun(const BoundRun&) = delete;  // the optimizer points into it
  BoundRun& operator=(const BoundRun&) = delete;

  void step();

  // Of step t, the last one.
  PointView point() const { return point_; }    // x_t
  PointView slope() const { return slope_; }    // grad f(x_t)
  PointView sample() const { return sample_; }  // g_t
  PointView momentum() const { return {m_, x_.size()}; }
  PointView square() const { return {v_, x_.size()}; }  // v_t
  PointView next() const { return x_; }                 // x_{t+1}

  // |grad f|_2^2 + lambda |(grad f x)^+|_1 at x_t.
  double stationarity() const;

 private:
  const BoundProblem& problem_;
  BoundNoise noise_;
  BoundSetting setting_;
  Random random_;
  Optimizer optimizer_;
  Point x_, point_, slope_, sample_;
  const double* m_ = nullptr;
  const double* v_ = nullptr;
};

// A mean over runs with its 95 % interval (Student).
struct Estimate {
  double mean = 0, low = 0, high = 0;
};
Estimate estimate(std::span<const double> values);

// A line through (log x, log y) by least squares: its slope with the 95 % interval. At least three points.
Estimate log_log_slope(std::span<const double> x, std::span<const double> y);

struct LeftSide {
  std::vector<Estimate> mean_stationarity;  // over the first T steps, per T asked for
  double radius = 0;                        // largest |x_t|_inf of all runs, t <= T + 1
};

// `steps` ascends.
LeftSide left_side(const BoundProblem& problem, const BoundNoise& noise, const BoundSetting& setting, PointView start,
                   std::span<const std::size_t> steps, std::size_t seeds, std::uint64_t seed);

// With the provable R, or the one measured.
BoundConstants constants_of(const BoundProblem& problem, const BoundNoise& noise, const BoundSetting& setting, PointView start,
                            double measured_radius);

}  // namespace cautious::lab
