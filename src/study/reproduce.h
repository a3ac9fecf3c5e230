// The paper's experiments as plans: runs/*.toml, which the program carries. Such a file is a plan at the scale `day`, and says
// besides which figures and tables it reproduces and what changes at another scale:
//
//   reproduces = ["fig-lambda"]
//   stages = 3                                # of successive halving (study/halving.h); 1 unless given
//   [scale.quick]                             # or [scale.full]
//   seeds = 2
//   about = "a sentence more"
//   base.train.steps = 400
//   grid."optimizer.weight_decay" = [0.1, 1]  # instead of the whole grid
//   arm."lion+cwd".optimizer.lr = 1e-3
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "study/plan.h"

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

}  // namespace cautious::study
