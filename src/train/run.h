// A whole run: data, directory, training, evaluation, checkpoints, metrics, summary.
#pragma once

#include <filesystem>
#include <functional>
#include <string>

#include "base/terminal.h"
#include "run/config.h"
#include "run/metrics.h"
#include "train/state.h"

namespace cautious::train {

// How a run is started and followed.
struct RunRequest {
  run::RunConfig config;
  std::filesystem::path out;
  bool resume = false;  // go on from the newest checkpoint in `out`
};

struct RunWatch {
  base::LiveLine& live;
  std::function<void()> preparing;                  // called while text is tokenized; may throw to give up
  std::function<bool()> stop;                       // asked between steps; true: save and return
  std::function<void(const run::MetricsRow&)> row;  // every row of the metrics; may be empty
  std::function<void(const std::string&)> say;      // one line about something that happened
};

// What the data of a run turned out to be, before anything is written.
struct RunPlan {
  std::int64_t train_tokens, validation_tokens;
  std::string split;
};

// Trains. Before the first step everything that can be wrong has been looked at: the data, the vocabulary, the memory, the
// directory; `planned` is called when all fits. Exceptions leave the last checkpoint as it is.
struct RunResult {
  Outcome outcome;
  RunState state;
  std::string reason;  // why it diverged: "in step 7: the loss is infinite"
};
RunResult run_training(const RunRequest& request, const RunWatch& watch, const std::function<void(const RunPlan&)>& planned);

// The command that goes on with a run, as a shell takes it.
std::string resume_command(const std::filesystem::path& out);

}  // namespace cautious::train
