// Counter-based random bits: a pure function of (key, coordinate), so any chunking gives the same ones.
#pragma once

#include <cstdint>

#include <cautious/detail/scalar.h>

#include "kernels/kernels.h"

namespace cautious::CAUTIOUS_ISA {

// The part that is the same for all coordinates of a tile (tiles never straddle a multiple of 2^32).
inline std::uint32_t tile_salt(kernels::Stream s, std::uint64_t first) {
  return s.k1 + static_cast<std::uint32_t>(first >> 32) * 0x85ebca6bu;
}

inline std::uint32_t random_bits(std::uint32_t k0, std::uint32_t salt, std::uint32_t index) {
  std::uint32_t z = (index ^ k0) * 0x9e3779b1u;
  z ^= z >> 15;
  z += salt;
  z ^= z >> 16;
  z *= 0x7feb352du;
  z ^= z >> 15;
  z *= 0x846ca68bu;
  return z ^ (z >> 16);
}

}  // namespace cautious::CAUTIOUS_ISA
