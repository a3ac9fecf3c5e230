// No decay.
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/decays/lane.h>

namespace cautious {

struct None {
  static constexpr std::string_view name = "none";
  static constexpr auto fields() { return std::tuple{}; }
};

namespace CAUTIOUS_ISA {

template <class T>
bool decays(None, const Lane<T>&) {
  return false;
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
