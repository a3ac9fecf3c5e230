// The benchmark of image classifiers: ours with its optimizer next to the same model in plain libtorch operations with
// torch::optim::AdamW, interleaved in one run; and how fast the loader prepares their images.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/train_grid.h"

namespace cautious::bench {

struct ImageRow {
  std::string preset = {};
  std::int64_t batch = 0;
  int threads = 0;
  double images_per_s = 0, plain_images_per_s = 0, speedup = 0;  // medians; the speedup is the median of the rounds' ratios
  double loader_images_per_s = 0;                                // of one worker that augments
  double gflops = 0;                                             // of our convolutions and matrix products
};

void run_image_grid(const ModelGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const ImageRow&)>& done);

}  // namespace cautious::bench
