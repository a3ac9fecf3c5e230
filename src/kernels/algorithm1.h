// Algorithm 1, the only place: x <- x - lr (u + wd [on] x). And its loop over a tile, with what the step report counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cautious/decays.h>
#include <cautious/detail/scalar.h>

#include "kernels/kernels.h"
#include "kernels/random_bits.h"

namespace cautious::CAUTIOUS_ISA {

// A parameter after the step, and what decay shrank of it.
template <class V>
struct Moved {
  V x, shrunk;
};

// Of numbers or of tensors. The selected value is the loaded one: selecting a product keeps GCC from vectorizing.
template <class T, class V, class On>
inline Moved<V> algorithm1(T lr, T wd, V x, V u, V pull, On on) {
  const V shrunk = select(on, pull, T(0));
  return {fma(-lr, fma(wd, shrunk, u), x), shrunk};
}

// Selective projection decay, the one policy that is not of Algorithm 1's form: x <- y - k (y - x0) with y = x - lr u and
// k = wd r, which the caller has resolved for the whole tensor.
template <class T, class V, class K>
inline Moved<V> project(T lr, K k, V x, V u, V x0) {
  const V y = fma(-lr, u, x);
  const V away = y - x0;
  return {fma(-k, away, y), away};
}

// Counts and sums over a tile. Sums go over fixed lanes: vectorized, and the same bits in every instruction set.

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

// Stage 2 over a tile.

template <class T, class D, class Whole>
auto ready_mask(const D& decay, const Whole& seen) {
  if constexpr (kLooksFirst<D>) {
    return mask<T>(decay, seen);
  } else {
    return mask<T>(decay);
  }
}

template <class D, class T>
using MaskOf = decltype(ready_mask<T>(D{}, kernels::SeenNumbers{}));

template <class D, bool sums, bool momentum, class T, class N>
inline void apply_tile(const kernels::Terms<T>& terms, const T* __restrict u, const T* __restrict g, T* __restrict x,
                       const T* __restrict x0, const T* __restrict m, std::uint64_t start, N n, kernels::Counted& counted) {
  const T lr = terms.lr, wd = terms.wd;
  const MaskOf<D, T> decays = *reinterpret_cast<const MaskOf<D, T>*>(terms.decay.bytes);
  const std::uint32_t salt = tile_salt(terms.chance, start);
  const auto first = static_cast<std::uint32_t>(start);
  T kept[kernels::kTile];
  if constexpr (sums) add_squares(u, g, x, n, counted);

  Count<T> decayed = 0, active = 0, largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T pull = kAnchored<D> ? x[i] - x0[i] : x[i];
    Lane<T, std::int32_t> lane{u[i], g[i], pull, 0, momentum ? m[i] : u[i]};
    if constexpr (kRandom<D>) {
      lane.chance = static_cast<std::int32_t>(random_bits(terms.chance, salt, first + static_cast<std::uint32_t>(i)) >> 8);
    }
    const bool on = decays(lane);
    const Moved<T> moved = algorithm1(lr, wd, x[i], u[i], pull, on);
    x[i] = moved.x;
    decayed += on;
    active += signed_product(u[i], pull) > 0;
    if constexpr (sums) {
      kept[i] = moved.shrunk;
    } else {
      const Count<T> magnitude = magnitude_of(g[i]);
      largest = magnitude > largest ? magnitude : largest;
    }
  }
  counted.decayed += decayed;
  counted.active += active;
  if constexpr (sums) {
    counted.pull += sum_abs(kept, n);
  } else if (!is_finite<T>(largest)) {
    counted.nonfinite += count_nonfinite(g, n);
  }
}

template <bool sums, class T, class N>
inline void project_tile(const kernels::Terms<T>& terms, const T* __restrict u, const T* __restrict g, T* __restrict x,
                         const T* __restrict x0, N n, kernels::Counted& counted) {
  const T lr = terms.lr, k = terms.wd;
  T kept[kernels::kTile];
  if constexpr (sums) add_squares(u, g, x, n, counted);

  Count<T> active = 0;
  for (std::size_t i = 0; i < n; ++i) {
    active += signed_product(u[i], x[i] - x0[i]) > 0;
    const Moved<T> moved = project(lr, k, x[i], u[i], x0[i]);
    x[i] = moved.x;
    kept[i] = moved.shrunk;
  }
  if (k > 0) {
    counted.decayed += static_cast<std::int64_t>(n);
    if constexpr (sums) counted.pull += sum_abs(kept, n);
  }
  counted.active += active;
  if constexpr (!sums) counted.nonfinite += count_nonfinite(g, n);
}

}  // namespace cautious::CAUTIOUS_ISA
