// Whether a run fits into the machine's memory, before anything is allocated.
#pragma once

#include "run/config.h"

namespace cautious::train {

// Parameters, gradients, moments and activations of one part of a step, in bytes.
double memory_needed(const run::RunConfig& config);

// Bytes that the system says can be had; infinite where it does not say.
double memory_available();

// An Error(Fault::usage) with both numbers and the keys that help, if it does not fit.
void check_memory(const run::RunConfig& config);

}  // namespace cautious::train
