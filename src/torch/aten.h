// The vocabulary of formulas (cautious/detail/scalar.h) for tensors of libtorch, on any device: included first, it compiles
// rules, decays, functions K, Algorithm 1, random bits and roundings into cautious::aten, where a value is a whole tensor.
#pragma once

#define CAUTIOUS_ISA aten  // before the first formula

#include <concepts>
#include <cstdint>
#include <string>
#include <type_traits>
#include <utility>

#include <ATen/ATen.h>

#include <cautious/decays.h>
#include <cautious/polar.h>
#include <cautious/rules.h>

namespace cautious::aten {

// A number of type T per coordinate, or one for all of them.
template <class T>
struct Values {
  at::Tensor of;
};

// A condition per coordinate, or one for all of them.
struct Mask {
  at::Tensor of;
};

// 32-bit words with arithmetic modulo 2^32, in int64.
struct Words {
  at::Tensor of;
};

// A list of words.
struct Table {
  at::Tensor of;
  Words operator[](const Words& index) const { return {at::take(of, index.of)}; }
};

inline constexpr std::int64_t kWord = 0xffffffff;

template <class T>
inline constexpr at::ScalarType kType = c10::CppTypeToScalarType<T>::value;

template <class T>
inline constexpr T kSmallest<Values<T>> = kSmallest<T>;

// What two operands make: tensors of one kind, or such a tensor and a number.
template <class T>
Values<T> joined(const Values<T>&, const Values<T>&);
template <class T>
Values<T> joined(const Values<T>&, std::type_identity_t<T>);
template <class T>
Values<T> joined(std::type_identity_t<T>, const Values<T>&);
Words joined(const Words&, const Words&);
Words joined(const Words&, std::int64_t);
Words joined(std::int64_t, const Words&);
template <class A, class B>
using Joined = decltype(joined(std::declval<const A&>(), std::declval<const B&>()));

template <class A, class B>
concept Numeric = !std::same_as<Joined<A, B>, Words>;

// An operand as libtorch takes it.
template <class A>
auto raw(const A& a) {
  if constexpr (std::integral<A>) {
    return at::Scalar(static_cast<std::int64_t>(a));
  } else if constexpr (std::floating_point<A>) {
    return at::Scalar(static_cast<double>(a));
  } else {
    return a.of;
  }
}

template <class A, class B>
requires Numeric<A, B> Joined<A, B>
operator+(const A& a, const B& b) { return {raw(a) + raw(b)}; }
template <class A, class B>
requires Numeric<A, B> Joined<A, B>
operator-(const A& a, const B& b) { return {raw(a) - raw(b)}; }
template <class A, class B>
requires Numeric<A, B> Joined<A, B>
operator*(const A& a, const B& b) { return {raw(a) * raw(b)}; }
template <class A, class B>
requires Numeric<A, B> Joined<A, B>
operator/(const A& a, const B& b) { return {raw(a) / raw(b)}; }
template <class T>
Values<T> operator-(const Values<T>& a) {
  return {-a.of};
}

template <class B>
Words operator+(const Words& a, const B& b) {
  return {(a.of + raw(b)) & kWord};
}
// The product without leaving 63 bits.
inline Words operator*(const Words& a, const Words& b) {
  constexpr std::int64_t half = 0xffff;
  const at::Tensor low = b.of & half, high = at::bitwise_right_shift(b.of, raw(16));
  return {(a.of * low + ((a.of * high) & half) * 0x10000) & kWord};
}
inline Words operator*(const Words& a, std::uint32_t b) { return a * Words{at::scalar_tensor(raw(b), a.of.options())}; }
template <class B>
Words operator^(const Words& a, const B& b) {
  return {a.of ^ raw(b)};
}
inline Words operator&(const Words& a, std::uint32_t b) { return {a.of & raw(b)}; }
inline Words operator<<(const Words& a, int bits) { return {at::bitwise_left_shift(a.of, raw(bits)) & kWord}; }
inline Words operator>>(const Words& a, int bits) { return {at::bitwise_right_shift(a.of, raw(bits))}; }

template <class A, class B, class = Joined<A, B>>
Mask operator<(const A& a, const B& b) {
  return {raw(a) < raw(b)};
}
template <class A, class B, class = Joined<A, B>>
Mask operator<=(const A& a, const B& b) {
  return {raw(a) <= raw(b)};
}
template <class A, class B, class = Joined<A, B>>
Mask operator>(const A& a, const B& b) {
  return {raw(a) > raw(b)};
}
template <class A, class B, class = Joined<A, B>>
Mask operator>=(const A& a, const B& b) {
  return {raw(a) >= raw(b)};
}
template <class A, class B, class = Joined<A, B>>
Mask operator==(const A& a, const B& b) {
  return {raw(a) == raw(b)};
}
template <class A, class B, class = Joined<A, B>>
Mask operator!=(const A& a, const B& b) {
  return {raw(a) != raw(b)};
}
inline Mask operator!(const Mask& a) { return {a.of.logical_not()}; }
inline Mask operator&&(const Mask& a, const Mask& b) { return {a.of.logical_and(b.of)}; }
inline Mask operator||(const Mask& a, const Mask& b) { return {a.of.logical_or(b.of)}; }

// A number times a tensor, added to a tensor, is one operation of libtorch, fused where the device can.
template <class T>
Values<T> fma(std::type_identity_t<T> a, const Values<T>& b, const Values<T>& c) {
  return {at::add(c.of, b.of, raw(a))};
}
template <class A, class B, class C>
auto fma(const A& a, const B& b, const C& c) -> Joined<Joined<A, B>, C> {
  return a * b + c;
}

template <class T>
Values<T> sqrt(const Values<T>& a) {
  return {at::sqrt(a.of)};
}
template <class T>
Values<T> abs(const Values<T>& a) {
  return {at::abs(a.of)};
}
inline Values<double> pow(const Values<double>& a, double b) { return {at::pow(a.of, b)}; }
inline Values<double> hypot(const Values<double>& a, double b) { return {at::hypot(a.of, at::full_like(a.of, b))}; }

template <class T, class S>
Values<T> as(const Values<S>& a) {
  return {a.of.to(kType<T>)};
}

template <class A, class B>
Joined<A, B> select(const Mask& on, const A& yes, const B& no) {
  return {at::where(on.of, raw(yes), raw(no))};
}
template <class T>
Values<T> select(bool on, const Values<T>& yes, std::type_identity_t<T> no) {
  return on ? yes : Values<T>{at::full_like(yes.of, raw(no))};
}
template <class Yes, class No>
auto either(const Mask& on, Yes yes, No no) {
  return select(on, yes(), no());
}

template <class T>
Values<T> sign(const Values<T>& z) {
  return select(z > 0, T(1), select(z < 0, T(-1), z));
}
template <class T>
Values<T> clamp(const Values<T>& z, std::type_identity_t<T> low, std::type_identity_t<T> high) {
  return {at::clamp(z.of, raw(low), raw(high))};
}

// The words for all entries of a tensor, as in src/optim/shaping.h.
template <class T, class Formula>
void each(Values<T>& z, const Formula& formula) {
  z = formula(z);
}
template <class T, class Term>
Values<double> total(const Values<T>& z, const Term& term) {
  return {term(z).of.sum(at::kDouble)};
}
template <class T>
Values<double> largest(const Values<T>& z) {
  return {as<double>(abs(select(z == z, z, T(0)))).of.max()};
}

// aten_shape.cc
Values<double> norm_of(const at::Tensor& z);
at::Tensor largest_kept(const at::Tensor& z, double fraction);
// scale times the orthogonal factor of each matrix of the tensor.
at::Tensor polar_factor(const at::Tensor& z, const Polar& how, const std::string& name);

template <class T>
Values<double> norm(const Values<T>& z) {
  return norm_of(z.of);
}
template <class T>
void keep_largest(Values<T>& z, double fraction) {
  z.of = largest_kept(z.of, fraction);
}

// Bits of an f32, and back; the upper ones of an f64.
inline Words word_of(const Values<float>& x) { return {x.of.view(at::kInt).to(at::kLong) & kWord}; }
inline Words high_word(const Values<float>& x) { return word_of(x); }
inline Words high_word(const Values<double>& x) { return {at::bitwise_right_shift(x.of.view(at::kLong), raw(32)) & kWord}; }
inline at::Tensor with_sign(const Words& a, int bits) {  // in two's complement
  const std::int64_t sign = std::int64_t{1} << (bits - 1);
  return (a.of ^ sign) - sign;
}
inline Values<float> float_of(const Words& a) { return {with_sign(a, 32).to(at::kInt).view(at::kFloat)}; }

}  // namespace cautious::aten
