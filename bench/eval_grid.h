// The benchmark of scoring: multiple-choice items whose common beginnings are computed once, next to a plain forward pass over
// each whole text, interleaved in one run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/train_grid.h"

namespace cautious::bench {

struct EvalRow {
  std::string preset = {}, shape = {};
  std::int64_t items = 0;
  int threads = 0;
  double items_per_s = 0, plain_items_per_s = 0, speedup = 0;  // medians; the speedup is the median of the rounds' ratios
  double largest_difference = 0;                               // between the two, of a sum of log-probabilities, relative
};

struct EvalGrid : ModelGrid {
  EvalGrid() : ModelGrid{{"nano-10m"}} { rounds = 5; }
};

void run_eval_grid(const EvalGrid& grid, const std::function<void(const std::string&)>& begin,
                   const std::function<void(const EvalRow&)>& done);

}  // namespace cautious::bench
