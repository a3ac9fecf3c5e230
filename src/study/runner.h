// Running a plan: every run as a process of its own, side by side; finished ones are never repeated.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "study/plan.h"
#include "study/results.h"

namespace cautious::study {

// The directory of a study: plan.toml, runs/<folder>/ (run directories), configs/<folder>.toml (what the runs were started
// with), logs/<folder>.txt (what they said), log.txt, .lock.
class StudyDirectory {
 public:
  // A new study, or one to continue with this plan, which replaces the one that is there; held until destroyed. Refused with an
  // Error, and unchanged, if it is not empty and not a study, if it has runs and none of them is one of `runs`, or if another
  // process works on it.
  StudyDirectory(const std::filesystem::path& path, const Plan& plan, const std::vector<PlannedRun>& runs);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path run(const PlannedRun& run) const { return path_ / "runs" / run.folder; }
  std::filesystem::path config(const PlannedRun& run) const { return path_ / "configs" / (run.folder + ".toml"); }
  std::filesystem::path said(const PlannedRun& run) const { return path_ / "logs" / (run.folder + ".txt"); }

  // Appends the line to log.txt, with the time in front.
  void log(std::string_view line) const;

 private:
  std::filesystem::path path_;  // absolute
  base::DirectoryLock lock_;
};

struct RunnerOptions {
  std::filesystem::path program;  // cautious-train
  int jobs = 1;                   // processes at once
  std::function<bool()> stop;     // asked often; true: the runs are told to save (SIGTERM), then run_study returns
  // Called a few times a second and at every change; `progress` is the fraction done of every run, 0..1.
  std::function<void(const std::vector<FinishedRun>& runs, const std::vector<double>& progress)> watch;
  // Asked once about every run at the start, and once about a run that has ended.
  std::function<FinishedRun(const std::filesystem::path& folder, PlannedRun run)> read = read_run;
};

struct StudyEnd {
  Results results;
  bool finished = true;  // false: `stop` ended it
};

// Makes or continues the study in `directory`; `runs` are those of expand(plan). A run that is done is left alone; one that was
// interrupted continues from its checkpoint; one that failed or diverged is recorded and does not stop the others, but controls
// of it fail. A directory of another plan, one that is not empty and not a study, or one that another process works on is an
// Error(Fault::usage or failure) and nothing changes.
StudyEnd run_study(const Plan& plan, std::vector<PlannedRun> runs, const std::filesystem::path& directory,
                   const RunnerOptions& options);

}  // namespace cautious::study
