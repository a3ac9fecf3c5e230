// A step report as columns of the metrics: in total, for each kind of tensor (embedding, attention, mlp, vectors), and for
// every tensor where asked.
#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include <cautious/optimizer.h>

namespace cautious::train {

class Telemetry {
 public:
  // Names in the order of the report's tensors. `each` adds columns for every tensor.
  Telemetry(const std::vector<std::string>& names, bool each);

  // Total: "ratio", "ratio_strict", "rms_x", "rms_g", "rms_u", "decay_budget"; of a kind or tensor: "attention/ratio", ...
  std::vector<std::string> columns() const;
  void append(const StepReport& report, std::vector<std::pair<std::string, double>>& values) const;

 private:
  std::vector<std::string> parts_;                 // kinds that occur, then tensors; each the front of a column's name
  std::vector<std::vector<std::size_t>> members_;  // tensors of each part
};

}  // namespace cautious::train
