// Scalar arithmetic of the formulas: explicit fused multiply-add and nothing else that a compiler may contract or reorder, so
// that every instruction set gives the same bits.
#pragma once

#include <cstdint>

#include <cautious/isa.h>

namespace cautious::CAUTIOUS_ISA {

// The smallest normal number.
template <class T>
inline constexpr T kSmallest = sizeof(T) == sizeof(float) ? T(0x1p-126) : T(0x1p-1022);

inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
inline float sqrt(float a) { return __builtin_sqrtf(a); }
inline double sqrt(double a) { return __builtin_sqrt(a); }
inline float abs(float a) { return __builtin_fabsf(a); }
inline double abs(double a) { return __builtin_fabs(a); }

// beta * m + (1 - beta) * g with `rest` = 1 - beta rounded once from double.
template <class T>
inline T mix(T m, T g, T beta, T rest) {
  return fma(beta, m, rest * g);
}

// sign(0) = 0 with its sign kept, sign(NaN) = NaN.
template <class T>
inline T sign(T z) {
  return z > 0 ? T(1) : z < 0 ? T(-1) : z;
}

// base^t by squaring: the same bits everywhere, unlike libm's pow.
inline double power(double base, std::int64_t t) {
  double result = 1;
  for (; t > 0; t >>= 1, base *= base) {
    if (t & 1) result *= base;
  }
  return result;
}

// Bias correction 1 / (1 - beta^t).
inline double unbias(double beta, std::int64_t t) { return 1 / (1 - power(beta, t)); }

inline std::int32_t bits_of(float a) { return __builtin_bit_cast(std::int32_t, a); }
inline std::int64_t bits_of(double a) { return __builtin_bit_cast(std::int64_t, a); }

// The sign of the exact product a * x, from the bits: no underflow, a denormal has a sign, a zero of either sign has none.
// positive(a, x, 0) if the product is positive, positive(a, x, kSignBit) if it is negative. One comparison and no
// multiplication: two joined comparisons would cost a quarter more in cache, and the multipliers are busy.
template <class Bits>
inline constexpr Bits kSignBit = Bits(1) << (8 * sizeof(Bits) - 1);

template <class Bits>
inline bool positive(Bits a, Bits x, Bits flip) {
  const Bits product = a ^ ((x ^ flip) & kSignBit<Bits>);
  const Bits magnitude = x & ~kSignBit<Bits>;
  return (product < magnitude ? product : magnitude) > 0;
}
template <class T>
inline bool opposite_signs(T a, T x) {
  return positive(bits_of(a), bits_of(x), kSignBit<decltype(bits_of(x))>);
}
template <class T>
inline bool equal_signs(T a, T x) {
  return positive(bits_of(a), bits_of(x), decltype(bits_of(x))(0));
}

}  // namespace cautious::CAUTIOUS_ISA
