// Lion, appendix B.3:  u = sign(b1 m + (1-b1) g),  then m = b2 m + (1-b2) g.
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>

namespace cautious {

struct Lion {
  static constexpr std::string_view name = "lion";
  static constexpr bool unit = true;  // entries of u are 1, -1, 0 or NaN
  double beta1 = 0.9, beta2 = 0.99;
  static constexpr auto fields() {
    return std::tuple{Field{"beta1", &Lion::beta1, kMomentum, "interpolation of the direction"},
                      Field{"beta2", &Lion::beta2, kMomentum, "coefficient of the momentum"}};
  }
};

namespace CAUTIOUS_ISA {

template <class T>
auto direction(const Lion& l, std::int64_t) {
  return [b1 = T(l.beta1), r1 = T(1 - l.beta1), b2 = T(l.beta2), r2 = T(1 - l.beta2)](auto g, auto& m) {
    const auto u = sign(mix(m, g, b1, r1));
    m = mix(m, g, b2, r2);
    return u;
  };
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
