// The fixed-point equations of appendix C under cautious decay, tried out: which (λx, g) of one coordinate satisfy them?
#pragma once

#include <cstddef>

namespace cautious::lab::fixedpoint {

struct CaseworkCount {
  std::size_t solutions = 0;
  std::size_t nonzero = 0;              // of these, with sides that are not 0
  double example_y = 0, example_g = 0;  // one of those
};

// g / (|g| + eps) = -1(g y >= 0) y, for several eps.
CaseworkCount count_adam();

// Appendix C prints the equation with a sign that does not follow from Algorithm 1.
//   as_printed        -grad K(-g) = 1(grad K(-g) y <= 0) y
//   of_the_algorithm   grad K(-g) = 1(grad K(-g) y <= 0) y
enum class Sign { as_printed, of_the_algorithm };

// For K = |z| and huber.
CaseworkCount count_lion_k(Sign sign);

}  // namespace cautious::lab::fixedpoint
