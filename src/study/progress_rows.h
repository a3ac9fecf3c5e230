// A study's runs as lines of text: what a person sees while they run.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "study/results.h"

namespace cautious::study {

// "cwd", "cwd weight_decay=0.1".
std::string name_of(const std::string& arm, const Overrides& point);
std::string_view word_of(RunStatus status);

// A line for each arm and point, or for each run of a small study: name, runs done, bar, mean loss, what else there is to say.
// At most `height` lines, one at least: those that are all done are left out first, then those that wait, and the last line
// counts them. The bars are as long as `width` columns allow, but not too short to be seen.
std::vector<std::string> progress_rows(const std::vector<FinishedRun>& runs, const std::vector<double>& progress,
                                       std::size_t width, std::size_t height);

// "5/18 runs done, 1 failed   31%".
std::string overall(const std::vector<FinishedRun>& runs, const std::vector<double>& progress);

// "cwd weight_decay=0.1 seed=0: done, validation loss 2.5034, 1:05".
std::string ending_of(const FinishedRun& run);

}  // namespace cautious::study
