// The step benchmark: which cases, measured interleaved, as rows.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace cautious::bench {

struct StepRow {
  std::string scenario;  // "flat", or what differs from it
  std::string optimizer, decay, dtype;
  std::size_t n, tensors;
  int threads;
  double ns_per_param;  // median over interleaved rounds
  double bytes_per_param;
  double limit_ns_per_param;  // larger of traffic and sqrt + div, in the same rounds
  double ratio;               // ns_per_param / limit_ns_per_param
  std::string reference;      // what `relative` compares with, measured in the same rounds
  double relative;            // ns_per_param / reference's
};

struct StepGrid {
  std::vector<std::size_t> sizes{10'000, 1'000'000, 30'000'000, 100'000'000};
  std::vector<int> threads{1, 2};
  std::vector<std::string> optimizers{"sgdm", "adamw", "lion"};
  int rounds = 15;
};

// Calls `done` with each row as its group of cases is finished, and `begin` with a line about what comes next.
void run_step_grid(const StepGrid& grid, const std::function<void(const std::string&)>& begin,
                   const std::function<void(const StepRow&)>& done);

}  // namespace cautious::bench
