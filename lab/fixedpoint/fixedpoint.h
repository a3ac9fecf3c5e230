// `cautious lab fixedpoint`: section 2.2 and appendix C. Which problem does an optimizer solve? AdamW and Lion: min f with
// |x|_inf <= 1/lambda; Muon: ||X||_op <= 1/lambda; SGD: f + lambda |x|^2 / 2; with CWD all of them: f itself.
#pragma once

#include <cstdint>
#include <string>

#include <cautious/detail/field.h>

#include "lab/experiment.h"

namespace cautious::lab {

struct FixedpointOptions {
  std::int64_t steps = 20000;
  std::uint64_t seed = 0;
};

inline constexpr Range kFixedpointSteps{10000, 1e6, false, false};  // with fewer, the arms are not at rest

// Throws an Error(Fault::usage) that names the value and the valid range.
void check(const FixedpointOptions& options);

// That repeats the run.
std::string command_of(const FixedpointOptions& options);

Experiment run_fixedpoint(const FixedpointOptions& options, const Progress& progress);

}  // namespace cautious::lab
