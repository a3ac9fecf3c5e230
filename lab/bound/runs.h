// Adam + CWD of the library on objectives whose constants in appendix E are known, with gradient noise that meets its
// assumptions with equality: the left side of Theorem 1, estimated over many runs, beside its bounds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "lab/bound/theory.h"
#include "lab/numbers.h"

namespace cautious::lab {

// One sample's noise in one coordinate: `size` with probability p = 2^-rarity, otherwise -size p / (1 - p). Mean 0, at most
// `size`; rarity 1 is a fair sign, more is skewed.
struct BoundNoise {
  double size = 0;
  int rarity = 1;

  double probability() const { return 1 / static_cast<double>(1 << rarity); }
  double variance() const { return size * size * probability() / (1 - probability()); }
};

// The least value is 0.
struct BoundProblem {
  std::string name, formula;
  Point start;
  Point minimiser;        // one of them
  double smoothness = 0;  // L
  double slope = 0;       // |grad f|_inf at most
  // If coercive: a sum over coordinates, where the slope at distance r from the minimiser is, away from it, at least
  // r / sqrt(1 + r^2) - ripple.
  bool coercive = false;
  double ripple = 0;
  BoundNoise noise;  // of the sweeps; weaker than the slope far out if coercive
  std::function<double(PointView)> value;
  std::function<void(PointView, std::span<double>)> gradient;

  std::size_t dimension() const { return start.size(); }
};

const std::vector<BoundProblem>& bound_problems();

// Mean over a batch of independent samples, drawn exactly.
double batch_noise(Random& random, const BoundNoise& noise, std::size_t batch);

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

// Left side and bounds side by side.
struct BoundPoint {
  double at = 0;  // T, eta or n
  Estimate left;
  double paper = 0, sharper = 0;
  BoundTerms terms = {};  // of which `paper` is the sum
};
using BoundCurve = std::vector<BoundPoint>;

// What is run, from where and how often.
struct BoundCase {
  const BoundProblem* problem = nullptr;
  BoundNoise noise;
  BoundSetting setting;
  Point start;
  std::size_t seeds = 0;
  std::uint64_t seed = 0;
};
BoundCase usual_case(const BoundProblem& problem, const BoundSetting& setting, std::size_t seeds, std::uint64_t seed);

// One set of runs, cut off after each number of steps; `steps` ascends.
BoundCurve over_steps(const BoundCase& usual, const std::vector<std::size_t>& steps);
BoundCurve over_eta(const BoundCase& usual, const std::vector<double>& etas, std::size_t steps);
BoundCurve over_batch(const BoundCase& usual, const std::vector<std::size_t>& batches, std::size_t steps);

// eta = 1 / sqrt(T), with the batch of the case or n = T.
BoundCurve along_rate(const BoundCase& usual, const std::vector<std::size_t>& steps, bool batch_is_steps);

// Of the left side against T, eta or n.
Estimate slope_of(const BoundCurve& curve);

// The paper's bound with something broken.
struct BoundMutation {
  std::string_view change;
  double (*bound)(const BoundTerms& terms);
};
const std::vector<BoundMutation>& bound_mutations();

// Where left / bound was largest, and how often the bound is too small, as it is and broken.
struct BoundTally {
  std::size_t count = 0, paper_violated = 0, sharper_violated = 0;
  double paper = 0, sharper = 0;
  std::string paper_where = {}, sharper_where = {};
  std::vector<std::size_t> mutants_violated = std::vector<std::size_t>(bound_mutations().size());

  void add(const BoundCurve& curve, const std::string& where);
  void add(const BoundTally& other);
};

// Settings, noises and starts (half of them next to a minimiser) drawn at random, T = 1, 2, 4 ... 256 in each.
BoundTally random_settings(std::size_t count, std::size_t seeds, std::uint64_t seed);

}  // namespace cautious::lab
