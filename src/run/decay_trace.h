// What decayed in every step of a run: each tensor's density and budget, the sum of |lr wd x|. A control can repeat both.
// decay_trace.bin is one line of JSON, {"format": 2, "tensors": [...]}, and then one record per step: an f32 density per
// tensor, then an f64 budget per tensor, little-endian. Format 1 had no number and one budget for all tensors.
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
  void sync() const { file_->sync(); }  // returns when all steps are on the disk

 private:
  std::unique_ptr<base::AppendFile> file_;
};

class DecayTrace {
 public:
  // Of a run directory. Missing, malformed or of format 1: an Error(Fault::data) that says what to do.
  static DecayTrace read(const std::filesystem::path& directory);

  const std::vector<std::string>& tensors() const { return tensors_; }
  std::int64_t steps() const { return steps_; }
  // Steps count from 1.
  double density(std::int64_t step, std::size_t tensor) const { return densities_.at(index(step, tensor)); }
  double budget(std::int64_t step, std::size_t tensor) const { return budgets_.at(index(step, tensor)); }

 private:
  std::size_t index(std::int64_t step, std::size_t tensor) const {
    return static_cast<std::size_t>(step - 1) * tensors_.size() + tensor;
  }

  std::vector<std::string> tensors_;
  std::int64_t steps_ = 0;
  std::vector<float> densities_;  // steps x tensors, as are the budgets
  std::vector<double> budgets_;
};

}  // namespace cautious::run
