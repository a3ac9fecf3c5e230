// Counter-based random bits: a pure function of (key, coordinate), so any chunking gives the same ones.
#pragma once

#include <cstdint>

#include <cautious/detail/scalar.h>

#include "kernels/kernels.h"

namespace cautious::CAUTIOUS_ISA {

// W is a 32-bit word with arithmetic modulo 2^32, or a tensor of such words. `high` is the upper half of the coordinate's
// index.
template <class W>
CAUTIOUS_DEVICE inline W random_salt(kernels::Stream stream, W high) {
  return high * 0x85ebca6bu + stream.k1;
}

// `index` is the lower half.
template <class W>
constexpr W random_bits(kernels::Stream stream, W salt, W index) {
  W z = (index ^ stream.k0) * 0x9e3779b1u;
  z = (z ^ (z >> 15)) + salt;
  z = (z ^ (z >> 16)) * 0x7feb352du;
  z = (z ^ (z >> 15)) * 0x846ca68bu;
  return z ^ (z >> 16);
}

// The salt is the same for all coordinates of a tile: tiles never straddle a multiple of 2^32.
CAUTIOUS_DEVICE inline std::uint32_t tile_salt(kernels::Stream stream, std::uint64_t first) {
  return random_salt(stream, static_cast<std::uint32_t>(first >> 32));
}

// Stochastic rounding has its own, cheaper bits: within a tile one multiplication makes a word, which serves two coordinates.
// The tile's two numbers are random; the word's place in the tile has a fixed one. Uniform, and any two coordinates of a tile
// are as good as independent, which is what the variance of a sum needs.

// From the random bits of index 2 tile and 2 tile + 1.
template <class W>
struct RoundingKey {
  W factor, shift;
};
template <class W>
CAUTIOUS_DEVICE inline RoundingKey<W> rounding_key(W even, W odd) {
  return {(even & ~1u) + 1u, odd};
}

// Of the word number `c` of a tile.
template <class W>
constexpr W spread_of(W c) {
  return (random_bits(kernels::Stream{}, c & 0u, c + 1u) & ~1u) + 1u;
}

template <class W>
CAUTIOUS_DEVICE inline W rounding_word(const RoundingKey<W>& key, W spread) {
  return spread * key.factor + key.shift;
}
// What is added to the bits of the first and of the second coordinate.
template <class W>
CAUTIOUS_DEVICE inline W first_chance(W word) {
  return (word ^ (word >> 16)) & 0xffffu;
}
template <class W>
CAUTIOUS_DEVICE inline W second_chance(W word) {
  return word >> 16;
}

}  // namespace cautious::CAUTIOUS_ISA
