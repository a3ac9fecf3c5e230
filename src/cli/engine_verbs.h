// The verbs of cautious-engine, seen from `cautious`: their names and one line each. Help and options are the engine's.
#pragma once

#include <filesystem>

#include "cli/verbs.h"

namespace cautious::cli {

inline constexpr const char* kTrainLine = "Train a Transformer on text.";
inline constexpr const char* kSampleLine = "Let a trained model continue a text.";
inline constexpr const char* kEvalLine = "Loss, bits per byte and accuracy of a trained model on a text.";
inline constexpr const char* kBenchTrainLine = "Training speed beside plain libtorch and the machine's own matrix product.";

// cautious-engine: beside this program, as built, or where it is installed; otherwise an Error that says how to get it.
std::filesystem::path engine_program();

// Adds `train`, `sample`, `eval` and `bench train` (after `bench` itself), which replace this process by the engine with the
// same arguments.
void forward_engine_verbs(CLI::App& app, Verb& chosen, char** argv);

}  // namespace cautious::cli
