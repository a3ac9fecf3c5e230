// Selective projection decay (SPD, arXiv 2411.01713), the one policy that is not of Algorithm 1's form. With y = x - lr u and
// the anchor x0: if <g, x - x0> > 0 then x <- y - wd r (y - x0), r = clamp(1 - |x - x0| / |y - x0|, 0, 1), else x <- y. wd is
// not multiplied by the learning rate, so couplings do not apply.
#pragma once

#include <string_view>
#include <tuple>

namespace cautious {

struct Selective {
  static constexpr std::string_view name = "selective";
  static constexpr bool anchored = true;
  static constexpr auto fields() { return std::tuple{}; }
};

}  // namespace cautious
