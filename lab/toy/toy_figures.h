// A toy study as figures: the plane with contours, minimisers, Pareto front, box and paths for two variables, f and the size of
// x over the steps for more.
#pragma once

#include <string>
#include <vector>

#include "lab/toy/toy.h"
#include "report/page.h"

namespace cautious::lab {

// "toy_deep_linear": what the names of a study's files begin with.
std::string file_stem(const Problem& problem);

// One line of what all arms share.
std::string settings(const ToyOptions& options);

std::vector<report::Figure> toy_figures(const ToyStudy& study);

}  // namespace cautious::lab
