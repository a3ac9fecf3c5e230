// Random numbers by counting: splitmix64 of a key and a position, the key being the seed and a parameter's name. Initial values
// of every model come from here.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <span>
#include <string_view>

#include "base/hash.h"

namespace cautious::model {

inline std::uint64_t key_of(std::string_view name, std::uint64_t seed) {
  return base::mix64(base::hash_of(name) ^ base::mix64(seed + base::kGolden));
}

inline constexpr double kCut = 3;  // normal values farther out, in standard deviations, are drawn again

// Uniform in (0, 1), one after the other.
class UniformStream {
 public:
  UniformStream(std::uint64_t key, std::uint64_t position) : state_(base::mix64(key + base::kGolden * (position + 1))) {}
  double next() {
    state_ += base::kGolden;
    return (static_cast<double>(base::mix64(state_) >> 11U) + 0.5) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

struct NormalPair {
  double first, second;
};

// Box-Muller. A pair with one value too far out is drawn again, which leaves two independent truncated normal values.
inline NormalPair normal_pair(UniformStream stream) {
  for (;;) {
    const double radius = std::sqrt(-2 * std::log(stream.next())), angle = 2 * std::numbers::pi * stream.next();
    const NormalPair pair{radius * std::cos(angle), radius * std::sin(angle)};
    if (std::abs(pair.first) <= kCut && std::abs(pair.second) <= kCut) return pair;
  }
}

template <class Value>
void fill_normal(std::span<Value> values, std::uint64_t key, double deviation) {
  const auto size = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t position = 0; position < size; position += 2) {
    const NormalPair pair = normal_pair(UniformStream(key, static_cast<std::uint64_t>(position)));
    values[position] = static_cast<Value>(deviation * pair.first);
    if (position + 1 < size) values[position + 1] = static_cast<Value>(deviation * pair.second);
  }
}

template <class Value>
void fill_uniform(std::span<Value> values, std::uint64_t key, double limit) {
  const auto size = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t position = 0; position < size; ++position) {
    values[position] = static_cast<Value>(limit * (2 * UniformStream(key, static_cast<std::uint64_t>(position)).next() - 1));
  }
}

}  // namespace cautious::model
