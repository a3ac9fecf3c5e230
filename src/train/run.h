// A whole run: data, memory, directory, training, evaluation, checkpoints, metrics, summary.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/terminal.h"
#include "ranks/world.h"
#include "run/checkpoint.h"
#include "run/config.h"
#include "run/metrics.h"
#include "run/saved_state.h"

namespace cautious::train {

// Of the trained model, on a benchmark: "eval/hellaswag/acc_norm".
struct Score {
  std::string name;
  double value, error;  // a fraction of the items, and its standard error
};

// What a run knows besides its parameters: what a checkpoint saves, and what summary.json says besides.
struct RunState : run::SavedState {
  std::vector<Score> scores = {};  // when the run is done
  int ranks = 1;
  std::int64_t optimizer_bytes = 0;  // state in the first rank
  ranks::Traffic traffic = {};       // of the first rank, for each step of this process
};

// That of a checkpoint that a run with this configuration continues on this data, whole as it was saved; otherwise an Error.
run::SavedState read_checkpoint(const run::CheckpointInfo& saved, const run::RunConfig& config, std::int64_t data);

// Whether a checkpoint can be continued with another value of the key, and all such keys, as in "schedule.*".
bool can_change(std::string_view key);
std::vector<std::string> changeable_keys();

// What the user has changed since, in words; empty: nothing. A key that is not what the checkpoint was computed with and is not
// among `changed` is an Error(Fault::usage). Checkpoints of older programs do not say what theirs were.
std::string changes_since(const run::SavedState& before, const run::RunConfig& config, const std::vector<std::string>& changed);
// The same before the first checkpoint, since its config.toml was written.
std::string changes_since(const std::filesystem::path& file, const run::RunConfig& config,
                          const std::vector<std::string>& changed);

enum class Outcome { done, stopped, diverged };

// The columns of the metrics.
std::vector<std::string> columns_of(run::TaskKind task, const std::vector<std::string>& telemetry);

// The text of summary.json. `objective` is the last number of that measure, null unless the run is done.
std::string summary_json(const run::RunConfig& config, const RunState& state, Outcome outcome);
// Whether there is one that says "done".
bool says_done(const std::filesystem::path& summary);

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
// An Error that the run would end with before its first step, of what it continues or follows; nothing is changed.
void check_request(const RunRequest& request);

}  // namespace cautious::train
