// Cases in which the inequalities of appendix E are nearly equalities, so that a constant that is too small shows.
#pragma once

#include <cstdint>
#include <vector>

#include "lab/bound/runs.h"

namespace cautious::lab {

struct TightCase {
  BoundProblem problem;
  BoundSetting setting;
  std::size_t seeds = 1, steps = 128;
};

// For the lemmas: one coordinate, slope a + b x.
//   ramp      decay alone moves x, fast, while the slope rises: momentum lags behind it by all that the lemmas allow
//   crossing  the same until the slope changes its sign, which momentum notices as late as it can
//   coin      a constant slope and a fair coin of just its size, without momentum: the sign is wrong half of the time
//   skew      a constant slope and skewed noise, chosen to hurt the update most
std::vector<TightCase> tight_lemma_cases();

// For the theorem, which is an equality up to a factor in each:
//   flat bowl  K4: skewed noise without momentum holds the iterates where the slope is not 0
//   slow bowl  K1: with a large eps it is gradient descent, whose small steps lose nothing
//   zigzag     K3: steps of fixed length across the minimiser, for ever
TightCase tight_noise_case();
std::vector<TightCase> tight_theorem_cases();

// The largest left / right over all noises of two values, expectations computed exactly, without momentum and in one
// coordinate; `draws` noises, eps and lambda R are tried at random.
struct NoiseSearch {
  double update = 0;      // f^2 / (G + eps) - E[f g / (|g| + eps)] over (G / eps) sigma: the lemma on the update
  double mask = 0;        // |f| times the probability of a wrong sign, over sigma: the lemma on the decay
  double stationary = 0;  // f^2 + lambda |(f x)^+| over K4 sigma where the mean motion is 0: the theorem for eta -> 0
  double first = 0;       // the first of these over (G / eps) E|g - f| / 2, which shows that K2 is not needed
};
NoiseSearch search_two_values(std::size_t draws, std::uint64_t seed);

}  // namespace cautious::lab
