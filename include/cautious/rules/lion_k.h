// Lion-K, appendix B.2:  z = b1 m + (1-b1) g,  u = grad K(z),  then m = b2 m + (1-b2) g.
// Momentum is kept with Lion's sign (the appendix stores -m); every K here is even, so K = l1 gives Lion's bits.
// The kernel yields z; the subgradient of K is the rule's shaping stage (convex.h; polar.h for the nuclear norm of a matrix).
#pragma once

#include <span>
#include <string_view>
#include <tuple>

#include <cautious/convex.h>
#include <cautious/field.h>
#include <cautious/polar.h>
#include <cautious/rules/shaping.h>
#include <cautious/scalar.h>

namespace cautious {

struct LionK {
  static constexpr std::string_view name = "lion-k";
  double beta1 = 0.9, beta2 = 0.99;
  Convex k = Convex::l1;
  double p = 2, e = 1e-3, fraction = 0.1;
  Polar polar = {};  // of nuclear
  static constexpr auto fields() {
    return std::tuple{Field{"beta1", &LionK::beta1, kMomentum, "interpolation of the direction"},
                      Field{"beta2", &LionK::beta2, kMomentum, "coefficient of the momentum"},
                      Choice{"k", &LionK::k, "convex function K"},
                      Field{"p", &LionK::p, kNormOrder, "order of the lp norm"},
                      Field{"e", &LionK::e, kPositive, "width of huber, relativistic and threshold"},
                      Field{"fraction", &LionK::fraction, kFraction, "part of a tensor's entries that topk keeps"},
                      Part{&LionK::polar}};
  }
};

inline ConvexFunction function_of(const LionK& rule) { return {rule.k, rule.p, rule.e, rule.fraction}; }

inline Shaping shaping(const LionK& rule) {
  if (rule.k == Convex::nuclear) return Shaping::matrix;
  return is_separable(rule.k) ? Shaping::tile : Shaping::tensor;
}

inline const Polar& polar_of(const LionK& rule) { return rule.polar; }

template <class T>
void shape(const LionK& rule, std::span<T> z) {
  subgradient(function_of(rule), z);
}

namespace CAUTIOUS_ISA {

template <class T>
auto direction(const LionK& l, std::int64_t) {
  return [b1 = T(l.beta1), r1 = T(1 - l.beta1), b2 = T(l.beta2), r2 = T(1 - l.beta2)](T g, T& m) {
    const T z = mix(m, g, b1, r1);
    m = mix(m, g, b2, r2);
    return z;
  };
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
