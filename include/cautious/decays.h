// All decays. A decay of Algorithm 1's form answers one question per coordinate: does it decay? layerwise and selective look at
// whole tensors (src/optim/whole_tensor.cc). To add one: a file beside these and a word in this list.
#pragma once

#include <variant>

#include <cautious/decays/anchored.h>
#include <cautious/decays/cautious.h>
#include <cautious/decays/decoupled.h>
#include <cautious/decays/gradient.h>
#include <cautious/decays/layerwise.h>
#include <cautious/decays/none.h>
#include <cautious/decays/random.h>
#include <cautious/decays/selective.h>

namespace cautious {

using Decay = std::variant<None, Decoupled, Cautious, Gradient, Random, Layerwise, Selective, Anchored>;

// Whether the decay pulls toward x0 instead of 0.
template <class D>
inline constexpr bool kAnchored = requires {
  D::anchored;
};

// Whether the decay draws random bits.
template <class D>
inline constexpr bool kRandom = requires {
  D::random;
};

inline bool has_anchor(const Decay& decay) {
  return std::visit([]<class D>(const D&) { return kAnchored<D>; }, decay);
}

}  // namespace cautious
