// The vocabulary of formulas (cautious/detail/scalar.h) for the lanes of one vector register: a value is a pack of numbers, a
// condition a mask, and arithmetic is the compilers' own on their vector types. The only file that knows instruction sets: to
// add one is to add a width and four functions at the top.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <cautious/detail/scalar.h>

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(CAUTIOUS_NEON)
#include <arm_neon.h>
#endif

namespace cautious::CAUTIOUS_ISA {

// The width of a register, and whether it has a fused multiply-add: without that, nothing else is worth an effort.
#if defined(__AVX512F__)
inline constexpr std::size_t kBytes = 64;
#elif defined(__AVX2__)
inline constexpr std::size_t kBytes = 32;
#else
inline constexpr std::size_t kBytes = 16;
#endif
#if defined(__AVX2__) || defined(CAUTIOUS_NEON)
inline constexpr bool kFuses = true;
#else
inline constexpr bool kFuses = false;
#endif

template <class T>
struct Register;
template <>
struct Register<float> {
  using Numbers [[gnu::vector_size(kBytes)]] = float;
  using Bits [[gnu::vector_size(kBytes)]] = std::int32_t;
  using Words [[gnu::vector_size(kBytes)]] = std::uint32_t;
};
template <>
struct Register<double> {
  using Numbers [[gnu::vector_size(kBytes)]] = double;
  using Bits [[gnu::vector_size(kBytes)]] = std::int64_t;
  using Words [[gnu::vector_size(kBytes / 2)]] = std::uint32_t;
};

using F32 = Register<float>::Numbers;
using F64 = Register<double>::Numbers;
using U32 = Register<float>::Words;
using U16 [[gnu::vector_size(kBytes / 2)]] = std::uint16_t;

// least and most are the second operand where one of the two is NaN, or where both are zeros. The words that become narrow are
// below 2^16.
#if defined(__AVX512F__)
inline F32 fused(F32 a, F32 b, F32 c) { return _mm512_fmadd_ps(a, b, c); }
inline F64 fused(F64 a, F64 b, F64 c) { return _mm512_fmadd_pd(a, b, c); }
inline F32 root(F32 a) { return _mm512_sqrt_ps(a); }
inline F64 root(F64 a) { return _mm512_sqrt_pd(a); }
inline F32 least(F32 a, F32 b) { return _mm512_min_ps(a, b); }
inline F64 least(F64 a, F64 b) { return _mm512_min_pd(a, b); }
inline F32 most(F32 a, F32 b) { return _mm512_max_ps(a, b); }
inline F64 most(F64 a, F64 b) { return _mm512_max_pd(a, b); }
inline U32 wide(U16 a) { return (U32)_mm512_cvtepu16_epi32((__m256i)a); }
inline U16 narrow(U32 a) { return (U16)_mm512_cvtepi32_epi16((__m512i)a); }
#elif defined(__AVX2__)
inline F32 fused(F32 a, F32 b, F32 c) { return _mm256_fmadd_ps(a, b, c); }
inline F64 fused(F64 a, F64 b, F64 c) { return _mm256_fmadd_pd(a, b, c); }
inline F32 root(F32 a) { return _mm256_sqrt_ps(a); }
inline F64 root(F64 a) { return _mm256_sqrt_pd(a); }
inline F32 least(F32 a, F32 b) { return _mm256_min_ps(a, b); }
inline F64 least(F64 a, F64 b) { return _mm256_min_pd(a, b); }
inline F32 most(F32 a, F32 b) { return _mm256_max_ps(a, b); }
inline F64 most(F64 a, F64 b) { return _mm256_max_pd(a, b); }
inline U32 wide(U16 a) { return (U32)_mm256_cvtepu16_epi32((__m128i)a); }
inline U16 narrow(U32 a) {
  const __m256i twice = _mm256_packus_epi32((__m256i)a, (__m256i)a);
  return (U16)_mm256_castsi256_si128(_mm256_permute4x64_epi64(twice, 0x08));
}
#elif defined(CAUTIOUS_NEON)
inline F32 fused(F32 a, F32 b, F32 c) { return vfmaq_f32(c, a, b); }
inline F64 fused(F64 a, F64 b, F64 c) { return vfmaq_f64(c, a, b); }
inline F32 root(F32 a) { return vsqrtq_f32(a); }
inline F64 root(F64 a) { return vsqrtq_f64(a); }
inline F32 least(F32 a, F32 b) { return vbslq_f32(vcltq_f32(a, b), a, b); }
inline F64 least(F64 a, F64 b) { return vbslq_f64(vcltq_f64(a, b), a, b); }
inline F32 most(F32 a, F32 b) { return vbslq_f32(vcgtq_f32(a, b), a, b); }
inline F64 most(F64 a, F64 b) { return vbslq_f64(vcgtq_f64(a, b), a, b); }
inline U32 wide(U16 a) { return (U32)vmovl_u16((uint16x4_t)a); }
inline U16 narrow(U32 a) { return (U16)vmovn_u32((uint32x4_t)a); }
#else
template <class V, class Function>
inline V by_lane(V made, Function function) {
  for (std::size_t k = 0; k < sizeof(V) / sizeof(made[0]); ++k) made[k] = function(k);
  return made;
}
template <class V>
inline V fused(V a, V b, V c) {
  return by_lane(a, [&](std::size_t k) { return fma(a[k], b[k], c[k]); });
}
template <class V>
inline V root(V a) {
  return by_lane(a, [&](std::size_t k) { return sqrt(a[k]); });
}
template <class V>
inline V least(V a, V b) {
  return by_lane(a, [&](std::size_t k) { return a[k] < b[k] ? a[k] : b[k]; });
}
template <class V>
inline V most(V a, V b) {
  return by_lane(a, [&](std::size_t k) { return a[k] > b[k] ? a[k] : b[k]; });
}
inline U32 wide(U16 a) { return __builtin_convertvector(a, U32); }
inline U16 narrow(U32 a) { return __builtin_convertvector(a, U16); }
#endif

// Loaded once: GCC would rather read memory again for every use, and loads are what AVX-512 is short of.
template <class V>
inline V held(V v) {
#if defined(__AVX2__)
  __asm__("" : "+v"(v));
#endif
  return v;
}

template <class T>
struct Pack {
  static constexpr std::size_t kLanes = kBytes / sizeof(T);
  typename Register<T>::Numbers of;
};

// All ones where the condition holds.
template <class T>
struct Mask {
  using Element = T;
  typename Register<T>::Bits of;
};

// The opposite of a mask: all ones where the condition does not hold. A comparison is not done again to be turned around.
template <class T>
struct Unless {
  using Element = T;
  typename Register<T>::Bits of;
};

template <class T>
inline constexpr T kSmallest<Pack<T>> = kSmallest<T>;

// The same number in every lane. The difference keeps a -0.
template <class T>
inline Pack<T> all(std::type_identity_t<T> a) {
  return {a - typename Register<T>::Numbers{}};
}

// An operand as a pack, where `like` is what the operation makes: packs, or a pack and a number.
template <class T>
inline Pack<T> spread(Pack<T> a, Pack<T>) {
  return a;
}
template <class T>
inline Pack<T> spread(std::type_identity_t<T> a, Pack<T>) {
  return all<T>(a);
}
template <class T>
Pack<T> joined(Pack<T>, Pack<T>);
template <class T>
Pack<T> joined(Pack<T>, std::type_identity_t<T>);
template <class T>
Pack<T> joined(std::type_identity_t<T>, Pack<T>);
template <class A, class B>
using Joined = decltype(joined(std::declval<A>(), std::declval<B>()));

template <class A, class B>
inline Joined<A, B> operator+(A a, B b) {
  return {spread(a, Joined<A, B>{}).of + spread(b, Joined<A, B>{}).of};
}
template <class A, class B>
inline Joined<A, B> operator-(A a, B b) {
  return {spread(a, Joined<A, B>{}).of - spread(b, Joined<A, B>{}).of};
}
template <class A, class B>
inline Joined<A, B> operator*(A a, B b) {
  return {spread(a, Joined<A, B>{}).of * spread(b, Joined<A, B>{}).of};
}
template <class A, class B>
inline Joined<A, B> operator/(A a, B b) {
  return {spread(a, Joined<A, B>{}).of / spread(b, Joined<A, B>{}).of};
}
template <class T>
inline Mask<T> operator<(Pack<T> a, std::type_identity_t<T> b) {
  return {a.of < all<T>(b).of};
}
template <class T>
inline Mask<T> operator>(Pack<T> a, std::type_identity_t<T> b) {
  return {a.of > all<T>(b).of};
}
template <class T>
inline Mask<T> operator==(Pack<T> a, Pack<T> b) {
  return {a.of == b.of};
}
template <class T>
inline Unless<T> operator!(Mask<T> a) {
  return {a.of};
}
template <class T>
inline Mask<T> operator!(Unless<T> a) {
  return {a.of};
}
template <class T>
inline auto ones(Mask<T> a) {
  return a.of;
}
template <class T>
inline auto ones(Unless<T> a) {
  return ~a.of;
}
template <class A, class B>
inline Mask<typename A::Element> operator&&(A a, B b) {
  return {ones(a) & ones(b)};
}
template <class A, class B>
inline Mask<typename A::Element> operator||(A a, B b) {
  return {ones(a) | ones(b)};
}

template <class A, class B, class C>
inline Joined<Joined<A, B>, C> fma(A a, B b, C c) {
  using V = Joined<Joined<A, B>, C>;
  return {fused(spread(a, V{}).of, spread(b, V{}).of, spread(c, V{}).of)};
}
template <class T>
inline Pack<T> sqrt(Pack<T> a) {
  return {root(a.of)};
}
template <class T>
inline Pack<T> abs(Pack<T> a) {
  using Bits = typename Register<T>::Bits;
  const Bits sign = (Bits)all<T>(T(-0.0)).of;
  return {(typename Register<T>::Numbers)((Bits)a.of & ~sign)};
}
// Scaled so that whatever is not zero is at least 1; NaN comes second, so it stays.
template <class T>
inline Pack<T> sign(Pack<T> z) {
  return {least(all<T>(1).of, most(all<T>(-1).of, (z * (1 / kSmallest<T>)).of))};
}
template <class T>
inline Pack<T> select(Mask<T> on, Pack<T> yes, std::type_identity_t<T> no) {
  return {on.of ? yes.of : all<T>(no).of};
}
template <class T>
inline Pack<T> select(Unless<T> on, Pack<T> yes, std::type_identity_t<T> no) {
  return {~on.of ? yes.of : all<T>(no).of};
}
template <class T>
inline Pack<T> select(bool on, Pack<T> yes, std::type_identity_t<T> no) {
  return on ? yes : all<T>(no);
}

}  // namespace cautious::CAUTIOUS_ISA
