// The benchmark of image classifiers: ours with its optimizer next to the same model in plain libtorch operations with
// torch::optim::AdamW, interleaved in one run; and how fast the loader prepares their images.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace cautious::bench {

struct ImageRow {
  std::string preset = {};
  std::int64_t batch = 0;
  int threads = 0;
  double images_per_s = 0, plain_images_per_s = 0, speedup = 0;  // medians; the speedup is the median of the rounds' ratios
  double loader_images_per_s = 0;                                // of one worker that augments
  double gflops = 0;                                             // of our convolutions and matrix products
};

struct ImageGrid {
  std::vector<std::string> presets{"vit-tiny-4", "resnet-20"};
  int threads = 2;
  int rounds = 9;
};

void run_image_grid(const ImageGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const ImageRow&)>& done);

}  // namespace cautious::bench
