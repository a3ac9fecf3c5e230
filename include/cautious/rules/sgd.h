// Gradient descent: u = g. No state.
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/detail/scalar.h>

namespace cautious {

struct Sgd {
  static constexpr std::string_view name = "sgd";
  static constexpr auto fields() { return std::tuple{}; }
};

namespace CAUTIOUS_ISA {

template <class T>
auto direction(const Sgd&, std::int64_t) {
  return [](auto g) { return g; };
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
