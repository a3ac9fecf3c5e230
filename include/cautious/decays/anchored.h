// Cautious weight decay toward an anchor x0: mask and pull use x - x0. The anchor is the starting point unless set.
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/decays/cautious.h>

namespace cautious {

struct Anchored {
  static constexpr std::string_view name = "anchored";
  static constexpr bool anchored = true;
  static constexpr auto fields() { return std::tuple{}; }
};

namespace CAUTIOUS_ISA {

template <class T>
bool decays(Anchored, const Lane<T>& at) {
  return decays(Cautious{}, at);
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
