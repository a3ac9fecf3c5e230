// Stage 2: moves the parameters of a pack, or of a tile whose direction is ready.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/algorithm1.h"
#include "kernels/kernels.h"
#include "kernels/look.h"
#include "kernels/pack.h"
#include "kernels/random_bits.h"
#include "kernels/rows.h"
#include "kernels/words.h"

namespace cautious::CAUTIOUS_ISA {

template <class D, class T>
using MaskOf = decltype(ready_mask<T>(D{}, kernels::SeenNumbers{}));

// A direction whose entries are 1, -1, 0 or NaN: its product with a number shows the sign by itself.
template <class V>
struct Unit {
  V of;
};
template <class V>
inline V signed_product(Unit<V> a, V x) {
  return a.of * x;
}

template <class D, class T>
using OnOf = decltype(std::declval<MaskOf<D, T>>()(std::declval<Lane<Pack<T>, Words<T>>>()));

// Whether it decays, of a mask that is the same for all.
template <class D, class T>
inline bool everywhere(const MaskOf<D, T>& decays) {
  if constexpr (std::is_same_v<OnOf<D, T>, bool>) return decays(Lane<Pack<T>, Words<T>>{});
  return false;
}

// `direction` is u, or u as a Unit.
template <class T, class At, class Column, class Decays, class Direction, class By, class Look>
[[gnu::always_inline]] inline Pack<T> moved(At at, Column column, T lr, T wd, const Decays& decays, Pack<T> x,
                                            Direction direction, const Lane<Pack<T>, Words<T>, By>& lane, Look& look) {
  const auto on = decays(lane);
  const Moved<Pack<T>> moved = algorithm1(lr, wd, x, lane.u, lane.pull, on);
  look.at(at, column, x, lane.u, moved.shrunk, on, signed_product(direction, lane.pull) > 0);
  return moved.x;
}

template <class D, bool sums, bool momentum, class T>
void apply(const kernels::Terms<T>& terms, const kernels::Streams<T>& s, std::size_t n, kernels::Counted& counted) {
  const MaskOf<D, T> decays = *reinterpret_cast<const MaskOf<D, T>*>(terms.decay.bytes);
  const Words<T> salt = all_words<T>(tile_salt(terms.chance, s.first));
  const auto first = static_cast<std::uint32_t>(s.first);
  GradientLook<T, sums> gradients;
  ParameterLook<T, sums, OnOf<D, T>> parameters;
  each_pack<T>(n, [&](auto at, std::size_t i, auto column) {
    const Pack<T> u = at.load(s.u + i), g = at.load(s.g + i), x = at.load(static_cast<const T*>(s.x) + i);
    Pack<T> pull = x, by = u;
    if constexpr (kAnchored<D>) pull = x - at.load(s.x0 + i);
    if constexpr (momentum) by = at.load(s.m + i);
    Lane<Pack<T>, Words<T>> lane{u, g, pull, {}, by};
    if constexpr (kRandom<D>) {
      lane.chance = random_bits(terms.chance, salt, lane_numbers<T>() + (first + static_cast<std::uint32_t>(i))) >> 8;
    }
    gradients.at(column, g);
    at.store(s.x + i, moved(at, column, terms.lr, terms.wd, decays, x, u, lane, parameters));
  });
  gradients.end_tile(counted);
  parameters.end_tile(counted);
  gradients.end(counted, n, [&](std::size_t i) { return s.g[i]; });
  parameters.end(counted, n, everywhere<D, T>(decays));
}

template <bool sums, class T>
void apply_projection(const kernels::Terms<T>& terms, const kernels::Streams<T>& s, std::size_t n, kernels::Counted& counted) {
  const bool on = terms.wd > 0;
  GradientLook<T, sums> gradients;
  ParameterLook<T, sums, bool> parameters;
  each_pack<T>(n, [&](auto at, std::size_t i, auto column) {
    const Pack<T> u = at.load(s.u + i), x = at.load(static_cast<const T*>(s.x) + i), x0 = at.load(s.x0 + i);
    const Moved<Pack<T>> moved = project(terms.lr, terms.wd, x, u, x0);
    gradients.at(column, at.load(s.g + i));
    parameters.at(at, column, x, u, select(on, moved.shrunk, 0), on, signed_product(u, x - x0) > 0);
    at.store(s.x + i, moved.x);
  });
  gradients.end_tile(counted);
  parameters.end_tile(counted);
  gradients.end(counted, n, [&](std::size_t i) { return s.g[i]; });
  parameters.end(counted, n, on);
}

}  // namespace cautious::CAUTIOUS_ISA
