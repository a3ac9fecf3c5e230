// Verbs that live in programs of their own, seen from `cautious`: their names and one line each. Help and options are those of
// the other program: cautious-train, which loads libtorch, and cautious-lab.
#pragma once

#include <filesystem>
#include <string>

#include "cli/verbs.h"

namespace cautious::cli {

inline constexpr const char* kTrainLine = "Train a Transformer on text.";
inline constexpr const char* kSampleLine = "Let a trained model continue a text.";
inline constexpr const char* kEvalLine = "Loss, bits per byte and accuracy of a trained model on a text.";
inline constexpr const char* kBenchTrainLine = "Training speed beside plain libtorch and the machine's own matrix product.";
inline constexpr const char* kLabLine = "The paper's theory, run: claims with numbers, figures, one page.";

// "cautious-train" or "cautious-lab": beside this program, as built, or where it is installed; otherwise an Error that says how
// to get it.
std::filesystem::path sibling_program(const std::string& name);

// Adds `train`, `sample`, `eval`, `lab` and `bench train` (after `bench` itself), which replace this process by the other
// program with the same arguments.
void add_forwarded(CLI::App& app, Verb& chosen, char** argv);

}  // namespace cautious::cli
