// A whole run: data, memory, directory, training, evaluation, checkpoints, metrics, summary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/terminal.h"
#include "ranks/world.h"
#include "run/checkpoint.h"
#include "run/config.h"
#include "run/metrics.h"

namespace cautious::train {

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
};
const Measures& measures_of(run::TaskKind task);

// Of the trained model, on a benchmark: "eval/hellaswag/acc_norm".
struct Score {
  std::string name;
  double value, error;  // a fraction of the items, and its standard error
};

// What a run knows besides its parameters: state.json of a checkpoint, and summary.json of the run.
struct RunState {
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
  std::vector<std::pair<std::string, std::string>> config = {};  // what it was computed with (run::computing_keys)
  // Of summary.json alone.
  std::vector<Score> scores = {};  // when the run is done
  int ranks = 1;
  std::int64_t optimizer_bytes = 0;  // state in the first rank
  ranks::Traffic traffic = {};       // of the first rank, for each step of this process
};

// Nothing done, nothing evaluated.
RunState start_of(run::TaskKind task);
std::string to_json(const RunState& state, run::TaskKind task);
// That of a checkpoint that a run with this configuration continues on this data, whole as it was saved; otherwise an Error.
RunState read_checkpoint(const run::CheckpointInfo& saved, const run::RunConfig& config, std::int64_t data);

// What the user has changed since, in words; empty: nothing. A key that is not what the checkpoint was computed with and is not
// among `changed` is an Error(Fault::usage). Checkpoints of older programs do not say what theirs were.
std::string changes_since(const RunState& before, const run::RunConfig& config, const std::vector<std::string>& changed);

enum class Outcome { done, stopped, diverged };

// The text of summary.json. `objective` is the last number of that measure, null unless the run is done.
std::string summary_json(const run::RunConfig& config, const RunState& state, Outcome outcome);

// The text of summary.csv of an image run, as timm writes it: a line for every evaluation among the rows.
std::string summary_csv(const std::vector<run::MetricsRow>& rows);

// How a run is started and watched.
struct RunRequest {
  run::RunConfig config;
  std::filesystem::path out;
  bool resume = false;                    // continue from the newest checkpoint in `out`
  std::vector<std::string> changed = {};  // keys that need not be those of the checkpoint
};

struct RunWatch {
  base::LiveLine& live;
  std::function<void()> preparing;                  // called while data is prepared; may throw to give up
  std::function<bool()> stop;                       // asked between steps; true: save and return
  std::function<void(const run::MetricsRow&)> row;  // every row of the metrics; may be empty
  std::function<void(const std::string&)> say;      // one line about something that happened
};

// What the data of a run turned out to be, before anything is written.
struct RunPlan {
  std::int64_t training, validation;  // tokens or images
  std::string split;
  struct Share {
    std::string name;
    double fraction;
    std::int64_t tokens;
  };
  std::vector<Share> shares;  // of a mixture of texts
};

// Trains. Before the first step everything that can be wrong has been looked at: the data, the model that is to hold it, the
// memory, the directory; `planned` is called when all fits. Exceptions leave the last checkpoint as it is. Of several ranks
// the first has the directory, and is told what is planned.
struct RunResult {
  Outcome outcome;
  RunState state;
  std::string reason;  // why it diverged: "in step 7: the loss is infinite"
};
RunResult run_training(const RunRequest& request, const RunWatch& watch, ranks::World& world,
                       const std::function<void(const RunPlan&)>& planned);

// The command that continues a run, as a shell takes it.
std::string resume_command(const std::filesystem::path& out);

// An Error unless the batch can be divided among so many ranks.
void check_ranks(const run::RunConfig& config, int ranks);

}  // namespace cautious::train
