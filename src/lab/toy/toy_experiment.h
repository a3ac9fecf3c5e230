// `cautious lab toy`: studies as the sections of an experiment.
#pragma once

#include "lab/experiment.h"
#include "lab/toy/toy.h"

namespace cautious::lab {

// `arguments`: what the command line said besides the problem, for the commands of the report.
Experiment toy_experiment(const std::vector<Problem>& problems, const ToyOptions& options, const std::string& arguments,
                          const Progress& progress);

}  // namespace cautious::lab
