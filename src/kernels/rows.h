// Walks coordinates pack by pack. Sixteen of them are a row, whatever the width of a register: sums go over the sixteen columns
// of the rows, so that their bits do not depend on the instruction set.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "kernels/pack.h"
#include "kernels/words.h"

namespace cautious::CAUTIOUS_ISA {

inline constexpr std::size_t kColumns = 16;

// How many packs a row has.
template <class T>
inline constexpr std::size_t kPacks = kColumns / Pack<T>::kLanes;

// A compile-time index.
template <std::size_t value>
using Index = std::integral_constant<std::size_t, value>;

template <std::size_t count, class Body>
[[gnu::always_inline]] inline void unrolled(Body body) {
  [&]<std::size_t... k>(std::index_sequence<k...>) __attribute__((always_inline)) { (body(Index<k>{}), ...); }
  (std::make_index_sequence<count>{});
}

// A vector anywhere in memory, of whatever type. (Copied by memcpy, it may take a way through the stack.)
template <class Vector>
struct [[gnu::packed, gnu::may_alias]] Anywhere {
  Vector of;
};
template <class Vector>
inline Vector vector_at(const void* from) {
  return static_cast<const Anywhere<Vector>*>(from)->of;
}
template <class Vector>
inline void put(void* to, Vector vector) {
  static_cast<Anywhere<Vector>*>(to)->of = vector;
}

// A pack in memory, of which all lanes are there.
struct Full {
  template <class T>
  Pack<T> load(const T* from) const {
    return {vector_at<typename Register<T>::Numbers>(from)};
  }
  template <class T>
  void store(T* to, Pack<T> pack) const {
    put(to, pack.of);
  }
  Pack<double> load_double(const double* from) const { return load(from); }
  Pack<double> load_double(const float* from) const {
    using Narrow [[gnu::vector_size(kBytes / 2)]] = float;
    return {__builtin_convertvector(vector_at<Narrow>(from), F64)};
  }
  Words<float> load(const std::uint32_t* from) const { return {vector_at<U32>(from)}; }
  // 16 bits of memory as a word, and back; such a word is below 2^16.
  Words<float> load(const std::uint16_t* from) const { return {wide(vector_at<U16>(from))}; }
  void store(std::uint16_t* to, Words<float> words) const { put(to, narrow(words.of)); }
  template <class On>
  On there(On on) const {
    return on;
  }
};

// The last pack, of which only the first lanes are there; the others are zeros.
struct Part {
  std::size_t lanes;
  template <class T>
  Pack<T> load(const T* from) const {
    Pack<T> made{};
    __builtin_memcpy(&made, from, lanes * sizeof(T));
    return made;
  }
  template <class T>
  void store(T* to, Pack<T> pack) const {
    __builtin_memcpy(to, &pack, lanes * sizeof(T));
  }
  template <class T>
  Pack<double> load_double(const T* from) const {
    T padded[Pack<double>::kLanes] = {};
    __builtin_memcpy(padded, from, lanes * sizeof(T));
    return Full{}.load_double(padded);
  }
  Words<float> load(const std::uint16_t* from) const {
    std::uint16_t padded[Pack<float>::kLanes] = {};
    __builtin_memcpy(padded, from, lanes * sizeof(std::uint16_t));
    return Full{}.load(padded);
  }
  void store(std::uint16_t* to, Words<float> words) const {
    std::uint16_t padded[Pack<float>::kLanes];
    Full{}.store(padded, words);
    __builtin_memcpy(to, padded, lanes * sizeof(std::uint16_t));
  }
  // Without the lanes that are not there.
  template <class T>
  Mask<T> there(Mask<T> on) const {
    return on && lane_numbers<T>() < static_cast<std::int64_t>(lanes);
  }
  template <class T>
  Unless<T> there(Unless<T> on) const {
    return !there(Mask<T>{on.of});
  }
};

// body(part, i, column) for the pack that begins at i, whose lanes belong to the row's pack number `column`.
template <class T, class Body>
[[gnu::always_inline]] inline void each_pack(std::size_t n, Body body) {
  constexpr std::size_t kLanes = Pack<T>::kLanes;
  std::size_t i = 0;
  for (; i + kColumns <= n; i += kColumns) {
    unrolled<kPacks<T>>([&](auto k) __attribute__((always_inline)) { body(Full{}, i + k * kLanes, k); });
  }
  if (i == n) return;
  unrolled<kPacks<T>>([&](auto k) {
    const std::size_t at = i + k * kLanes;
    if (at < n) body(Part{n - at < kLanes ? n - at : kLanes}, at, k);
  });
}

}  // namespace cautious::CAUTIOUS_ISA
