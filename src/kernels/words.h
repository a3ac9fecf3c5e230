// The vocabulary for 32-bit words, one per lane of a Pack<T>: random bits, bins of size and the bits of bf16. Arithmetic is
// modulo 2^32; words are compared as signed numbers.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/pack.h"

namespace cautious::CAUTIOUS_ISA {

template <class T>
struct Words {
  typename Register<T>::Words of;
};

template <class T>
inline Words<T> all_words(std::uint32_t a) {
  return {a + typename Register<T>::Words{}};
}
// 0, 1, 2, ...
template <class T>
inline Words<T> lane_numbers() {
  typename Register<T>::Words made{};
  for (std::uint32_t k = 0; k < Pack<T>::kLanes; ++k) made[k] = k;
  return {made};
}
template <class T>
inline Words<T> operator+(Words<T> a, Words<T> b) {
  return {a.of + b.of};
}
template <class T>
inline Words<T> operator+(Words<T> a, std::uint32_t b) {
  return {a.of + b};
}
template <class T>
inline Words<T> operator*(Words<T> a, std::uint32_t b) {
  return {a.of * b};
}
template <class T>
inline Words<T> operator*(Words<T> a, Words<T> b) {
  return {a.of * b.of};
}
template <class T>
inline Words<T> operator&(Words<T> a, std::uint32_t b) {
  return {a.of & b};
}
template <class T>
inline Words<T> operator^(Words<T> a, Words<T> b) {
  return {a.of ^ b.of};
}
template <class T>
inline Words<T> operator^(Words<T> a, std::uint32_t b) {
  return {a.of ^ b};
}
template <class T>
inline Words<T> operator<<(Words<T> a, int bits) {
  return {a.of << bits};
}
template <class T>
inline Words<T> operator>>(Words<T> a, int bits) {
  return {a.of >> bits};
}
template <class T>
inline Mask<T> operator<(Words<T> a, Words<T> b) {
  using Signed = decltype(a.of != b.of);
  return {__builtin_convertvector((Signed)a.of < (Signed)b.of, typename Register<T>::Bits)};
}
template <class T>
inline Mask<T> operator<(Words<T> a, std::int64_t b) {
  return a < all_words<T>(static_cast<std::uint32_t>(b));
}
template <class T>
inline Mask<T> operator>(Words<T> a, std::uint32_t b) {
  return all_words<T>(b) < a;
}
template <class T>
inline Mask<T> operator!=(Words<T> a, std::uint32_t b) {
  return {__builtin_convertvector(a.of != b, typename Register<T>::Bits)};
}
template <class T>
inline Words<T> select(Mask<T> on, Words<T> yes, Words<T> no) {
  return {__builtin_convertvector(on.of, decltype(yes.of != no.of)) ? yes.of : no.of};
}
template <class T>
inline Words<T> select(Mask<T> on, Words<T> yes, std::uint32_t no) {
  return select(on, yes, all_words<T>(no));
}

// Numbers of a table. (Of numbers: for what is compiled for one at a time.)
inline std::int32_t looked_up(const std::int32_t* table, std::uint32_t at) { return table[at]; }
template <class T>
inline Words<T> looked_up(const std::int32_t* table, Words<T> at) {
  typename Register<T>::Words found{};
  for (std::size_t k = 0; k < Pack<T>::kLanes; ++k) found[k] = static_cast<std::uint32_t>(table[at.of[k]]);
  return {found};
}

inline Words<float> word_of(Pack<float> a) { return {(Register<float>::Words)a.of}; }
inline Pack<float> float_of(Words<float> a) { return {(F32)a.of}; }

inline Words<float> high_word(Pack<float> a) { return word_of(a); }
inline Words<double> high_word(Pack<double> a) {
  return {__builtin_convertvector((Register<double>::Bits)a.of >> 32, Register<double>::Words)};
}

}  // namespace cautious::CAUTIOUS_ISA
