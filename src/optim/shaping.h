// Asks any rule whether and how it shapes its direction.
#pragma once

#include <cstdint>
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

template <class T>
void shape_direction(const Rule& rule, std::span<T> u, std::span<const std::int64_t> dimensions) {
  std::visit(
      [&]<class R>(const R& r) {
        if constexpr (requires { shape(r, u, dimensions); }) shape(r, u, dimensions);
      },
      rule);
}

}  // namespace cautious::optim
