// When a run has gone wrong for good: it stops, and its older checkpoints stay.
#pragma once

#include <string>

#include "model/evaluate.h"
#include "train/trainer.h"

namespace cautious::train {

// Each says in words what is wrong, and nothing while all is well. `start`: RMS of the parameters in the first step, 0 if that
// is to come.
std::string fault_of(const TrainStep& step, double start);
// Of the parameters as they are now: a step's report is of those before it.
std::string fault_of_parameters(double rms, double start);
std::string fault_of(const model::Evaluation& evaluation);

}  // namespace cautious::train
