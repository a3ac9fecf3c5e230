// The directory that a study is made in.
#pragma once

#include <filesystem>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "study/plan.h"

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

}  // namespace cautious::study
