// Running a plan: every run as a process of its own, side by side; finished ones are never repeated. Any number of processes,
// also on several machines, can do so in one directory at the same time.
#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "study/agenda.h"
#include "study/directory.h"
#include "study/plan.h"
#include "study/results.h"

namespace cautious::study {

struct RunnerOptions {
  std::filesystem::path program;  // cautious-train
  std::string command = {};       // a line for /bin/sh, instead of the program: makes external runs (external_run.h)
  int jobs = 1;                   // processes at once
  std::function<bool()> stop;     // asked often; true: the runs are told to save (SIGTERM), then run_study returns
  // Called a few times a second and at every change; `progress` is the fraction done of every run, 0..1.
  std::function<void(const std::vector<FinishedRun>& runs, const std::vector<double>& progress)> watch;
  Agenda::Read read = read_run;
  Shard shard = {};
  Lease lease = {};
  Worker worker = this_worker();
};

struct StudyEnd {
  Results results;
  bool finished = true;  // false: `stop` ended it; runs that wait although it is true are not in the shard, or need others that
                         // are not
};

// Makes or continues the study in `directory`; `runs` are those of expand(plan). A run that is done is left alone; one that was
// interrupted continues from its checkpoint; one that failed or diverged is recorded and does not stop the others, but controls
// of it fail. Runs that other processes make are waited for, and continued if these die. A directory of another plan, or one
// that is not empty and not a study, is an Error(Fault::usage or failure) and nothing changes.
StudyEnd run_study(const Plan& plan, std::vector<PlannedRun> runs, const std::filesystem::path& directory,
                   const RunnerOptions& options);

}  // namespace cautious::study
