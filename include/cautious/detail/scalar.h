// The vocabulary of formulas. A rule, a mask or a function K is written once in these words and compiled for numbers (float or
// double, per instruction set) and for whole tensors of libtorch (src/torch/aten.h has the same words for them).
// For numbers: explicit fused multiply-add and nothing that a compiler may contract or reorder, so that every instruction set
// gives the same bits. T is the compute type, float or double, also the type of coefficients; V is a value: T or a tensor of T.
// CUDA would be one more file, compiled with CAUTIOUS_ISA=cuda and these functions as __host__ __device__: numbers again, and a
// table like that of src/kernels/kernels.cc whose entries start a thread per coordinate instead of a loop.
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
inline double pow(double a, double b) { return __builtin_pow(a, b); }
inline double hypot(double a, double b) { return __builtin_hypot(a, b); }

// A value in another compute type.
template <class T>
inline T as(float a) {
  return static_cast<T>(a);
}
template <class T>
inline T as(double a) {
  return static_cast<T>(a);
}

template <class T>
inline T select(bool on, T yes, T no) {
  return on ? yes : no;
}

// As select, of two computations: a number does only one of them, a tensor does both.
template <class Yes, class No>
inline auto either(bool on, Yes yes, No no) {
  return on ? yes() : no();
}

// sign(0) = 0 with its sign kept, sign(NaN) = NaN.
inline float sign(float z) { return z > 0 ? 1.0f : z < 0 ? -1.0f : z; }
inline double sign(double z) { return z > 0 ? 1.0 : z < 0 ? -1.0 : z; }

// NaN stays NaN.
template <class T>
inline T clamp(T z, T low, T high) {
  return z < low ? low : high < z ? high : z;
}

// beta * m + (1 - beta) * g with `rest` = 1 - beta rounded once from double.
template <class V, class T>
inline V mix(V m, V g, T beta, T rest) {
  return fma(beta, m, rest * g);
}

// A number with the sign of the exact product a * x: zero only if a or x is zero, never by underflow, since the scaled a is at
// least 1 or infinite. Two multiplications and no branch. (Inside a step denormals count as zero.)
template <class V>
inline V signed_product(V a, V x) {
  return (a * (1 / kSmallest<V>)) * x;
}

// The upper 32 bits of a number as it is stored.
inline std::uint32_t high_word(float a) { return __builtin_bit_cast(std::uint32_t, a); }
inline std::uint32_t high_word(double a) { return static_cast<std::uint32_t>(__builtin_bit_cast(std::uint64_t, a) >> 32); }

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

}  // namespace cautious::CAUTIOUS_ISA
