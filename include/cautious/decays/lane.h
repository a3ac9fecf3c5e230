// What a decay may look at to decide about one coordinate.
#pragma once

#include <cstdint>

#include <cautious/scalar.h>

namespace cautious::CAUTIOUS_ISA {

template <class T>
struct Lane {
  T u;                  // the direction as applied
  T g;                  // the gradient
  T pull;               // what decay shrinks: x, or x - x0 with an anchor
  std::int32_t chance;  // uniform in [0, 2^24)
  std::int32_t odds;    // density * 2^24
};

}  // namespace cautious::CAUTIOUS_ISA
