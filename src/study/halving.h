// Successive halving, an affordable form of a grid search: short runs at every point, then the best third of the points with
// twice the steps, and so on. Every stage is a study of its own.
#pragma once

#include <string>
#include <vector>

#include "study/results.h"

namespace cautious::study {

// How many points of so many go on: a third, rounded up.
std::size_t kept(std::size_t points);

// The plan's arms at the points of its grid as arms of their own, "adamw+lr-0.01+beta1-0.9", and no grid; a single arm's name
// is left out.
Plan without_grid(const Plan& plan);

// The stage after these results: the arms that are ahead (study/results.h), best first, with twice the steps. Arms that
// have no finished run are out. An Error(Fault::failure) if none has one. `plan` is that of the results.
Plan next_stage(const Plan& plan, const Results& results);

}  // namespace cautious::study
