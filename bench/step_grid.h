// The step benchmark: the grid of cases, measured interleaved, as rows.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "bench/rounds.h"
#include "bench/step_case.h"

namespace cautious::bench {

struct StepRow {
  std::string scenario;  // "flat", or what differs from it
  std::string optimizer, decay, dtype;
  Norms norms;
  std::size_t n, tensors;
  int threads;
  double bytes_per_param;
  Times ns;                // per parameter
  Times limit;             // the same of the larger of traffic and sqrt + div, in the same rounds
  std::string limited_by;  // "traffic" or "floor"
  Ratio ratio;             // to the limit
  std::string reference;   // what `relative` compares with, measured in the same rounds
  Ratio relative;          // to the reference
};

// flat: the three decays over one tensor. The others are situations that slow optimizers down, AdamW + CWD (and Lion for norms
// and bf16) next to a flat, staggered, ordinary twin.
std::vector<std::string_view> scenario_names();

struct StepGrid {
  std::vector<std::string> scenarios = {};   // empty: all
  std::vector<std::size_t> sizes = {};       // empty: each scenario's own
  std::vector<std::string> optimizers = {};  // empty: each scenario's own
  std::vector<int> threads{1, 2};
  Pages pages = Pages::small;
  int rounds = 31;
};

// Calls `done` with each row as its group of cases is finished, and `begin` with a line about what comes next.
void run_step_grid(const StepGrid& grid, const std::function<void(const std::string&)>& begin,
                   const std::function<void(const StepRow&)>& done);

}  // namespace cautious::bench
