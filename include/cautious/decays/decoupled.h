// Decoupled weight decay: every coordinate, always (AdamW).
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/decays/lane.h>

namespace cautious {

struct Decoupled {
  static constexpr std::string_view name = "decoupled";
  static constexpr auto fields() { return std::tuple{}; }
};

namespace CAUTIOUS_ISA {

template <class T>
bool decays(Decoupled, const Lane<T>&) {
  return true;
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
