// The plan behind `cautious compare`: does cautious weight decay help this optimizer on this data, and is it the mask or the
// amount of decay? Arms and contrasts are fixed before any run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/plan.h"

namespace cautious::study {

struct Comparison {
  std::string optimizer = "adamw";
  std::string data = "gcide";
  std::string preset = "nano-300k";
  std::size_t seeds = 3;
  std::vector<double> lambdas = {};  // none: such that lr times lambda is that of 0.1, 0.4 and 1 with AdamW
  std::int64_t steps = 0;            // 0: 20 tokens per parameter
  double lr = 0;                     // 0: the optimizer's own, good for the nano presets
};

// Arms none, plain, cwd, random (with the density of cwd) and budget (plain decay that spends what cwd spends), each but none
// at every lambda. A number out of range or an unknown name is an Error(Fault::usage) with a suggestion.
Plan compare_plan(const Comparison& comparison);

}  // namespace cautious::study
