// Asks any rule whether and how it shapes its direction.
#pragma once

#include <span>

#include <cautious/rules.h>

namespace cautious::optim {

inline Shaping shaping_of(const Rule& rule) {
  return std::visit(
      []<class R>(const R& r) {
        if constexpr (requires { shaping(r); }) {
          return shaping(r);
        } else {
          return Shaping::none;
        }
      },
      rule);
}

// Of a rule that shapes tiles or tensors.
template <class T>
void shape_direction(const Rule& rule, std::span<T> z) {
  std::visit(
      [&]<class R>(const R& r) {
        if constexpr (requires { shape(r, z); }) shape(r, z);
      },
      rule);
}

// Of a rule that shapes matrices; null otherwise.
inline const Polar* polar_in(const Rule& rule) {
  if (shaping_of(rule) != Shaping::matrix) return nullptr;
  return std::visit(
      []<class R>(const R& r) -> const Polar* {
        if constexpr (requires { polar_of(r); }) {
          return &polar_of(r);
        } else {
          return nullptr;
        }
      },
      rule);
}

}  // namespace cautious::optim
