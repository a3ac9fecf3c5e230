// Ablation of the paper: the mask looks at the raw gradient instead of the direction.
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/decays/lane.h>

namespace cautious {

struct Gradient {
  static constexpr std::string_view name = "gradient";
  static constexpr auto fields() { return std::tuple{}; }
};

namespace CAUTIOUS_ISA {

template <class T>
bool decays(Gradient, const Lane<T>& at) {
  return !(signed_product(at.g, at.pull) < 0);
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
