// Algorithm 1, the only place: x <- x - lr (u + wd [on] x).
#pragma once

#include <cautious/decays.h>
#include <cautious/detail/scalar.h>

namespace cautious::CAUTIOUS_ISA {

// A parameter after the step, and what decay shrank of it.
template <class V>
struct Moved {
  V x, shrunk;
};

// Of numbers, of packs of them or of tensors.
template <class T, class V, class On>
CAUTIOUS_DEVICE inline Moved<V> algorithm1(T lr, T wd, V x, V u, V pull, On on) {
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

// The mask of a decay, with what it has seen of the whole tensor if it looks at that first.
template <class T, class D, class Whole>
auto ready_mask(const D& decay, const Whole& seen) {
  if constexpr (kLooksFirst<D>) {
    return mask<T>(decay, seen);
  } else {
    return mask<T>(decay);
  }
}

}  // namespace cautious::CAUTIOUS_ISA
