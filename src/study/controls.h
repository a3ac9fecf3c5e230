// Runs that follow others: what they are configured with, and which runs are of no use to each other any more.
#pragma once

#include <cstddef>
#include <filesystem>
#include <vector>

#include "study/results.h"
#include "study/study_directory.h"

namespace cautious::study {

class Controls {
 public:
  // All three must outlive it; `runs` are those of the plan, as they change.
  Controls(const StudyDirectory& directory, const Plan& plan, const std::vector<FinishedRun>& runs)
      : directory_(directory), plan_(plan), runs_(runs) {}

  // The run's configuration, with the directory of the run it follows.
  run::RunConfig config_of(const PlannedRun& run) const;

  // A run that was no one's to follow wrote no trace, and one cannot be had later; a control that has not ended reads the trace
  // where its configuration says, and the study may have been moved.
  bool must_begin_again(std::size_t run) const;

 private:
  bool is_awaited(std::size_t run) const;

  const StudyDirectory& directory_;
  const Plan& plan_;
  const std::vector<FinishedRun>& runs_;
};

}  // namespace cautious::study
