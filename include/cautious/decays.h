// All decays. A decay of Algorithm 1's form answers one question per coordinate: does it decay? layerwise and selective look at
// whole tensors (src/optim/whole_tensor.cc). To add one: a struct with its mask, and a word in the list at the end.
#pragma once

#include <cstdint>
#include <string_view>
#include <tuple>
#include <variant>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>

namespace cautious {

// No decay.
struct None {
  static constexpr std::string_view name = "none";
  static constexpr auto fields() { return std::tuple{}; }
};

// Decoupled weight decay: every coordinate, always (AdamW).
struct Decoupled {
  static constexpr std::string_view name = "decoupled";
  static constexpr auto fields() { return std::tuple{}; }
};

// Cautious weight decay (Algorithm 1): decay unless direction and parameter have strictly opposite signs.
struct Cautious {
  static constexpr std::string_view name = "cautious";
  static constexpr auto fields() { return std::tuple{}; }
};

// Ablation of the paper: the mask looks at the raw gradient instead of the direction.
struct Gradient {
  static constexpr std::string_view name = "gradient";
  static constexpr auto fields() { return std::tuple{}; }
};

// Control of the paper: a coin per coordinate and step, by a counter-based hash (docs/spec.md, "Random bits").
struct Random {
  static constexpr std::string_view name = "random";
  static constexpr bool random = true;
  double density = 0.5;
  static constexpr auto fields() {
    return std::tuple{Field{"density", &Random::density, kFraction, "probability that a coordinate decays"}};
  }
};

// Ablation of the paper: one gate per tensor, <u, x> >= 0. Resolved once per tensor and step to decoupled or none.
struct Layerwise {
  static constexpr std::string_view name = "layerwise";
  static constexpr auto fields() { return std::tuple{}; }
};

// Selective projection decay (SPD, arXiv 2411.01713), the one policy that is not of Algorithm 1's form. With y = x - lr u and
// the anchor x0: if <g, x - x0> > 0 then x <- y - wd r (y - x0), r = clamp(1 - |x - x0| / |y - x0|, 0, 1), else x <- y. wd is
// not multiplied by the learning rate, so couplings do not apply.
struct Selective {
  static constexpr std::string_view name = "selective";
  static constexpr bool anchored = true;
  static constexpr auto fields() { return std::tuple{}; }
};

// Cautious weight decay toward an anchor x0: mask and pull use x - x0. The anchor is the starting point unless set.
struct Anchored {
  static constexpr std::string_view name = "anchored";
  static constexpr bool anchored = true;
  static constexpr auto fields() { return std::tuple{}; }
};

namespace CAUTIOUS_ISA {

// What a decay may look at to decide about one coordinate.
template <class T>
struct Lane {
  T u;                  // the direction as applied
  T g;                  // the gradient
  T pull;               // what decay shrinks: x, or x - x0 with an anchor
  std::int32_t chance;  // uniform in [0, 2^24)
  std::int32_t odds;    // density * 2^24
};

template <class T>
bool decays(None, const Lane<T>&) {
  return false;
}

template <class T>
bool decays(Decoupled, const Lane<T>&) {
  return true;
}

template <class T>
bool decays(Cautious, const Lane<T>& at) {
  return !(signed_product(at.u, at.pull) < 0);
}

template <class T>
bool decays(Gradient, const Lane<T>& at) {
  return !(signed_product(at.g, at.pull) < 0);
}

template <class T>
bool decays(Random, const Lane<T>& at) {
  return at.chance < at.odds;
}

template <class T>
bool decays(Anchored, const Lane<T>& at) {
  return decays(Cautious{}, at);
}

}  // namespace CAUTIOUS_ISA

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
