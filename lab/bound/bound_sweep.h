// Left side and bounds of Theorem 1 side by side: over steps, step sizes and batches, and in settings drawn at random.
#pragma once

#include <string>
#include <vector>

#include "lab/bound/bound_run.h"

namespace cautious::lab {

struct BoundPoint {
  double at = 0;  // T, eta or n
  Estimate left;
  double paper = 0, sharper = 0;
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

// Where left / bound was largest.
struct BoundTally {
  std::size_t count = 0, paper_violated = 0, sharper_violated = 0;
  double paper = 0, sharper = 0;
  std::string paper_where, sharper_where;

  void add(const BoundCurve& curve, const std::string& where);
  void add(const BoundTally& other);
};

// Settings, noises and starts (half of them next to a minimiser) drawn at random, T = 1, 2, 4 ... 256 in each.
BoundTally random_settings(std::size_t count, std::size_t seeds, std::uint64_t seed);

}  // namespace cautious::lab
