// Muon, appendix B.4:  M = beta M + G,  O = NewtonSchulz(M),  u = scale * O.  With nesterov, O is of beta M + G with the new M.
// The kernel yields M; the orthogonal factor is the rule's shaping stage (polar.h). The scale is part of u, so the decay keeps
// the base learning rate.
#pragma once

#include <array>
#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>
#include <cautious/polar.h>

namespace cautious {

enum class Nesterov { off, on };

constexpr auto names_of(Nesterov) { return std::array<std::string_view, 2>{"off", "on"}; }

struct Muon {
  static constexpr std::string_view name = "muon";
  double beta = 0.95;
  Nesterov nesterov = Nesterov::off;
  Polar polar = {};
  static constexpr auto fields() {
    return std::tuple{Field{"beta", &Muon::beta, kMomentum, "momentum coefficient"},
                      Choice{"nesterov", &Muon::nesterov, "look ahead by one momentum step"}, Part{&Muon::polar}};
  }
};

inline Shaping shaping(const Muon&) { return Shaping::matrix; }

inline const Polar& polar_of(const Muon& rule) { return rule.polar; }

namespace CAUTIOUS_ISA {

template <class T>
auto direction(const Muon& rule, std::int64_t) {
  const bool ahead = rule.nesterov == Nesterov::on;
  return [b = T(rule.beta), on_m = ahead ? T(rule.beta) : T(1), on_g = ahead ? T(1) : T(0)](auto g, auto& m) {
    m = fma(b, m, g);
    return fma(on_m, m, on_g * g);
  };
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
