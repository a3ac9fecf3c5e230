// Between bf16 in memory and f32 in the tile: bit arithmetic that vectorizes.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cautious/detail/scalar.h>

#include "kernels/random_bits.h"

namespace cautious::CAUTIOUS_ISA {

CAUTIOUS_DEVICE inline std::uint32_t word_of(float value) { return __builtin_bit_cast(std::uint32_t, value); }
CAUTIOUS_DEVICE inline float float_of(std::uint32_t bits) { return __builtin_bit_cast(float, bits); }

inline constexpr std::uint32_t kInfinity = 0x7f800000u, kQuiet = 0x00400000u;

CAUTIOUS_DEVICE inline float widen(std::uint16_t high) { return float_of(static_cast<std::uint32_t>(high) << 16); }

// Below, V is an f32, or many of them, W their bits as 32-bit words; halves of words are words too.
// `increment` is below 2^16 and decides about the lower half. NaN stays: its payload could carry into the sign.
template <class V, class W>
CAUTIOUS_DEVICE inline W rounded(V value, W increment) {
  return (word_of(value) + select(value == value, increment, increment & 0u)) >> 16;
}

template <class V>
CAUTIOUS_DEVICE inline auto nearest(V value) {
  return rounded(value, ((word_of(value) >> 16) & 1u) + 0x7fffu);
}

// high is the nearest bf16 (ties away from zero), low the signed rest: (high << 16) + low gives the f32 back exactly.
// A NaN is made canonical first, since its payload could carry into the sign.
template <class W>
CAUTIOUS_DEVICE inline W splittable(W bits) {
  return select((bits & 0x7fffffffu) > kInfinity, kInfinity | kQuiet, bits);
}
template <class W>
CAUTIOUS_DEVICE inline W split_high(W bits) {
  return (bits + 0x8000u) >> 16;
}
template <class W>
CAUTIOUS_DEVICE inline W split_low(W bits) {
  return bits & 0xffffu;
}
template <class W>
CAUTIOUS_DEVICE inline W join(W high, W low) {
  return (high << 16) + low;
}

}  // namespace cautious::CAUTIOUS_ISA
