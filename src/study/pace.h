// How long the rest of a study takes.
#pragma once

#include <vector>

#include "study/results.h"

namespace cautious::study {

// Seconds until no run is left, `jobs` of them at once: by the seconds a step of the arm's finished runs took, else of all
// finished runs, else by `seconds_per_step`. NaN while none of these is known.
double seconds_left(const std::vector<FinishedRun>& runs, const std::vector<double>& progress, int jobs,
                    double seconds_per_step);

}  // namespace cautious::study
