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

inline std::uint16_t nearest(float value) {
  const std::uint32_t bits = word_of(value);
  const std::uint32_t rounded = bits + 0x7fffu + ((bits >> 16) & 1u);
  return static_cast<std::uint16_t>((is_nan_bits(bits) ? bits | kQuiet : rounded) >> 16);
}

// `chance` is 16 uniform bits: the value goes up with the probability of its lower half.
inline std::uint16_t stochastic(float value, std::uint32_t chance) {
  const std::uint32_t bits = word_of(value);
  const bool finite = (bits & kInfinity) != kInfinity;
  const std::uint32_t other = is_nan_bits(bits) ? bits | kQuiet : bits;
  return static_cast<std::uint16_t>((finite ? bits + chance : other) >> 16);
}

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

template <class N>
inline void store_stochastic_tile(const float* __restrict in, std::uint16_t* __restrict out, N n, kernels::Stream stream,
                                  std::uint64_t first) {
  const std::uint32_t salt = tile_salt(stream, first), index = static_cast<std::uint32_t>(first);
  for (std::size_t i = 0; i < n; ++i) {
    out[i] = stochastic(in[i], random_bits(stream.k0, salt, index + static_cast<std::uint32_t>(i)) >> 16);
  }
}

}  // namespace cautious::CAUTIOUS_ISA
