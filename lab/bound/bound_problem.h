// Objectives whose constants in appendix E are known, and gradient noise that meets its assumptions with equality.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "lab/random.h"
#include "lab/vector.h"

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

}  // namespace cautious::lab
