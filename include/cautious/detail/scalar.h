// The vocabulary of formulas. A rule, a mask or a function K is written once in these words and compiled for numbers (float or
// double, per instruction set) and for whole tensors of libtorch (src/torch/aten.h has the same words for them).
// For numbers: explicit fused multiply-add and nothing that a compiler may contract or reorder, so that every instruction set
// gives the same bits. T is the compute type, float or double, also the type of coefficients; V is a value: T or a tensor of T.
// CUDA is one more instruction set with a thread per coordinate (src/kernels/grid.h). There these functions carry
// CAUTIOUS_DEVICE; the lambdas of rules and decays need no mark, being implicitly constexpr.
#pragma once

#include <cstdint>

// The namespace that formulas are compiled into: each instruction set has its own, so that the linker never merges a function
// built for one CPU with the same function built for another. Code outside src/kernels sees `portable`.
#ifndef CAUTIOUS_ISA
#define CAUTIOUS_ISA portable
#endif

// For the host and for a device of CUDA; nothing under other compilers.
#ifdef __CUDACC__
#define CAUTIOUS_DEVICE __host__ __device__
#else
#define CAUTIOUS_DEVICE
#endif

namespace cautious::CAUTIOUS_ISA {

// The smallest normal number.
template <class T>
inline constexpr T kSmallest = sizeof(T) == sizeof(float) ? T(0x1p-126) : T(0x1p-1022);

CAUTIOUS_DEVICE inline float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
CAUTIOUS_DEVICE inline double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
CAUTIOUS_DEVICE inline float sqrt(float a) { return __builtin_sqrtf(a); }
CAUTIOUS_DEVICE inline double sqrt(double a) { return __builtin_sqrt(a); }
CAUTIOUS_DEVICE inline float abs(float a) { return __builtin_fabsf(a); }
CAUTIOUS_DEVICE inline double abs(double a) { return __builtin_fabs(a); }
CAUTIOUS_DEVICE inline double pow(double a, double b) { return __builtin_pow(a, b); }
CAUTIOUS_DEVICE inline double hypot(double a, double b) { return __builtin_hypot(a, b); }

// A value in another compute type.
template <class T>
CAUTIOUS_DEVICE inline T as(float a) {
  return static_cast<T>(a);
}
template <class T>
CAUTIOUS_DEVICE inline T as(double a) {
  return static_cast<T>(a);
}

template <class T>
CAUTIOUS_DEVICE inline T select(bool on, T yes, T no) {
  return on ? yes : no;
}

// As select, of two computations: a number does only one of them, a tensor does both.
template <class Yes, class No>
CAUTIOUS_DEVICE inline auto either(bool on, Yes yes, No no) {
  return on ? yes() : no();
}

// sign(0) = 0 with its sign kept, sign(NaN) = NaN.
CAUTIOUS_DEVICE inline float sign(float z) { return z > 0 ? 1.0f : z < 0 ? -1.0f : z; }
CAUTIOUS_DEVICE inline double sign(double z) { return z > 0 ? 1.0 : z < 0 ? -1.0 : z; }

// NaN stays NaN.
template <class T>
CAUTIOUS_DEVICE inline T clamp(T z, T low, T high) {
  return z < low ? low : high < z ? high : z;
}

// beta * m + (1 - beta) * g with `rest` = 1 - beta rounded once from double.
template <class V, class T>
CAUTIOUS_DEVICE inline V mix(V m, V g, T beta, T rest) {
  return fma(beta, m, rest * g);
}

// A direction in two parts, so that a loop can do something else before it goes on with what takes long (src/kernels/walk.h):
// begin(g, m, v) moves the moments on, end(of that, m) makes u.
template <class Begin, class End>
struct InTwoParts {
  Begin begin;
  End end;
  template <class V>
  CAUTIOUS_DEVICE V operator()(V g, V& m, V& v) const {
    const V begun = begin(g, m, v);  // a statement of its own: arguments may be read in any order, m before it has moved
    return end(begun, m);
  }
};
template <class Begin, class End>
InTwoParts(Begin, End) -> InTwoParts<Begin, End>;

// A number with the sign of the exact product a * x: zero only if a or x is zero, never by underflow, since the scaled a is at
// least 1 or infinite. Two multiplications and no branch. (Inside a step denormals count as zero.)
template <class V>
CAUTIOUS_DEVICE inline V signed_product(V a, V x) {
  return (a * (1 / kSmallest<V>)) * x;
}

// The upper 32 bits of a number as it is stored.
CAUTIOUS_DEVICE inline std::uint32_t high_word(float a) { return __builtin_bit_cast(std::uint32_t, a); }
CAUTIOUS_DEVICE inline std::uint32_t high_word(double a) {
  return static_cast<std::uint32_t>(__builtin_bit_cast(std::uint64_t, a) >> 32);
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

}  // namespace cautious::CAUTIOUS_ISA
