// What a run is going to be, before it begins: shape, sizes, tokens, operations, memory, time.
#pragma once

#include <string>
#include <vector>

#include "train/run.h"
#include "run/config.h"

namespace cautious::cli {

// One line each, "label  words". The data is not known in a dry run without data.path.
std::vector<std::string> banner(const run::RunConfig& config, const train::RunPlan* data);

}  // namespace cautious::cli
