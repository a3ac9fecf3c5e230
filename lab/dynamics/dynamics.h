// `cautious lab dynamics`: Table 1 in continuous time. Solves every system with and without CWD on random problems from random
// starts, watches H(t) and its analytic derivative, momentum, gradient and the motion on the manifold; and the remarks of
// appendix D.
#pragma once

#include <cstdint>

#include "lab/experiment.h"

namespace cautious::lab {

struct DynamicsOptions {
  std::uint64_t seed = 0;
  std::size_t trials = 12;  // random problems and starts per system
};

Experiment run_dynamics(const DynamicsOptions& options, const Progress& progress);

}  // namespace cautious::lab
