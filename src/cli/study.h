// What `study`, `compare` and `reproduce` have in common: running a plan in front of the user, then reporting the result.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "study/agenda.h"
#include "study/plan.h"
#include "study/results.h"

namespace cautious::cli {

struct StudyOptions {
  int jobs = 1;  // processes at a time
  bool quiet = false;
  std::string again;                // the command that continues it
  std::string command = {};         // of external runs
  std::filesystem::path plan = {};  // the file that the user gave, for messages
  study::Shard shard = {};
  std::string opening = {};  // said before the first run, once the data are in order
};

// The cores of this machine.
int default_jobs();

// "12 min", "3.5 h".
std::string duration_text(double hours);

// Prints the runs of a plan, or those of a shard, with those that the study in `out` has made, if there is one, and what the
// others take with so many at a time; returns 0.
int list_runs(const study::Plan& plan, std::vector<study::PlannedRun> runs, int jobs, const std::filesystem::path& out,
              const study::Shard& shard = {});

// --out of a study; an Error if it is a file or a run.
void check_study_out(const std::filesystem::path& out);
// What run_and_report() would say of the data, for a dry run (checks.h). `plan`: as in StudyOptions.
void check_data(const std::vector<study::PlannedRun>& runs, const std::filesystem::path& plan = {});

struct StudyReport {
  int code = 0;  // to exit with: 0, 1 if runs failed, 130/143 if it was interrupted
  study::Results results;
};

// Runs what is left of the plan in `out`, together with other processes that do so, writes its report and prints a table of the
// losses; a shard does so only if it has all results. `runs` are those of the plan.
StudyReport run_and_report(const study::Plan& plan, std::vector<study::PlannedRun> runs, const std::filesystem::path& out,
                           const StudyOptions& options);

}  // namespace cautious::cli
