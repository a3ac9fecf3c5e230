// Between bf16 in memory and f32 in the tile: bit arithmetic that vectorizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/random_bits.h"

namespace cautious::CAUTIOUS_ISA {

inline std::uint32_t word_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline constexpr std::uint32_t kInfinity = 0x7f800000u, kQuiet = 0x00400000u;

inline bool is_nan_bits(std::uint32_t bits) { return (bits & 0x7fffffffu) > kInfinity; }

inline float widen(std::uint16_t high) { return float_of(static_cast<std::uint32_t>(high) << 16); }

// `increment` is below 2^16 and decides about the lower half; infinities and NaN (quiet, as results of arithmetic are) stay.
inline std::uint16_t rounded(std::uint32_t word, std::uint32_t increment) {
  return static_cast<std::uint16_t>((word + ((word & kInfinity) != kInfinity ? increment : 0)) >> 16);
}

inline std::uint16_t nearest(float value) {
  const std::uint32_t word = word_of(value);
  return rounded(word, 0x7fffu + ((word >> 16) & 1u));
}

// `chance` is 16 uniform bits: the value goes up with the probability of its lower half.
inline std::uint16_t stochastic(float value, std::uint32_t chance) { return rounded(word_of(value), chance); }

// high is the nearest bf16 (ties away from zero), low the signed rest: (high << 16) + low gives the f32 back exactly.
// A NaN is made canonical first, since its payload could carry into the sign.
inline std::uint32_t splittable(float value) {
  const std::uint32_t bits = word_of(value);
  return is_nan_bits(bits) ? (kInfinity | kQuiet) : bits;
}
inline std::uint16_t split_high(std::uint32_t bits) { return static_cast<std::uint16_t>((bits + 0x8000u) >> 16); }
inline std::int16_t split_low(std::uint32_t bits) { return static_cast<std::int16_t>(bits & 0xffffu); }
inline float join(std::uint16_t high, std::int16_t low) {
  return float_of((static_cast<std::uint32_t>(high) << 16) + static_cast<std::uint32_t>(static_cast<std::int32_t>(low)));
}

// The 32 random bits of index k serve two coordinates, 128 apart in the tile: the lower half the first, the upper the second.
inline void store_stochastic_tile(const float* __restrict in, std::uint16_t* __restrict out, kernels::Stream stream,
                                  std::uint64_t first) {
  constexpr std::uint32_t kHalf = kernels::kTile / 2;
  const std::uint32_t salt = tile_salt(stream, first / 2), index = static_cast<std::uint32_t>(first / 2);
  for (std::uint32_t i = 0; i < kHalf; ++i) {
    const std::uint32_t chance = random_bits(stream.k0, salt, index + i);
    out[i] = stochastic(in[i], chance & 0xffffu);
    out[i + kHalf] = stochastic(in[i + kHalf], chance >> 16);
  }
}

}  // namespace cautious::CAUTIOUS_ISA
