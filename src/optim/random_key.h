// Keys of the random streams: a pure function of (seed, purpose, step, tensor), docs/spec.md, "Random bits".
#pragma once

#include <cstdint>

#include "base/hash.h"
#include "kernels/kernels.h"

namespace cautious::optim {

enum class Purpose : std::uint64_t { decay = 1, rounding = 2 };

// `tensor` is the hash of its name: a tensor keeps its stream when others come or go.
constexpr kernels::Stream random_key(std::uint64_t seed, Purpose purpose, std::int64_t t, std::uint64_t tensor) {
  std::uint64_t key = base::mix64(seed + base::kGolden);
  key = base::mix64(key + static_cast<std::uint64_t>(purpose));
  key = base::mix64(key + static_cast<std::uint64_t>(t));
  key = base::mix64(key + tensor);
  return {static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32)};
}

}  // namespace cautious::optim
