// What decayed in every step of a run: each tensor's density, and in all the budget, the sum of |lr wd x|.
// A control can repeat it: a random mask of the same density, plain decay of the same budget. decay_trace.bin is one line of
// JSON, {"tensors": [...]}, and then one record per step: f32 per tensor, f64 budget, little-endian.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <cautious/optimizer.h>

#include "base/files.h"

namespace cautious::run {

inline constexpr const char* kDecayTrace = "decay_trace.bin";

class DecayTraceWriter {
 public:
  // Records after `last_step` are removed; a new run has last_step 0.
  DecayTraceWriter(const std::filesystem::path& directory, const std::vector<std::string>& tensors, std::int64_t last_step);
  void add(const StepReport& report);

 private:
  std::unique_ptr<base::AppendFile> file_;
};

class DecayTrace {
 public:
  // Of a run directory. Missing, cut off or malformed: an Error(Fault::data) that says which key writes it.
  static DecayTrace read(const std::filesystem::path& directory);

  const std::vector<std::string>& tensors() const { return tensors_; }
  std::int64_t steps() const { return static_cast<std::int64_t>(budgets_.size()); }
  // Steps count from 1.
  double ratio(std::int64_t step, std::size_t tensor) const;
  double budget(std::int64_t step) const;

 private:
  std::vector<std::string> tensors_;
  std::vector<float> ratios_;  // steps x tensors
  std::vector<double> budgets_;
};

}  // namespace cautious::run
