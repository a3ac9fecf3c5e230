// Asks any decay whether it looks at the whole tensor first, and the odds by bins of size that one of them wants to see.
#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include <cautious/decays.h>
#include <cautious/detail/size_bins.h>

#include "kernels/kernels.h"

namespace cautious {

namespace CAUTIOUS_ISA {

inline bool looks_first(const Decay& decay) {
  return std::visit([]<class D>(const D&) { return kLooksFirst<D>; }, decay);
}

// Whether the decay is not of Algorithm 1's form; then the part of the way back that it goes.
inline bool projects(const Decay& decay) {
  return std::visit([]<class D>(const D&) { return kProjects<D>; }, decay);
}
inline double projection_of(const Decay& decay, const kernels::SeenNumbers& seen) {
  return std::visit(
      [&]<class D>(const D& d) {
        if constexpr (kProjects<D>) return projection(d, seen);
        return 0.0;
      },
      decay);
}

}  // namespace CAUTIOUS_ISA

namespace optim {

inline bool is_binned(const Decay& decay) {
  return std::visit([]<class D>(const D&) { return kBinned<D>; }, decay);
}

// Of a tensor, by bins of size: how many coordinates, how many of them cautious decay would strike, and from that the odds.
struct SizeBins {
  std::vector<std::int64_t> all, decayed;
  std::vector<std::int32_t> odds;  // of 2^24
};

inline SizeBins empty_bins() {
  return {std::vector<std::int64_t>(kSizeBins), std::vector<std::int64_t>(kSizeBins), std::vector<std::int32_t>(kSizeBins)};
}

// Bins of few coordinates would tell the signs of each: from the largest size down they are joined into groups of at least 64,
// what is left at the end with the group before it. Zero stays alone.
void find_odds(SizeBins& bins);

}  // namespace optim
}  // namespace cautious
