// Scalar arithmetic of the formulas: explicit fused multiply-add and nothing else that a compiler may contract or reorder, so
// that every instruction set gives the same bits.
#pragma once

#include <cstdint>

// The namespace that formulas are compiled into: each instruction set has its own, so that the linker never merges a function
// built for one CPU with the same function built for another. Code outside src/kernels sees `portable`.
#ifndef CAUTIOUS_ISA
#define CAUTIOUS_ISA portable
#endif

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

// A number with the sign of the exact product a * x: zero only if a or x is zero, never by underflow, since the scaled a is at
// least 1 or infinite. Two multiplications and no branch. (Inside a step denormals count as zero.)
template <class T>
inline T signed_product(T a, T x) {
  return (a * (1 / kSmallest<T>)) * x;
}

}  // namespace cautious::CAUTIOUS_ISA
