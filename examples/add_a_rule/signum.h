// Signum, sign descent with momentum:  m = beta m + (1 - beta) g,  u = sign(m).
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>

namespace cautious {

struct Signum {
  static constexpr std::string_view name = "signum";
  double beta = 0.9;
  static constexpr auto fields() { return std::tuple{Field{"beta", &Signum::beta, kMomentum, "momentum coefficient"}}; }
};

namespace CAUTIOUS_ISA {

template <class T>
auto direction(const Signum& s, std::int64_t) {
  return [b = T(s.beta), r = T(1 - s.beta)](auto g, auto& m) {
    m = mix(m, g, b, r);
    return sign(m);
  };
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
