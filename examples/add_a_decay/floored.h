// Cautious weight decay that leaves small parameters alone: a coordinate decays only while |x| is above `floor`.
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>

namespace cautious {

struct Floored {
  static constexpr std::string_view name = "floored";
  double floor = 0.1;
  static constexpr auto fields() {
    return std::tuple{Field{"floor", &Floored::floor, kNonnegative, "magnitude below which nothing decays"}};
  }
};

namespace CAUTIOUS_ISA {

template <class T>
auto mask(const Floored& d) {
  return [floor = T(d.floor)](const auto& at) { return abs(at.pull) > floor && !(signed_product(at.u, at.pull) < 0); };
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
