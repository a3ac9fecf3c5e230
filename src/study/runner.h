// Running a plan: every run as a process of its own, side by side; finished ones are never repeated.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "study/plan.h"
#include "study/results.h"

namespace cautious::study {

struct RunnerOptions {
  std::filesystem::path program;  // cautious-train
  int jobs = 1;                   // processes at once
  std::function<bool()> stop;     // asked often; true: the runs are told to save (SIGTERM), then run_study returns
  // Called a few times a second and at every change; `progress` is the part done of every run, 0..1.
  std::function<void(const std::vector<FinishedRun>& runs, const std::vector<double>& progress)> watch;
};

// Makes or continues the study in `directory` (plan.toml, runs/, log.txt). A run that is done is left alone; one that was
// interrupted goes on from its checkpoint; one that failed or diverged is recorded and does not stop the others, but those that
// follow it fail. A directory of another plan, one that is not empty and no study, or one that another process works on is an
// Error(Fault::usage or failure) and nothing changes. Returns false if `stop` ended it.
bool run_study(const Plan& plan, const std::filesystem::path& directory, const RunnerOptions& options);

}  // namespace cautious::study
