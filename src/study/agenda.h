// What is left to do of a study: which run may start next, and what a run that has ended means for the others, here or in
// another process that works on the same study. It starts nothing itself; runner.h does so with processes, external.h leaves it
// to its caller.
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

// The runs of one of several processes that work on copies of a study, and see nothing of each other until these are brought
// together.
struct Shard {
  std::size_t number = 1, count = 1;  // the first of one: all runs
};
// For each run, whether it is the shard's. Runs of the same folder belong together, a control to its reference run, and the
// points of an arm on a seed that it is judged on, of which one will be chosen.
std::vector<bool> in_shard(const std::vector<PlannedRun>& runs, const Shard& shard);

class Agenda {
 public:
  // Asked once about every run at the start, and about a run that was claimed or has ended, here or elsewhere.
  using Read = std::function<FinishedRun(const std::filesystem::path& folder, PlannedRun run)>;

  // The directory and the plan must outlive it; `runs` are those of expand(plan). Runs that failed or were interrupted wait
  // again.
  Agenda(StudyDirectory& directory, const Plan& plan, std::vector<PlannedRun> runs, Read read, const Shard& shard = {});

  const std::vector<FinishedRun>& runs() const { return runs_; }
  std::vector<FinishedRun> take_runs() { return std::move(runs_); }

  const std::vector<bool>& in_shard() const { return in_shard_; }

  // What other processes have begun and ended since it was last asked.
  void refresh();

  // The first run that may start now, by its position; it is claimed. None: all have ended, or wait for those that are running.
  // Runs that never can are failed on the way: controls of a failed reference run, candidates of an arm whose tuning failed.
  std::optional<std::size_t> next();

  // Whether it is worthwhile to refresh and to ask for the next one again, though none of ours is running: other processes are
  // at work. Without them a shard's runs can wait for those of others.
  bool waits() const;

  // Its configuration, with the directory of its reference run.
  run::RunConfig config_of(std::size_t run) const;

  void begin(std::size_t run);

  // Whether a run that has begun is still ours; if not, its process must write nothing more (study/claims.h).
  bool holds(std::size_t run);

  struct Ending {
    bool interrupted = false;
    std::string said = {};  // why there is no result, where there is none
  };
  // A run that has begun has ended. What its directory says counts; if there is no result, it failed, or waits again. One that
  // is not ours any more is left to its owner.
  void conclude(std::size_t run, const Ending& ending);

 private:
  bool must_begin_again(std::size_t run, RunStatus status) const;
  bool is_awaited(std::size_t run) const;
  bool may_start(std::size_t run);
  bool is_at_work(const std::string& folder) const;
  bool claim(std::size_t run);
  bool ended_elsewhere(std::size_t run);
  void settle_after(std::size_t run);
  void fail(std::size_t run, const std::string& why);
  void fail_unbegun(std::size_t run, const std::string& why);

  StudyDirectory& directory_;
  const Plan& plan_;
  Read read_;
  std::vector<FinishedRun> runs_;
  std::vector<bool> in_shard_;
  std::vector<std::filesystem::file_time_type> failures_;  // when the runs had failed before this began
  std::map<std::string, Choice> choices_;                  // of every arm
  bool changed_ = false;                                   // since next() began, by another process
};

}  // namespace cautious::study
