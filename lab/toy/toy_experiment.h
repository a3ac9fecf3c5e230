// `cautious lab toy`: studies as the sections of an experiment.
#pragma once

#include "lab/experiment.h"
#include "lab/toy/toy.h"

namespace cautious::lab {

// `arguments`: what the command line said besides the problem and --out (" --steps 100"), for the commands of the report.
Experiment toy_experiment(const std::vector<Problem>& problems, const ToyOptions& options, const std::string& arguments,
                          const Progress& progress);

// As a shell takes it for one word.
std::string in_shell_quotes(const std::string& text);

}  // namespace cautious::lab
