// A run that a program of the user's makes, as a process or in this one: what it is told, and what it reports. It is trained
// elsewhere; known here are its optimizer, its seed and the number that it ends with.
#pragma once

#include <cstdint>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "study/plan.h"

namespace cautious::study {

struct ExternalRun {
  std::string folder;               // the name of its directory
  std::filesystem::path directory;  // free for files of its own
  std::string arm;
  std::string recipe;  // a line of parse_recipe()
  double lr = 0;
  std::string rest;  // where `recipe` works on matrices alone, that of all other tensors; else empty
  double rest_lr = 0;
  std::string decay;  // of `recipe`, as is the next: 0 where nothing decays
  double weight_decay = 0;
  std::uint64_t seed = 0;
  bool decay_trace = false;  // a control will repeat its decay: it has to be recorded (run/decay_trace.h)
  // Directory of the reference run whose decay this one has to repeat; at most one is set (run/reference_run.h).
  std::string density_from, budget_from;
};

// As the run's configuration says.
ExternalRun external_run(const PlannedRun& run, const std::filesystem::path& directory);

// Makes the directory as that of a run that has begun. An earlier attempt's own files stay, but for its result.
void begin(const ExternalRun& run, const run::RunConfig& config);

// What a command is told: CAUTIOUS_RECIPE, CAUTIOUS_LR, ..., one variable for each member but the last three: a command neither
// records nor repeats.
std::vector<std::string> environment_of(const ExternalRun& run);

struct ExternalResult {
  double objective = 0;  // not finite: it diverged
  double seconds = 0;
  double decay_budget = std::numeric_limits<double>::quiet_NaN();  // NaN: not known
};

// What a command has reported: result.json in its directory, {"<objective>": 2.31}, with "decay_budget" if it likes; or else
// the last line that it said, a number. Anything else is an Error(Fault::data).
ExternalResult reported(const ExternalRun& run, const std::string& objective, const std::filesystem::path& said);

// The run's summary.json: it has ended.
void finish(const ExternalRun& run, const ExternalResult& result);

}  // namespace cautious::study
