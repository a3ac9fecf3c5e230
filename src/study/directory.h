// The directory that a study is made in.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "study/claims.h"
#include "study/plan.h"

namespace cautious::study {

// The directory of a study: plan.toml, runs/<folder>/ (run directories), configs/<folder>.toml (what the runs were started
// with), logs/<folder>.txt (what they said), log.txt, claims/<folder> (who makes the run now). Any number of processes may work
// in it, also on several machines; each makes the runs that it has claimed.
class StudyDirectory {
 public:
  // A new study, or one to continue with this plan, which replaces the one that is there. Refused with an Error, and unchanged,
  // if it is not empty and not a study, if it has runs and none of them is one of `runs`, or if another process works on it by
  // another plan.
  StudyDirectory(const std::filesystem::path& path, const Plan& plan, const std::vector<PlannedRun>& runs, Lease lease = {},
                 const Worker& worker = this_worker());

  // What it would refuse; nothing is made.
  static void check(const std::filesystem::path& path, const Plan& plan, const std::vector<PlannedRun>& runs);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path run(const PlannedRun& run) const { return path_ / "runs" / run.folder; }
  std::filesystem::path config(const PlannedRun& run) const { return path_ / "configs" / (run.folder + ".toml"); }
  std::filesystem::path said(const PlannedRun& run) const { return path_ / "logs" / (run.folder + ".txt"); }

  Claims& claims() { return claims_; }  // by the names of the runs' folders

  // Throws if another process has put another plan in the place of this one.
  void check_plan() const;

  // Appends the line to log.txt, with the time and this process in front.
  void log(std::string_view line) const;

 private:
  std::filesystem::path path_;  // absolute
  std::string plan_;            // its text
  Claims claims_;
};

}  // namespace cautious::study
