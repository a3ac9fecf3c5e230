// A study as plain data: a base configuration, arms, a grid, seeds, and the contrasts that were fixed beforehand. From a TOML
// file:
//
//   title = "Does CWD help AdamW?"
//   seeds = [0, 1, 2]
//   [base]                                    # a run's configuration (run/config.h)
//   model.preset = "nano-100k"
//   data.path = "gcide"
//   [grid]                                    # every arm at every point, but arms with grid = false
//   "optimizer.weight_decay" = [0.1, 1.0]
//   [[arm]]
//   name = "plain"
//   optimizer.decay = "decoupled"
//   [[arm]]
//   name = "cwd"
//   optimizer.decay = "cautious"
//   [[arm]]
//   name = "random"                           # the mask's density of each tensor and step from the cwd run of the same
//   density_of = "cwd"                        # seed and point; or budget_of = "cwd": plain decay with that run's budget
//   [[contrast]]
//   a = "cwd"
//   b = "plain"
//   best = true                               # each at its best grid point, chosen on the other seeds
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "run/config.h"

namespace cautious::study {

using Overrides = std::vector<std::pair<std::string, std::string>>;  // "optimizer.lr", "1e-3"

struct Arm {
  std::string name;  // letters, digits, '-', '_', '+', '.'
  Overrides overrides;
  std::string density_of, budget_of;  // at most one is set: a control that follows the runs of that arm
  bool grid = true;
};

struct Axis {
  std::string key;
  std::vector<std::string> values;
};

// Mean over the seeds of a - b. Primary ones are reported first, all others are exploratory.
struct Contrast {
  std::string a, b;
  bool best = false;  // of each arm, for each seed, the grid point that was best on the other seeds; else point by point
  bool primary = true;
};

// A number of the paper to stand beside ours.
struct PaperNumber {
  std::string what;    // "AdamW, 338M, validation loss"
  std::string number;  // as printed there
};

struct Plan {
  std::string title, about;  // about: the paper's setting and ours, a few sentences
  Overrides base;
  std::vector<Arm> arms;
  std::vector<Axis> grid;
  std::vector<std::uint64_t> seeds;
  std::vector<Contrast> contrasts;
  std::vector<PaperNumber> paper;
};

// Unknown keys (with suggestion), an empty grid axis, arms of the same name or the same configuration, a control of an arm that
// is not there or is a control itself, a contrast of unknown arms, no seeds or the same one twice, a key in base, grid and arm
// that contradict each other (an arm's override of a grid key): an Error(Fault::usage) with the file and line.
Plan read_plan(const std::filesystem::path& file);
// The same text again: read_plan() of it gives the same plan.
std::string to_toml(const Plan& plan);

// One run of a plan.
struct PlannedRun {
  std::string arm;
  Overrides point;  // of the grid; empty where the arm has none
  std::uint64_t seed = 0;
  run::RunConfig config;             // complete; for a control without the directory it follows
  std::string hash;             // of the configuration (and of the followed run's): 16 hex digits
  std::string folder;           // "cwd_weight_decay=0.1_seed=0_<hash>", below runs/
  std::ptrdiff_t follows = -1;  // place of the run it follows
};

// Every run, those that others follow first. Configurations are resolved and checked here, so a bad one is an Error before
// anything runs. All arms of a seed share train.seed: initial weights and data order are the same.
std::vector<PlannedRun> expand(const Plan& plan);

}  // namespace cautious::study
