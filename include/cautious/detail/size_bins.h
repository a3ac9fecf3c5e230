// Bins of size: numbers whose exponent and first three bits after the point agree (docs/spec.md, section 10).
#pragma once

#include <cstdint>

#include <cautious/detail/scalar.h>

namespace cautious {

// Bin 0 is zero; the next seven are empty; the last eight are infinities and NaN.
inline constexpr std::uint32_t kSizeBins = 2048;

namespace CAUTIOUS_ISA {

// From the upper 32 bits of a number of type T. W is a 32-bit word, or a tensor of such words. An f64 outside f32's exponents
// is in the bin next to them.
template <class T, class W>
inline W size_bin(W high) {
  const W bits = high & 0x7fffffffu;
  if constexpr (sizeof(T) == sizeof(float)) {
    const W bin = bits >> 20;
    return select(bin < 8u, bin & 0u, bin);
  } else {
    constexpr std::uint32_t kBelow = 8 * (1023 - 127);
    const W bin = bits >> 17, zero = bin & 0u, near = bin + (0u - kBelow);
    return select(bin < 8u, zero,
                  select(bin < kBelow + 8u, zero + 8u, select(bin > kBelow + (kSizeBins - 1u), zero + (kSizeBins - 1u), near)));
  }
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
