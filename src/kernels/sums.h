// Counts and sums over a tile. Sums go over fixed lanes: vectorized, and the same bits in every instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cautious/detail/scalar.h>

#include "kernels/kernels.h"

namespace cautious::CAUTIOUS_ISA {

inline std::int32_t bits_of(float a) { return __builtin_bit_cast(std::int32_t, a); }
inline std::int64_t bits_of(double a) { return __builtin_bit_cast(std::int64_t, a); }

// An integer as wide as T, so that counts live in the same vector lanes.
template <class T>
using Count = decltype(bits_of(T()));

// The bits without the sign: ordered like the absolute values, with NaN above infinity.
template <class T>
inline Count<T> magnitude_of(T a) {
  return bits_of(a) & ~(Count<T>(1) << (8 * sizeof(T) - 1));
}

template <class T>
inline bool is_finite(Count<T> magnitude) {
  return magnitude < bits_of(static_cast<T>(__builtin_inf()));
}

template <class T>
inline std::int64_t count_nonfinite(const T* p, std::size_t n) {
  std::int64_t count = 0;
  for (std::size_t i = 0; i < n; ++i) count += !is_finite<T>(magnitude_of(p[i]));
  return count;
}

// Sum of terms over a full tile in type S. Coordinate i belongs to lane i mod 32; each lane adds in order, and lanes are added
// pairwise, so that the bits do not depend on the vector width.
template <class S, class T, class Term>
inline double sum_lanes(const T* p, Term add_term) {
  constexpr std::size_t kLanes = 32;
  S lane[kLanes];
  for (std::size_t k = 0; k < kLanes; ++k) {
    S sum = 0;
    for (std::size_t i = 0; i < kernels::kTile; i += kLanes) sum = add_term(sum, static_cast<S>(p[i + k]));
    lane[k] = sum;
  }
  for (std::size_t k = 0; k < 16; ++k) lane[k] += lane[k + 16];
  double total[8];
  for (std::size_t k = 0; k < 8; ++k) total[k] = lane[k] + lane[k + 8];
  return ((total[0] + total[4]) + (total[2] + total[6])) + ((total[1] + total[5]) + (total[3] + total[7]));
}

// In T first, which is four times faster than in double from f32; again in double where squares may have left f32's range.
template <class T, class Term>
inline double sum_tile(const T* p, Term add_term) {
  const double fast = sum_lanes<T>(p, add_term);
  if (sizeof(T) == sizeof(double) || (fast > 0x1p-80 && fast < 0x1p120)) return fast;
  return sum_lanes<double>(p, add_term);
}

struct AddSquare {
  template <class S>
  S operator()(S sum, S value) const {
    return fma(value, value, sum);
  }
};

template <class T>
inline double sum_squares(const T* p) {
  return sum_tile(p, AddSquare{});
}

template <class T>
inline double sum_abs(const T* p) {
  return sum_tile(p, [](auto sum, auto value) { return sum + abs(value); });
}

// A shorter tile is filled up with zeros, which add nothing.
template <class T>
struct FilledUp {
  FilledUp(const T* p, std::size_t n) {
    for (std::size_t i = 0; i < n; ++i) tile[i] = p[i];
  }
  T tile[kernels::kTile] = {};
};

template <class T>
inline double sum_squares(const T* p, std::size_t n) {
  return n == kernels::kTile ? sum_squares(p) : sum_squares(FilledUp<T>(p, n).tile);
}

template <class T>
inline double sum_abs(const T* p, std::size_t n) {
  return n == kernels::kTile ? sum_abs(p) : sum_abs(FilledUp<T>(p, n).tile);
}

// In double throughout, for the norm that gradients are clipped by.
template <class T>
inline double exact_sum_squares(const T* p, std::size_t n) {
  return sum_lanes<double>(FilledUp<T>(p, n).tile, AddSquare{});
}

// Squares of x, g and u before the step. A tile whose gradient has a finite sum has no non-finite entry to count.
template <class T>
inline void add_squares(const T* u, const T* g, const T* x, std::size_t n, kernels::Counted& counted) {
  const double g2 = sum_squares(g, n);
  if (!(g2 <= __DBL_MAX__)) counted.nonfinite += count_nonfinite(g, n);
  counted.x2 += sum_squares(x, n);
  counted.g2 += g2;
  counted.u2 += sum_squares(u, n);
}

}  // namespace cautious::CAUTIOUS_ISA
