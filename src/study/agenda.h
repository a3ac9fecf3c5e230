// What is left to do of a study: which run may start next, and what a run that has ended means for the others. It starts
// nothing itself; runner.h does so with processes, external.h leaves it to its caller.
#pragma once

#include <cstddef>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "run/config.h"
#include "study/directory.h"
#include "study/results.h"

namespace cautious::study {

class Agenda {
 public:
  // Asked once about every run at the start, and once about a run that has ended.
  using Read = std::function<FinishedRun(const std::filesystem::path& folder, PlannedRun run)>;

  // The directory and the plan must outlive it; `runs` are those of expand(plan). Runs that failed or were interrupted wait
  // again.
  Agenda(const StudyDirectory& directory, const Plan& plan, std::vector<PlannedRun> runs, Read read);

  const std::vector<FinishedRun>& runs() const { return runs_; }
  std::vector<FinishedRun> take_runs() { return std::move(runs_); }

  // The first run that may start now, by its position. None: all have ended, or wait for those that are running. Runs that
  // never can are failed on the way: controls of a failed reference run, candidates of an arm whose tuning failed.
  std::optional<std::size_t> next();

  // Its configuration, with the directory of its reference run.
  run::RunConfig config_of(std::size_t run) const;

  void begin(std::size_t run);

  struct Ending {
    bool interrupted = false;
    std::string said = {};  // why there is no result, where there is none
  };
  // A run that has begun has ended. What its directory says counts; if there is no result, it failed, or waits again.
  void conclude(std::size_t run, const Ending& ending);

 private:
  void make_ready(std::size_t run);
  bool must_begin_again(std::size_t run) const;
  bool is_awaited(std::size_t run) const;
  bool may_start(std::size_t run);
  bool is_at_work(const std::string& folder) const;
  void fail(std::size_t run, const std::string& why);

  const StudyDirectory& directory_;
  const Plan& plan_;
  Read read_;
  std::vector<FinishedRun> runs_;
  std::map<std::string, Choice> choices_;  // of every arm
};

}  // namespace cautious::study
