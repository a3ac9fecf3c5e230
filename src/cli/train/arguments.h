// What `train` and `finetune` are given, and the configuration that it makes.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ranks/place.h"
#include "run/config.h"

namespace cautious::cli {

using Setting = std::pair<std::string, std::string>;

struct TrainArguments {
  std::string preset, init, out, hardware;
  std::vector<std::string> changes;  // of --resume: "train.steps=400"
  std::vector<std::string> configs;  // later ones win
  int world = 0;                     // ranks, of a dry run
  std::vector<std::string> data;     // of finetune
  bool finetune = false, resume = false, dry_run = false, print_config = false, quiet = false, json = false;
  std::vector<Setting> overrides;
};

// The changes as settings.
std::vector<Setting> changes_in(const TrainArguments& args);

// As it is read, with notes about what is not used on standard error.
run::ReadConfig read_arguments(const TrainArguments& args);

// As it is written down: nothing that depends on where the program is started or on the machine.
run::RunConfig config_of(const TrainArguments& args, const ranks::Place& place);

// The same, with all that a run needs beyond a configuration.
run::RunConfig config_to_train(const TrainArguments& args, const ranks::Place& place);

// An Error if cautious does not train it.
void check_task(const run::RunConfig& config);

}  // namespace cautious::cli
