#include "train/memory.h"

#include <fstream>
#include <limits>
#include <string>

#include <fmt/format.h>

#include <cautious/error.h>

namespace cautious::train {

double memory_needed(const run::RunConfig& config) {
  const std::int64_t part = config.train.batch_size / config.train.grad_accum;
  const model::ModelSize size = size_of(config.model.shape, part, run::sequence_length(config), config.model.recompute);
  return static_cast<double>(size.parameter_bytes) + static_cast<double>(size.activation_bytes);
}

double memory_available() {
  std::ifstream info("/proc/meminfo");
  for (std::string word; info >> word;) {
    double kilobytes = 0;
    if (word == "MemAvailable:" && info >> kilobytes) return kilobytes * 1024;
  }
  return std::numeric_limits<double>::infinity();
}

void check_memory(const run::RunConfig& config) {
  constexpr double kGiB = 1024.0 * 1024 * 1024;
  const double needed = memory_needed(config), available = memory_available();
  if (needed <= available) return;
  throw Error(
      Fault::usage,
      fmt::format("train.batch_size {} in {} part{} of {} tokens needs about {:.1f} GiB, {:.1f} GiB are available; raise "
                  "train.grad_accum, set model.recompute=true, or lower train.batch_size or train.seq_len",
                  config.train.batch_size, config.train.grad_accum, config.train.grad_accum == 1 ? "" : "s",
                  run::sequence_length(config), needed / kGiB, available / kGiB));
}

}  // namespace cautious::train
