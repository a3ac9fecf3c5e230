// All rules. A rule answers one question: which direction u? It never sees x, the learning rate or the weight decay.
// To add one: a file beside these and a word in this list.
#pragma once

#include <variant>

#include <cautious/rules/adam.h>
#include <cautious/rules/lion.h>
#include <cautious/rules/lion_k.h>
#include <cautious/rules/muon.h>
#include <cautious/rules/sgd.h>
#include <cautious/rules/sgdm.h>

namespace cautious {

using Rule = std::variant<Sgd, Sgdm, Adam, Lion, LionK, Muon>;

namespace CAUTIOUS_ISA {

// A rule at one step, ready to be used: a function from g and the moments, which it changes, to u. g and the moments are
// numbers of type T, or tensors of them.
template <class R, class T>
using DirectionOf = decltype(direction<T>(R{}, 1));

// Number of moments: the direction's parameters after g.
template <class R, class T>
constexpr int moments_of() {
  if constexpr (requires(DirectionOf<R, T> u, T value) { u(value, value, value); }) {
    return 2;
  } else if constexpr (requires(DirectionOf<R, T> u, T value) { u(value, value); }) {
    return 1;
  } else {
    return 0;
  }
}

}  // namespace CAUTIOUS_ISA

}  // namespace cautious
