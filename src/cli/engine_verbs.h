// The verbs of cautious-engine, seen from `cautious`: their names and one line each. Help and options are the engine's.
#pragma once

#include "cli/verbs.h"

namespace cautious::cli {

inline constexpr const char* kTrainLine = "Train a Transformer (now: --dry-run, what a preset would cost).";
inline constexpr const char* kBenchTrainLine = "Training speed beside plain libtorch and the machine's own matrix product.";

// Adds `train` and `bench train` (after `bench` itself), which replace this process by the engine with the same arguments.
void forward_engine_verbs(CLI::App& app, Verb& chosen, char** argv);

}  // namespace cautious::cli
