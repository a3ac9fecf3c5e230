// The paper's experiments as plans: runs/*.toml, which the program carries. Such a file is a plan at the scale `day`, and says
// besides which figures and tables it reproduces and what changes at another scale:
//
//   reproduces = ["fig-lambda"]
//   stages = 3                                # of successive halving; 1 unless given
//   [scale.quick]                             # or [scale.full]
//   seeds = 2
//   about = "a sentence more"
//   base.train.steps = 400
//   tune_seeds = 1
//   grid."optimizer.weight_decay" = [0.1, 1]  # instead of the whole grid
//   arm."lion+cwd".optimizer.lr = 1e-3
//   arm."lion+cwd".grid."optimizer.weight_decay" = [0.25, 2.5]
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "study/plan.h"
#include "study/results.h"

namespace cautious::study {

enum class Scale { quick, day, full };

constexpr std::array<std::string_view, 3> names_of(Scale) { return {"quick", "day", "full"}; }

struct BundledPlan {
  std::string name;  // "fig-lambda-adamw", of runs/fig-lambda-adamw.toml
  std::string text;
};
std::vector<BundledPlan> bundled_plans();  // by name

struct Experiment {
  std::string name;
  std::vector<std::string> reproduces;
  Plan plan;
  int stages = 1;
};

// The plan at that scale, which expand() takes. What is wrong with the text is an Error(Fault::usage) with its line.
Experiment read_experiment(const BundledPlan& bundled, Scale scale);

// Trains on other data, and says so in the place of what the plan says about its own.
void train_on(Plan& plan, const std::string& data);

// What the plans reproduce, each name once, sorted.
std::vector<std::string> reproducible();
// All plans of that name, which is one of reproducible() or of a plan itself; otherwise an Error with a suggestion.
std::vector<Experiment> experiments(std::string_view name, Scale scale);

// What a plan takes, from the sizes of its models alone.
struct Cost {
  std::size_t runs = 0;
  double core_hours = 0;  // one core of a desktop processor for each run
  double gpu_hours = 0;   // a GPU of 989 TFLOP/s in bf16 that does 40% of it
  double memory = 0;      // bytes of the largest run: parameters, gradients, moments and activations
};
Cost cost_of(const Experiment& experiment);
// The same where the runs of its plan are known, with or without a grid.
Cost cost_of(const Experiment& experiment, const std::vector<PlannedRun>& runs);

// Hours of so many processes at a time.
double hours_of(const Plan& plan, const std::vector<PlannedRun>& runs, int jobs);

// Successive halving, an affordable form of a grid search: short runs at every point, then the best third of the points with
// twice the steps, and so on. Every stage is a study of its own.

// How many of the points continue: a third, rounded up.
std::size_t kept(std::size_t points);

// The plan's arms at the points of its grid as arms of their own, "adamw+lr-0.01+beta1-0.9", and no grid; a single arm's name
// is left out.
Plan without_grid(const Plan& plan);

// The stage after these results: the arms that are ahead, best first, with twice the steps. Arms that have no finished run are
// out. An Error(Fault::failure) if none has one.
Plan next_stage(const Results& results);

}  // namespace cautious::study
