// The decoding benchmark: tokens per second, one at a time, next to how often per second the machine can read as many bytes as
// the weights that a token needs, interleaved in one run.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "bench/train_grid.h"

namespace cautious::bench {

struct DecodeRow {
  std::string preset = {};
  std::int64_t parameters = 0;
  int threads = 0;
  double tokens_per_s = 0, limit_tokens_per_s = 0, ratio = 0;  // medians; the ratio is the median of the rounds'
};

void run_decode_grid(const ModelGrid& grid, const std::function<void(const std::string&)>& begin,
                     const std::function<void(const DecodeRow&)>& done);

}  // namespace cautious::bench
