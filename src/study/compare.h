// The plan behind `cautious compare`: does cautious weight decay help this optimizer on this data, and is it the mask or the
// amount of decay? Arms and contrasts are fixed before any run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "study/plan.h"

namespace cautious::study {

struct Comparison {
  std::string optimizer = "adamw";
  std::string data = "gcide";
  std::string preset = "nano-300k";
  std::size_t seeds = 8, tune_seeds = 2;
  // Of plain decay, besides 0; CWD has 2.5 times as much. None: such that lr times lambda is that of 0.1, 0.3, 1 and 3 with
  // AdamW.
  std::vector<double> lambdas = {};
  std::vector<double> lrs = {};  // to choose from; none: the optimizer's own, good for the nano presets
  std::int64_t steps = 0;        // 0: 20 tokens per parameter
  Overrides settings = {};       // of every run; not what the members above and the arms decide
};

// Arms none, plain and cwd, tuned on seeds of their own, and at the point of cwd its controls: shuffled (its mask without the
// signs) and opposed (the opposite of its mask); for Muon also cwd-momentum (masked by the momentum). A number out of range or
// an unknown name is an Error(Fault::usage) with a suggestion.
Plan compare_plan(const Comparison& comparison);

// The same of external runs, which a program of the user's makes: its data, model and length are its own, and `lambdas` and
// `lrs` must be given, because nothing is known of what suits it. What it reports is said by the settings objective.name, .unit
// and .target.
Plan external_plan(const Comparison& comparison);

// That with two more controls of cwd, random and budget, which repeat what its runs recorded: for programs that record it.
Plan recorded_plan(const Comparison& comparison);

// A line of parse_recipe() as settings: "adamw beta2=0.95" is optimizer.name and optimizer.beta2.
Overrides settings_of_recipe(const std::string& line);

}  // namespace cautious::study
