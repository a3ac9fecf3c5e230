// Between bf16 in memory and f32 in the tile: bit arithmetic that vectorizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cautious/detail/scalar.h>

#include "kernels/random_bits.h"

namespace cautious::CAUTIOUS_ISA {

inline std::uint32_t word_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline constexpr std::uint32_t kInfinity = 0x7f800000u, kQuiet = 0x00400000u;

inline float widen(std::uint16_t high) { return float_of(static_cast<std::uint32_t>(high) << 16); }

// Below, W is the bits of an f32 as a 32-bit word, or a tensor of such words; halves of them are words too.
// `increment` is below 2^16 and decides about the lower half; infinities and NaN (quiet, as results of arithmetic are) stay.
template <class W>
inline W rounded(W word, W increment) {
  return (word + select((word & kInfinity) != kInfinity, increment, 0u)) >> 16;
}

inline std::uint16_t nearest(float value) {
  const std::uint32_t word = word_of(value);
  return static_cast<std::uint16_t>(rounded(word, 0x7fffu + ((word >> 16) & 1u)));
}

// `chance` is 16 uniform bits: the value goes up with the probability of its lower half.
inline std::uint16_t stochastic(float value, std::uint32_t chance) {
  return static_cast<std::uint16_t>(rounded(word_of(value), chance));
}

// high is the nearest bf16 (ties away from zero), low the signed rest: (high << 16) + low gives the f32 back exactly.
// A NaN is made canonical first, since its payload could carry into the sign.
template <class W>
inline W splittable(W bits) {
  return select((bits & 0x7fffffffu) > kInfinity, kInfinity | kQuiet, bits);
}
template <class W>
inline W split_high(W bits) {
  return (bits + 0x8000u) >> 16;
}
template <class W>
inline W split_low(W bits) {
  return bits & 0xffffu;
}
template <class W>
inline W join(W high, W low) {
  return (high << 16) + low;
}

// The 32 random bits of index k serve two coordinates, 128 apart in the tile: the lower half the first, the upper the second.
inline void store_stochastic_tile(const float* __restrict in, std::uint16_t* __restrict out, kernels::Stream stream,
                                  std::uint64_t first) {
  constexpr std::uint32_t kHalf = kernels::kTile / 2;
  const std::uint32_t salt = tile_salt(stream, first / 2), index = static_cast<std::uint32_t>(first / 2);
  for (std::uint32_t i = 0; i < kHalf; ++i) {
    const std::uint32_t chance = random_bits(stream, salt, index + i);
    out[i] = stochastic(in[i], chance & 0xffffu);
    out[i + kHalf] = stochastic(in[i + kHalf], chance >> 16);
  }
}

}  // namespace cautious::CAUTIOUS_ISA
