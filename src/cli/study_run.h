// What `study`, `compare` and `reproduce` have in common: running a plan before the user's eyes, then saying what came of it.
#pragma once

#include <filesystem>
#include <string>

#include "study/plan.h"

namespace cautious::cli {

struct StudyOptions {
  int jobs = 1;  // processes at once
  bool quiet = false;
  std::string again;  // the command that goes on with it
};

// The cores of this machine.
int default_jobs();

// Runs what is left of the plan in `out`, writes its report and prints a table of the losses. The exit code: 0, 1 if runs
// failed, 130/143 if it was interrupted.
int run_and_report(const study::Plan& plan, const std::filesystem::path& out, const StudyOptions& options);

}  // namespace cautious::cli
