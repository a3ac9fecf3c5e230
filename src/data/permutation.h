// The order of an epoch, without a table: a Feistel network over the smallest even number of bits that holds every number; a
// result that is too large goes through the network again (cycle walking), which keeps it a permutation. The bits are part of
// results: never change them.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <utility>

#include "base/hash.h"

namespace cautious::data {

constexpr std::uint64_t epoch_key(std::uint64_t seed, std::uint64_t epoch) {
  return base::mix64(base::mix64(seed + base::kGolden) + (epoch + 1) * base::kGolden);
}

// Where that key's permutation of 0 ... count - 1 takes x.
constexpr std::uint64_t permuted(std::uint64_t x, std::uint64_t count, std::uint64_t key) {
  constexpr std::uint64_t kRounds = 8;
  constexpr std::uint64_t kLeastHalf = 4;  // bits: below, a network reaches only few of the orders
  const auto half = std::max<std::uint64_t>(kLeastHalf, (std::bit_width(count - 1) + 1u) / 2);
  const std::uint64_t mask = (std::uint64_t{1} << half) - 1;
  do {
    std::uint64_t left = x >> half, right = x & mask;
    for (std::uint64_t round = 1; round <= kRounds; ++round) {
      const std::uint64_t shaped = base::mix64(base::mix64(key + round * base::kGolden) + right) & mask;
      left = std::exchange(right, left ^ shaped);
    }
    x = left << half | right;
  } while (x >= count);
  return x;
}

}  // namespace cautious::data
