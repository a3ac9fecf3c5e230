// All decays. A decay of Algorithm 1's form answers one question per coordinate: does it decay? Some look at the whole tensor
// first. To add one: a struct with its fields, its mask, and a word in the list at the end.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <variant>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>
#include <cautious/detail/size_bins.h>

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

// Whose signs a mask compares with the parameter's. Where a rule shapes its direction (Muon, Lion-K), those of the momentum,
// the first moment after this step's update, are others: the paper's algorithms have the direction, the flow of its Table 1 the
// momentum.
enum class MaskBy { direction, momentum };

constexpr auto names_of(MaskBy) { return std::array<std::string_view, 2>{"direction", "momentum"}; }

template <class D>
constexpr auto mask_fields() {
  return std::tuple{Choice{"mask", &D::mask, "whose signs decide; momentum: for a rule that shapes its direction"}};
}

// Cautious weight decay (Algorithm 1): decay unless direction and parameter have strictly opposite signs.
struct Cautious {
  static constexpr std::string_view name = "cautious";
  MaskBy mask = MaskBy::direction;
  static constexpr auto fields() { return mask_fields<Cautious>(); }
};

// The opposite of cautious decay: decay where direction and parameter have strictly opposite signs.
struct Opposed {
  static constexpr std::string_view name = "opposed";
  MaskBy mask = MaskBy::direction;
  static constexpr auto fields() { return mask_fields<Opposed>(); }
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

// Control: the mask of cautious decay without its signs. A coin per coordinate and step, whose odds are how often cautious
// decay would have struck this tensor in this step among parameters of about this size (docs/spec.md, "Bins of size"): the same
// density and, on average, the same amount.
struct Shuffled {
  static constexpr std::string_view name = "shuffled";
  static constexpr bool random = true;
  static constexpr bool binned = true;
  MaskBy mask = MaskBy::direction;  // of cautious decay
  static constexpr auto fields() { return mask_fields<Shuffled>(); }
};

// Ablation of the paper: one gate per tensor, <u, x> >= 0.
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

// What a decay that looks at the whole tensor first may know of it, when u is complete. S is a number in double, or a tensor of
// one; odds[bin] are of 2^24, and only there for a decay that is `binned`.
template <class S, class Odds>
struct Seen {
  S ux, g_away, away2, stepped2;  // <u, x>, <g, x - x0>, |x - x0|^2 and |y - x0|^2 with y = x - lr u
  Odds odds;
};

namespace CAUTIOUS_ISA {

// What a decay may look at to decide about a coordinate; or, as tensors, about all of them.
template <class V, class I, class By = V>
struct Lane {
  V u;       // the direction as applied
  V g;       // the gradient
  V pull;    // what decay shrinks: x, or x - x0 with an anchor
  I chance;  // uniform in [0, 2^24); zero unless the decay is random
  By by;     // whose signs decide: u, or the momentum where the decay's field `mask` says so
};

// mask<T>(decay) makes a decay ready for a step: a function from a lane to whether it decays. Fields become numbers of type T
// here, once per step and tensor.
template <class T>
auto mask(const None&) {
  return [](const auto&) { return false; };
}

template <class T>
auto mask(const Decoupled&) {
  return [](const auto&) { return true; };
}

template <class T>
auto mask(const Cautious&) {
  return [](const auto& at) { return !(signed_product(at.by, at.pull) < 0); };
}

template <class T>
auto mask(const Opposed&) {
  return [](const auto& at) { return signed_product(at.by, at.pull) < 0; };
}

template <class T>
auto mask(const Gradient&) {
  return [](const auto& at) { return !(signed_product(at.g, at.pull) < 0); };
}

template <class T>
auto mask(const Random& d) {
  return [odds = static_cast<std::int32_t>(__builtin_floor(d.density * 0x1p24 + 0.5))](const auto& at) {
    return at.chance < odds;
  };
}

template <class T>
auto mask(const Anchored&) {
  return mask<T>(Cautious{});
}

// A decay that looks at the whole tensor first has mask<T>(decay, seen).
template <class T, class Whole>
auto mask(const Layerwise&, const Whole& seen) {
  return [on = seen.ux >= 0](const auto&) { return on; };
}

template <class T, class Whole>
auto mask(const Shuffled&, const Whole& seen) {
  return [odds = seen.odds](const auto& at) { return at.chance < odds[size_bin<T>(high_word(at.pull))]; };
}

// Or, if it is not of Algorithm 1's form, the part r of y - x0 that decays.
template <class Whole>
auto projection(const Selective&, const Whole& seen) {
  const auto away = sqrt(seen.away2), stepped = sqrt(seen.stepped2);
  return select(seen.g_away > 0 && stepped > 0, clamp((stepped - away) / stepped, 0.0, 1.0), 0.0);
}

template <class D>
inline constexpr bool kLooksFirst = !requires(D d) {
  mask<float>(d);
};

template <class D>
inline constexpr bool kProjects = requires(D d, Seen<double, int> seen) {
  projection(d, seen);
};

}  // namespace CAUTIOUS_ISA

using Decay = std::variant<None, Decoupled, Cautious, Opposed, Gradient, Random, Shuffled, Layerwise, Selective, Anchored>;

// Whether the decay pulls toward x0 instead of 0.
template <class D>
inline constexpr bool kAnchored = requires {
  D::anchored;
};

// Whether the decay chooses whose signs decide.
template <class D>
inline constexpr bool kMaskBy = requires(D d) {
  d.mask;
};

// Whether the decay draws random bits.
template <class D>
inline constexpr bool kRandom = requires {
  D::random;
};

// Whether the decay needs to know how often cautious decay would strike, by bins of size.
template <class D>
inline constexpr bool kBinned = requires {
  D::binned;
};

inline bool has_anchor(const Decay& decay) {
  return std::visit([]<class D>(const D&) { return kAnchored<D>; }, decay);
}

inline bool by_momentum(const Decay& decay) {
  return std::visit(
      []<class D>(const D& d) {
        if constexpr (kMaskBy<D>) return d.mask == MaskBy::momentum;
        return false;
      },
      decay);
}

inline bool is_random(const Decay& decay) {
  return std::visit([]<class D>(const D&) { return kRandom<D>; }, decay);
}

// The field `density`, which may change from step to step (Optimizer::set_density); null if the decay has none.
inline double* density_in(Decay& decay) {
  return std::visit(
      []<class D>(D& d) -> double* {
        if constexpr (requires { d.density; }) {
          return &d.density;
        } else {
          return nullptr;
        }
      },
      decay);
}

}  // namespace cautious
