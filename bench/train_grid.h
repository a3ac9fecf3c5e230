// The training benchmark: our Transformer and optimizer next to the same model in plain libtorch operations with
// torch::optim::AdamW, and the machine's own matrix product, interleaved in one run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cautious::bench {

struct TrainRow {
  std::string preset = {};
  std::int64_t batch = 0, sequence = 0;
  int threads = 0;
  double tokens_per_s = 0, plain_tokens_per_s = 0, speedup = 0;  // medians; the speedup is the median of the rounds' ratios
  double gflops = 0, sgemm_gflops = 0, fraction = 0;             // of a step's matrix products; of the machine; their ratio
  double optimizer_fraction = 0;                                 // of our step's time
  double peak_rss_mb = 0;                                        // of ours alone, before the plain model exists
};

// What the benchmarks of training have in common, of text and of images.
struct ModelGrid {
  std::vector<std::string> presets;
  int threads = 2;
  int rounds = 9;
};

struct TrainGrid : ModelGrid {
  TrainGrid() : ModelGrid{{"nano-1m", "nano-10m", "gemma-15m"}} {}
  bool recompute = false;
};

void run_train_grid(const TrainGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const TrainRow&)>& done);

}  // namespace cautious::bench
