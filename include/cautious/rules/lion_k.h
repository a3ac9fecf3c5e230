// Lion-K, appendix B.2:  z = b1 m + (1-b1) g,  u = grad K(z),  then m = b2 m + (1-b2) g.
// Momentum is kept with Lion's sign (the appendix stores -m); every K here is even, so K = l1 gives Lion's bits.
// The kernel yields z; the subgradient of K is the rule's shaping stage (polar.h for the nuclear norm of a matrix).
//
// The convex functions K of Lion-K: value and subgradient.
//   l1            sum |z|                          sign(z)
//   l2            sqrt(sum z^2)                    z / ||z||
//   lp            (sum |z|^p)^(1/p)                sign(z) (|z| / ||z||_p)^(p-1)
//   huber         sum |z|<=e ? z^2/2e : |z|-e/2    clamp(z/e, -1, 1)
//   relativistic  sum sqrt(z^2 + e^2)              z / sqrt(z^2 + e^2)
//   threshold     sum max(|z| - e, 0)              |z|>e ? sign(z) : 0
//   topk          sum of the largest |z|           sign(z) on the k = ceil(fraction n) largest |z|, ties to the lower index
//   nuclear       sum of the singular values       orthogonal factor of the matrix: polar() and nuclear_norm() of polar.h
#pragma once

#include <array>
#include <span>
#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>
#include <cautious/polar.h>

namespace cautious {

enum class Convex { l1, l2, lp, huber, relativistic, threshold, topk, nuclear };

constexpr auto names_of(Convex) {
  return std::array<std::string_view, 8>{"l1", "l2", "lp", "huber", "relativistic", "threshold", "topk", "nuclear"};
}

inline constexpr Range kNormOrder{1, 1e3, false, false};

struct ConvexFunction {
  Convex k = Convex::l1;
  double p = 2, e = 1e-3, fraction = 0.1;
};

// Whether each entry of the subgradient depends on that entry alone, so that any part of a tensor can be done by itself.
bool is_separable(Convex k);

// nuclear is an Error here and below: it needs the matrix's shape.
double value(const ConvexFunction& function, std::span<const double> z);

// Replaces z by a subgradient at z (zero where K is not differentiable at 0).
void subgradient(const ConvexFunction& function, std::span<float> z);
void subgradient(const ConvexFunction& function, std::span<double> z);

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

namespace CAUTIOUS_ISA {

template <class T>
auto direction(const LionK& l, std::int64_t) {
  return [b1 = T(l.beta1), r1 = T(1 - l.beta1), b2 = T(l.beta2), r2 = T(1 - l.beta2)](auto g, auto& m) {
    const auto z = mix(m, g, b1, r1);
    m = mix(m, g, b2, r2);
    return z;
  };
}

// z / sqrt(z^2 + e^2); where a square would leave the range of T, the same in double by hypot.
template <class T, class V>
V relativistic(V z, T e, double exact_e) {
  constexpr T low = sizeof(T) == 4 ? T(1e-15) : T(1e-140), high = sizeof(T) == 4 ? T(1e18) : T(1e150);
  const auto length = sqrt(fma(z, z, e * e));
  return either(
      length > low && length < high, [&] { return z / length; },
      [&] { return as<T>(as<double>(z) / hypot(as<double>(z), exact_e)); });
}

// The subgradient of K in place. Z is all of a tile or tensor: each() replaces every entry, total(), largest() and norm() are
// numbers in double, keep_largest() leaves k entries and makes the others zero (src/optim/shaping.h, src/torch/aten.h).
// NaN stays NaN, -0 stays a zero, and no intermediate value overflows or underflows where the result does not.
template <class T, class Z>
void to_subgradient(const ConvexFunction& f, Z& z) {
  const T e = T(f.e) > kSmallest<T> ? T(f.e) : kSmallest<T>;
  const Convex k = f.k != Convex::lp ? f.k : f.p == 1 ? Convex::l1 : f.p == 2 ? Convex::l2 : Convex::lp;
  switch (k) {
    case Convex::l1:
      return each(z, [](auto v) { return sign(v); });
    case Convex::l2: {
      const auto length = norm(z);
      const auto inverse = as<T>(select(length == 0, 1.0, 1 / length));
      const auto representable = abs(inverse) < T(__builtin_inf());
      return each(z, [&](auto v) {
        return either(
            representable, [&] { return v * inverse; }, [&] { return as<T>(as<double>(v) / length); });
      });
    }
    case Convex::lp: {
      const auto most = largest(z);
      const auto part = [&](auto v) { return abs(as<double>(v)) / most; };
      const auto root = pow(total(z, [&](auto v) { return pow(part(v), f.p); }), 1 / f.p);
      return each(z, [&](auto v) { return select(most == 0, v, as<T>(as<double>(sign(v)) * pow(part(v) / root, f.p - 1))); });
    }
    case Convex::huber:
      return each(z, [&](auto v) { return clamp(v / e, T(-1), T(1)); });
    case Convex::relativistic:
      return each(z, [&](auto v) { return relativistic(v, e, f.e); });
    case Convex::threshold:
      return each(z, [&](auto v) { return select(abs(v) > e, sign(v), select(v == v, T(0), v)); });
    case Convex::topk:
      keep_largest(z, f.fraction);
      return each(z, [](auto v) { return sign(v); });
    case Convex::nuclear:
      return;  // of a matrix: polar.h
  }
}

template <class T, class Z>
void shape(const LionK& rule, Z& z) {
  to_subgradient<T>(function_of(rule), z);
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
