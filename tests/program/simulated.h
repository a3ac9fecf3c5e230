// Normal numbers of a fixed seed, the same on every machine: for simulated studies.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>

namespace cautious::study {

// Box-Muller, cosine half only.
class Normal {
 public:
  explicit Normal(std::uint64_t seed) : engine_(seed) {}
  double operator()() { return std::sqrt(-2 * std::log(uniform())) * std::cos(2 * std::numbers::pi * uniform()); }

 private:
  double uniform() { return (static_cast<double>(engine_() >> 11) + 0.5) * 0x1p-53; }
  std::mt19937_64 engine_;
};

}  // namespace cautious::study
