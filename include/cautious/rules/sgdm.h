// Gradient descent with momentum, appendix B.1:  m = beta m + (1 - beta) g,  u = m.
// The averaged form: PyTorch's m = beta m + g is this one with lr / (1 - beta).
#pragma once

#include <string_view>
#include <tuple>

#include <cautious/detail/field.h>
#include <cautious/detail/scalar.h>

namespace cautious {

struct Sgdm {
  static constexpr std::string_view name = "sgdm";
  double beta = 0.9;
  static constexpr auto fields() { return std::tuple{Field{"beta", &Sgdm::beta, kMomentum, "momentum coefficient"}}; }
};

namespace CAUTIOUS_ISA {

template <class T>
auto direction(const Sgdm& s, std::int64_t) {
  return [b = T(s.beta), r = T(1 - s.beta)](auto g, auto& m) { return m = mix(m, g, b, r); };
}

}  // namespace CAUTIOUS_ISA
}  // namespace cautious
