// What the step report sees, beside the step: counts, and sums over the sixteen columns of a tile's rows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "kernels/kernels.h"
#include "kernels/pack.h"
#include "kernels/rows.h"

namespace cautious::CAUTIOUS_ISA {

// One more in the lanes that a mask marks. (AVX-512 does it in one instruction, from a condition.)
template <class Bits, class On>
[[gnu::always_inline]] inline Bits counted(Bits count, On on) {
  if constexpr (kBytes == 64) {
    return on.of ? count + 1 : count;
  } else {
    return count - on.of;
  }
}

// A number per column.
template <class T>
struct Columns {
  Pack<T> packs[kPacks<T>] = {};
};

// Column k and column k + 8 first, then k and k + 4, then the four left in double.
template <class T>
[[gnu::always_inline]] inline double total(Columns<T> columns) {
  constexpr std::size_t kLeft = 4;
  T left[kLeft > Pack<T>::kLanes ? kLeft : Pack<T>::kLanes];
  unrolled<kPacks<T> / 2>([&](auto k) { columns.packs[k] = columns.packs[k] + columns.packs[k + kPacks<T> / 2]; });
  if constexpr (kPacks<T> >= 4 && Pack<T>::kLanes <= kLeft) {
    unrolled<kPacks<T> / 4>([&](auto k) { columns.packs[k] = columns.packs[k] + columns.packs[k + kPacks<T> / 4]; });
  }
  unrolled<(kLeft > Pack<T>::kLanes ? kLeft / Pack<T>::kLanes : 1)>(
      [&](auto k) { __builtin_memcpy(left + k * Pack<T>::kLanes, &columns.packs[k], sizeof(Pack<T>)); });
  for (std::size_t lanes = Pack<T>::kLanes / 2; lanes >= kLeft; lanes /= 2) {
    for (std::size_t k = 0; k < lanes; ++k) left[k] += left[k + lanes];
  }
  return (static_cast<double>(left[0]) + static_cast<double>(left[2])) +
         (static_cast<double>(left[1]) + static_cast<double>(left[3]));
}

// At the gradients.
template <class T, bool sums>
class GradientLook {
 public:
  // Without sums, a product with zero shows whether a gradient is finite.
  template <class Column>
  [[gnu::always_inline]] void at(Column k, Pack<T> g) {
    g2_.packs[k] = fma(g, sums ? g : all<T>(0), g2_.packs[k]);
  }

  // Adds the sums of one tile and begins anew.
  [[gnu::always_inline]] void end_tile(kernels::Counted& counted) {
    if constexpr (sums) {
      counted.g2 += total(g2_);
      g2_ = {};
    }
  }

  // Adds the number of those among n that are not finite: counted only if the sum is odd, which is also that of a number too
  // large to be squared.
  template <class Load>
  void end(kernels::Counted& counted, std::size_t n, Load value_at) const {
    if ((sums ? counted.g2 : total(g2_)) <= __DBL_MAX__) return;
    for (std::size_t i = 0; i < n; ++i) counted.nonfinite += !(abs(value_at(i)) < static_cast<T>(__builtin_inf()));
  }

 private:
  Columns<T> g2_;
};

// At the parameters, under a decay whose mask is `On`: a Mask, an Unless, or the same for all.
template <class T, bool sums, class On>
class ParameterLook {
 public:
  template <class At, class Column>
  [[gnu::always_inline]] void at(At at, Column k, Pack<T> x, Pack<T> u, Pack<T> shrunk, On on, Mask<T> active) {
    active_[k] = counted(active_[k], at.there(active));
    if constexpr (!std::is_same_v<On, bool>) masked_[k] = counted(masked_[k], at.there(on));
    if constexpr (sums) {
      sums_.x2.packs[k] = fma(x, x, sums_.x2.packs[k]);
      sums_.u2.packs[k] = fma(u, u, sums_.u2.packs[k]);
      sums_.pull.packs[k] = sums_.pull.packs[k] + abs(shrunk);
    }
  }

  [[gnu::always_inline]] void end_tile(kernels::Counted& counted) {
    if constexpr (sums) {
      counted.x2 += total(sums_.x2);
      counted.u2 += total(sums_.u2);
      counted.pull += total(sums_.pull);
      sums_ = {};
    }
  }

  // Adds the counts of n coordinates; `everywhere`: if the mask is the same for all.
  void end(kernels::Counted& counted, std::size_t n, bool everywhere) const {
    auto masked = masked_[0], active = active_[0];
    for (std::size_t k = 1; k < kPacks<T>; ++k) masked += masked_[k], active += active_[k];
    auto marked = masked[0], alive = active[0];
    for (std::size_t k = 1; k < Pack<T>::kLanes; ++k) marked += masked[k], alive += active[k];
    counted.active += alive;
    const auto all_of_them = static_cast<std::int64_t>(n);
    if constexpr (std::is_same_v<On, bool>) {
      counted.decayed += everywhere ? all_of_them : 0;
    } else {
      counted.decayed += std::is_same_v<On, Unless<T>> ? all_of_them - marked : marked;
    }
  }

 private:
  typename Register<T>::Bits masked_[kPacks<T>] = {}, active_[kPacks<T>] = {};
  struct Sums {
    Columns<T> x2, u2, pull;
  };
  struct Nothing {};
  [[no_unique_address]] std::conditional_t<sums, Sums, Nothing> sums_ = {};
};

}  // namespace cautious::CAUTIOUS_ISA
