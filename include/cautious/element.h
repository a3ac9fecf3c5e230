// Element types of the caller's buffers and how a new parameter is rounded into them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cautious {

enum class Element { f32, f64, bf16 };

constexpr auto names_of(Element) { return std::array<std::string_view, 3>{"f32", "f64", "bf16"}; }

// Storage only: the upper half of an f32. Arithmetic happens in f32.
struct Bf16 {
  std::uint16_t bits;
};

template <class T>
constexpr Element element_of();
template <>
constexpr Element element_of<float>() {
  return Element::f32;
}
template <>
constexpr Element element_of<double>() {
  return Element::f64;
}
template <>
constexpr Element element_of<Bf16>() {
  return Element::bf16;
}

constexpr std::size_t size_of(Element element) { return element == Element::f64 ? 8 : element == Element::f32 ? 4 : 2; }

constexpr std::string_view to_string(Element element) { return names_of(element)[static_cast<std::size_t>(element)]; }

// How the one rounding of a step into a bf16 parameter is done (docs/spec.md, "Rounding").
// nearest loses every change below 2^-9 of the weight; stochastic keeps it on average; split keeps it exactly by holding the
// f32 remainder in a second 16-bit array.
enum class Rounding { nearest, stochastic, split };

constexpr auto names_of(Rounding) { return std::array<std::string_view, 3>{"nearest", "stochastic", "split"}; }

}  // namespace cautious
