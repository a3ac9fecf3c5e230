// The polar benchmark: our orthogonalization next to the naive one and the speed of the machine's own matrix product,
// interleaved.
#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <cautious/polar.h>

namespace cautious::bench {

struct PolarRow {
  std::string list = {};  // name of a list of different shapes; then rows and cols are 0
  int rows = 0, cols = 0, count = 0, threads = 0;
  std::string schedule = {};
  double ms = 0, naive_ms = 0, speedup = 0;  // medians; the speedup is the median of the rounds' own ratios
  double sgemm_gflops = 0;                   // of a 1024 x 1024 product on these threads, in the same rounds
  double effective_gflops = 0;               // the naive form's operations in our time
  double bound = 0;                          // our time over that of our own operations at sgemm_gflops
  double error = 0;                          // relative to the same in double, the worst of the list
  double elementwise = 0;                    // fraction of a Muon step that is not orthogonalization, at most
};

struct PolarGrid {
  std::vector<std::pair<int, int>> sizes{{256, 256}, {512, 512}, {768, 768}, {768, 3072}, {1024, 4096}, {2048, 2048}};
  bool gpt2 = true;  // the list of GPT-2 small too
  std::vector<int> threads{1, 2};
  Polar how;
  int rounds = 5;
};

// Calls `done` with each row when it is finished, and `begin` with a line about what comes next.
void run_polar_grid(const PolarGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const PolarRow&)>& done);

}  // namespace cautious::bench
