// The data of a run before there is one.
#pragma once

#include <functional>
#include <string>

#include "run/config.h"
#include "train/run.h"

namespace cautious::train {

using Progress = std::function<void(const std::string& what, double fraction)>;

// Opens the data as the run would, and closes it again. Whatever is wrong with it is an Error, also too little for a sequence.
RunPlan plan_of_data(const RunRequest& request, const Progress& progress);

}  // namespace cautious::train
