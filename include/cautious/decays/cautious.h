// Cautious weight decay (Algorithm 1): decay unless direction and parameter have strictly opposite signs.
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/decays/lane.h>

namespace cautious {

struct Cautious {
  static constexpr std::string_view name = "cautious";
  static constexpr auto fields() { return std::tuple{}; }
};

namespace CAUTIOUS_ISA {

template <class T>
bool decays(Cautious, const Lane<T>& at) {
  return !(signed_product(at.u, at.pull) < 0);
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
