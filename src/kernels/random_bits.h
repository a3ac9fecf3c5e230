// Counter-based random bits: a pure function of (key, coordinate), so any chunking gives the same ones.
#pragma once

#include <cstdint>

#include <cautious/detail/scalar.h>

#include "kernels/kernels.h"

namespace cautious::CAUTIOUS_ISA {

// W is a 32-bit word with arithmetic modulo 2^32, or a tensor of such words. `high` is the upper half of the coordinate's
// index.
template <class W>
inline W random_salt(kernels::Stream stream, W high) {
  return high * 0x85ebca6bu + stream.k1;
}

// `index` is the lower half.
template <class W>
inline W random_bits(kernels::Stream stream, W salt, W index) {
  W z = (index ^ stream.k0) * 0x9e3779b1u;
  z = (z ^ (z >> 15)) + salt;
  z = (z ^ (z >> 16)) * 0x7feb352du;
  z = (z ^ (z >> 15)) * 0x846ca68bu;
  return z ^ (z >> 16);
}

// The salt is the same for all coordinates of a tile: tiles never straddle a multiple of 2^32.
inline std::uint32_t tile_salt(kernels::Stream stream, std::uint64_t first) {
  return random_salt(stream, static_cast<std::uint32_t>(first >> 32));
}

}  // namespace cautious::CAUTIOUS_ISA
