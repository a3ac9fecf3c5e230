// Random numbers as a function of a key: SplitMix64, whose state is the key and the number of draws.
#pragma once

#include <cmath>
#include <cstdint>
#include <initializer_list>
#include <numbers>

#include "base/hash.h"

namespace cautious::data {

constexpr std::uint64_t key_of(std::uint64_t seed, std::initializer_list<std::uint64_t> path) {
  std::uint64_t key = base::mix64(seed + base::kGolden);
  for (const std::uint64_t step : path) key = base::mix64(key + (step + 1) * base::kGolden);
  return key;
}

class Draws {
 public:
  explicit Draws(std::uint64_t key) : state_(key) {}

  double uniform() { return static_cast<double>(next() >> 11) * 0x1p-53; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double positive() { return static_cast<double>((next() >> 11) + 1) * 0x1p-53; }  // (0, 1], for logarithms
  std::int64_t below(std::int64_t count) { return static_cast<std::int64_t>(uniform() * static_cast<double>(count)); }
  bool chance(double probability) { return uniform() < probability; }
  double log_uniform(double low, double high) { return std::exp(uniform(std::log(low), std::log(high))); }
  double normal() {
    const double radius = std::sqrt(-2 * std::log(positive()));
    return radius * std::cos(2 * std::numbers::pi * uniform());
  }

 private:
  std::uint64_t next() { return base::mix64(state_ += base::kGolden); }

  std::uint64_t state_;
};

}  // namespace cautious::data
