// Control of the paper: a coin per coordinate and step, by a counter-based hash (docs/spec.md, "Random bits").
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/decays/lane.h>
#include <cautious/field.h>

namespace cautious {

struct Random {
  static constexpr std::string_view name = "random";
  static constexpr bool random = true;
  double density = 0.5;
  static constexpr auto fields() {
    return std::tuple{Field{"density", &Random::density, kFraction, "probability that a coordinate decays"}};
  }
};

namespace CAUTIOUS_ISA {

template <class T>
bool decays(Random, const Lane<T>& at) {
  return at.chance < at.odds;
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
