// Algorithm 1, the only place: x <- x - lr (u + wd [on] x); and its loop over a tile, with what the step report counts.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cautious/decays.h>
#include <cautious/detail/scalar.h>

#include "kernels/random_bits.h"
#include "kernels/sums.h"

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

template <class D, class T>
using MaskOf = decltype(mask<T>(D{}));

template <class D, bool sums, class T, class N>
inline void apply_tile(const kernels::Terms<T>& terms, const T* __restrict u, const T* __restrict g, T* __restrict x,
                       const T* __restrict x0, std::uint64_t start, N n, kernels::Counted& counted) {
  const T lr = terms.lr, wd = terms.wd;
  const MaskOf<D, T> decays = *reinterpret_cast<const MaskOf<D, T>*>(terms.decay.bytes);
  const std::uint32_t salt = tile_salt(terms.chance, start);
  const auto first = static_cast<std::uint32_t>(start);
  T kept[kernels::kTile];
  if constexpr (sums) add_squares(u, g, x, n, counted);

  Count<T> decayed = 0, active = 0, largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T pull = kAnchored<D> ? x[i] - x0[i] : x[i];
    Lane<T, std::int32_t> lane{u[i], g[i], pull, 0};
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
