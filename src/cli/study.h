// What `study`, `compare` and `reproduce` have in common: running a plan in front of the user, then reporting the result.
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "study/plan.h"
#include "study/results.h"

namespace cautious::cli {

struct StudyOptions {
  int jobs = 1;  // processes at a time
  bool quiet = false;
  std::string again;  // the command that continues it
};

// The cores of this machine.
int default_jobs();

// Runs what is left of the plan in `out`, writes its report and prints a table of the losses. The exit code: 0, 1 if runs
// failed, 130/143 if it was interrupted.
int run_and_report(const study::Plan& plan, const std::filesystem::path& out, const StudyOptions& options);

// A study while it runs: on a terminal a table that is redrawn in place, elsewhere a line when a run ends and now and then one
// about all of them.
class StudyTable {
 public:
  StudyTable(bool quiet, int jobs, std::FILE* to = stderr);

  // `saving`: the runs have been told to save and end.
  void show(const std::vector<study::FinishedRun>& runs, const std::vector<double>& progress, bool saving);

 private:
  using Clock = std::chrono::steady_clock;
  double left(const std::vector<study::FinishedRun>& runs, const std::vector<double>& progress);
  void draw(const std::vector<std::string>& lines);
  void print(const std::vector<study::FinishedRun>& runs, const std::string& last);

  bool quiet_, terminal_;
  int jobs_;
  std::FILE* to_;
  Clock::time_point start_ = Clock::now(), counted_ = start_, printed_ = start_;
  double busy_ = 0;                         // seconds of all processes so far
  std::vector<double> first_;               // progress when this began
  std::vector<study::RunStatus> statuses_;  // as last seen
  std::size_t drawn_ = 0;                   // lines on the terminal
};

}  // namespace cautious::cli
