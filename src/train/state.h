// What a run knows besides its parameters: state.json of a checkpoint and summary.json of the run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>

#include "model/evaluate.h"
#include "run/config.h"

namespace cautious::train {

struct RunState {
  static constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  std::int64_t step = 0;
  std::int64_t data = 0;    // fingerprint of the training stream
  double seconds = 0;       // of all processes that worked on the run
  double loss_sum = 0;      // since the last row of the metrics
  std::int64_t losses = 0;  // steps in loss_sum
  double decay_budget = 0;  // sum over all steps
  double start_norm = 0;    // RMS of all parameters in the first step
  model::Evaluation last{kNone, kNone, kNone, 0};
  double best_loss = kNone;  // lowest validation loss, at best_step
  std::int64_t best_step = 0;
};

std::string to_json(const RunState& state);
RunState read_state(const std::filesystem::path& file);

enum class Outcome { done, stopped, diverged };

// The text of summary.json. `objective` is the last validation loss, null unless the run is done.
std::string summary_json(const run::RunConfig& config, const RunState& state, Outcome outcome);

}  // namespace cautious::train
