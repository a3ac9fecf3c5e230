// The directory of a study: plan.toml, runs/<folder>/ (run directories), configs/<folder>.toml (what the runs were started
// with), logs/<folder>.txt (what they said), log.txt, .lock.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "study/plan.h"

namespace cautious::study {

class StudyDirectory {
 public:
  // A new study, or one to continue with this plan, which replaces the one that is there; held until destroyed. Refused with an
  // Error, and unchanged, if it is not empty and no study, if it has runs and none of them is one of `runs`, or if another
  // process works on it.
  StudyDirectory(const std::filesystem::path& path, const Plan& plan, const std::vector<PlannedRun>& runs);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path run(const PlannedRun& run) const { return path_ / "runs" / run.folder; }
  std::filesystem::path config(const PlannedRun& run) const { return path_ / "configs" / (run.folder + ".toml"); }
  std::filesystem::path words(const PlannedRun& run) const { return path_ / "logs" / (run.folder + ".txt"); }

  // Appends the line to log.txt, with the time in front.
  void log(std::string_view line) const;

 private:
  std::filesystem::path path_;  // absolute
  base::DirectoryLock lock_;
};

// The last step in a run directory's metrics, 0 if there is none yet. Reads the end of the file only.
std::int64_t last_step(const std::filesystem::path& run);

// The last line that is not blank, 4096 bytes of it at most; empty if there is none.
std::string last_line(const std::filesystem::path& file);

}  // namespace cautious::study
