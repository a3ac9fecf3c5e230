// Adam, appendix B.5:  m = b1 m + (1-b1) g,  v = b2 v + (1-b2) g^2,  u = m_hat / (sqrt(v_hat) + eps)
// with m_hat = m / (1 - b1^t) = c1 m and v_hat = v / (1 - b2^t) = c2 v, computed as u = m / (sqrt(v) sqrt(c2)/c1 + eps/c1).
// eps/c1 is at least the smallest normal number, so that 0/0 is 0 when eps = 0.
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>

namespace cautious {

struct Adam {
  static constexpr std::string_view name = "adam";
  double beta1 = 0.9, beta2 = 0.999, eps = 1e-8;
  static constexpr auto fields() {
    return std::tuple{Field{"beta1", &Adam::beta1, kMomentum, "coefficient of the first moment"},
                      Field{"beta2", &Adam::beta2, kMomentum, "coefficient of the second moment"},
                      Field{"eps", &Adam::eps, kNonnegative, "added to the denominator"}};
  }
};

namespace CAUTIOUS_ISA {

template <class T>
auto direction(const Adam& a, std::int64_t t) {
  const double c1 = unbias(a.beta1, t), c2 = unbias(a.beta2, t);
  const T eps = T(a.eps / c1);
  return InTwoParts{
      [b1 = T(a.beta1), r1 = T(1 - a.beta1), b2 = T(a.beta2), r2 = T(1 - a.beta2)](auto g, auto& m, auto& v) {
        m = mix(m, g, b1, r1);
        v = mix(v, g * g, b2, r2);
        return sqrt(v);
      },
      [k = T(sqrt(c2) / c1), e = eps > kSmallest<T> ? eps : kSmallest<T>](auto root, auto m) { return m / fma(k, root, e); }};
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
