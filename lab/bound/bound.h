// `cautious lab bound`: Theorem 1, the convergence rate of discrete Adam with CWD (appendix E), with K1 ... K4 as in the proof.
#pragma once

#include <cstddef>
#include <cstdint>

#include <cautious/detail/field.h>

#include "lab/experiment.h"

namespace cautious::lab {

struct BoundOptions {
  std::size_t seeds = 64;  // runs per estimate of the left side
  std::uint64_t seed = 0;
};

inline constexpr Range kBoundSeeds{2, 10000, false, false};

// Throws an Error(Fault::usage) if the number of seeds is out of range.
Experiment run_bound(const BoundOptions& options, const Progress& progress);

}  // namespace cautious::lab
