// A study while it runs: its runs as lines of text, and how long the rest takes.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "study/results.h"

namespace cautious::study {

std::string_view word_of(RunStatus status);

// A line for each arm and point, or for each run of a small study: name, runs done, bar, mean of the measure, state.
// At most `height` lines, one at least: those that are all done are left out first, then those that wait, and the last line
// counts them. The bars are as long as `width` columns allow, but not too short to be seen.
std::vector<std::string> progress_rows(const std::vector<FinishedRun>& runs, const std::vector<double>& progress,
                                       std::size_t width, std::size_t height);

// "5/18 runs done, 1 failed   31%".
std::string overall(const std::vector<FinishedRun>& runs, const std::vector<double>& progress);

// Who else is at work, on what: "node7:4711 makes cwd seed=0, plain seed=0, and 2 more; node8:312 makes cwd seed=1". Empty:
// nobody.
std::string elsewhere(const std::vector<FinishedRun>& runs);

// "cwd weight_decay=0.1 seed=0: done, validation loss 2.5034, 1:05".
std::string ending_of(const FinishedRun& run);

// The mean of the measure on the tuning seeds and on the others, of every arm and point; a line each.
std::string losses_table(const Results& results);

// Seconds until no run is left, `jobs` of them at once: by the seconds a step of the arm's finished runs took, else of all
// finished runs, else by `seconds_per_step`. NaN while none of these is known.
double seconds_left(const std::vector<FinishedRun>& runs, const std::vector<double>& progress, int jobs,
                    double seconds_per_step);

}  // namespace cautious::study
