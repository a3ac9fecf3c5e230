// Algorithm 1, the only place: x <- x - lr (u + wd [on] x), with what the step report counts on the way.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cautious/decays.h>
#include <cautious/detail/scalar.h>

#include "kernels/random_bits.h"
#include "kernels/sums.h"

namespace cautious::CAUTIOUS_ISA {

// The selected value is the loaded one: selecting a product instead keeps GCC from vectorizing.
template <class D, bool sums, class T, class N>
inline void algorithm1(const kernels::Terms<T>& terms, const T* __restrict u, const T* __restrict g, T* __restrict x,
                       const T* __restrict x0, std::uint64_t start, N n, kernels::Counted& counted) {
  const T lr = terms.lr, wd = terms.wd;
  const std::uint32_t salt = tile_salt(terms.chance, start);
  const auto first = static_cast<std::uint32_t>(start);
  T kept[kernels::kTile];
  if constexpr (sums) add_squares(u, g, x, n, counted);

  Count<T> decayed = 0, active = 0, largest = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T pull = kAnchored<D> ? x[i] - x0[i] : x[i];
    Lane<T> lane{u[i], g[i], pull, 0, 0};
    if constexpr (kRandom<D>) {
      lane.chance = static_cast<std::int32_t>(random_bits(terms.chance.k0, salt, first + static_cast<std::uint32_t>(i)) >> 8);
      lane.odds = terms.odds;
    }
    const bool on = decays(D{}, lane);
    const T shrunk = on ? pull : T(0);
    x[i] = fma(-lr, fma(wd, shrunk, u[i]), x[i]);
    decayed += on;
    active += signed_product(u[i], pull) > 0;
    if constexpr (sums) {
      kept[i] = shrunk;
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

// Selective projection decay, the one policy that is not of Algorithm 1's form; the caller has resolved k = wd r per tensor.
template <bool sums, class T, class N>
inline void project(const kernels::Terms<T>& terms, const T* __restrict u, const T* __restrict g, T* __restrict x,
                    const T* __restrict x0, N n, kernels::Counted& counted) {
  const T lr = terms.lr, k = terms.wd;
  T kept[kernels::kTile];
  if constexpr (sums) add_squares(u, g, x, n, counted);

  Count<T> active = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const T y = fma(-lr, u[i], x[i]);
    const T away = y - x0[i];
    active += signed_product(u[i], x[i] - x0[i]) > 0;
    x[i] = fma(-k, away, y);
    kept[i] = away;
  }
  if (k > 0) {
    counted.decayed += static_cast<std::int64_t>(n);
    if constexpr (sums) counted.pull += sum_abs(kept, n);
  }
  counted.active += active;
  if constexpr (!sums) counted.nonfinite += count_nonfinite(g, n);
}

}  // namespace cautious::CAUTIOUS_ISA
