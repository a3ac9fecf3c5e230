// state.json of a checkpoint: what a run knows besides its parameters.
#pragma once

#include <cstdint>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "run/checkpoint.h"
#include "run/config.h"

namespace cautious::run {

// The numbers of an evaluation, in the order of their columns in the metrics, and how many examples they are of.
struct Evaluation {
  std::vector<double> numbers;
  std::int64_t count = 0;  // 0: nothing was evaluated yet

  double loss() const { return numbers.front(); }
};

// What is measured of a task's model.
struct Measures {
  std::vector<std::string> columns;  // of the metrics; the first is the loss, lower is better in the one that decides
  std::size_t objective;             // of the columns
  std::string count;                 // what the examples are called

  std::string count_key() const { return "val_" + count; }
  std::string best_key() const { return "best_" + columns[objective]; }
};
const Measures& measures_of(TaskKind task);

struct SavedState {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::int64_t step = 0;
  std::int64_t data = 0;    // fingerprint of the training stream
  double seconds = 0;       // of all processes that worked on the run
  double loss_sum = 0;      // since the last row of the metrics
  std::int64_t losses = 0;  // steps in loss_sum
  double decay_budget = 0;  // sum over all steps
  double start_norm = 0;    // RMS of all parameters in the first step
  Evaluation last;
  double best = kNone;  // of the objective, at best_step
  std::int64_t best_step = 0;
  std::vector<std::pair<std::string, std::string>> config = {};  // what it was computed with (computing_keys())
};

// Nothing done, nothing evaluated.
SavedState start_of(TaskKind task);
// NaN and infinities are null.
std::string to_json(const SavedState& state, TaskKind task);
// That of a checkpoint of a run of so many steps, whole as it was saved (seal.h); otherwise an Error(Fault::data).
SavedState read_state(const CheckpointInfo& saved, TaskKind task, std::int64_t steps);

}  // namespace cautious::run
