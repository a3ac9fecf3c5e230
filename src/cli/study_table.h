// A study while it runs: on a terminal a table that is redrawn in place, elsewhere a line when a run ends and now and then one
// about all of them.
#pragma once

#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include "study/results.h"

namespace cautious::cli {

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
