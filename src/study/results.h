// What a study's directory says: its plan and its runs, finished or not. Reports are a function of this alone.
#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "study/measure.h"
#include "study/plan.h"

namespace cautious::study {

enum class RunStatus { waiting, running, done, diverged, failed, left_out };  // left out: its point was not chosen

struct FinishedRun {
  PlannedRun run;
  RunStatus status = RunStatus::waiting;
  double loss = 0;                    // the measure, on the validation data, at the end; NaN unless done
  std::array<double, 2> beside = {};  // what the measure has in tables beside it, likewise
  double decay_budget = 0, seconds = 0;
  std::string failure;                                               // why a failed run failed, in one line
  double parameters = 0, seen = 0;                                   // tokens or images; 0 until a summary says
  std::vector<std::pair<std::string, std::string>> provenance = {};  // "cpu" and the like, as the summary says
  std::vector<std::pair<std::string, double>> scores = {};           // of benchmarks: "hellaswag acc_norm", 0.42
  std::string worker = {};  // while running: another process that makes it, "node7:4711"
};

struct Results {
  std::filesystem::path directory;
  Plan plan;
  std::vector<FinishedRun> runs;  // in the order of expand()
};

// What the runs are judged by: the same for all runs of a plan.
Measure measure_of(const std::vector<FinishedRun>& runs);

std::filesystem::path folder_of(const Results& results, const FinishedRun& run);

// "done", "diverged" or "stopped", as the text of summary.json says; anything else, and a number in it that cannot be, is an
// Error(Fault::data) that names the file.
std::string outcome_of(const std::string& summary, const std::filesystem::path& file);

// What a run's directory says, which need not be there.
FinishedRun read_run(const std::filesystem::path& folder, PlannedRun run);

// All of a directory with plan.toml and runs/; anything else is an Error(Fault::usage).
Results read_results(const std::filesystem::path& directory);

// Losses of an arm at a point, one per seed of the plan, NaN where a run is not done; and per tuning seed.
std::vector<double> losses_of(const Results& results, const std::string& arm, const Overrides& point);
std::vector<double> tuning_losses_of(const Results& results, const std::string& arm, const Overrides& point);
// Points of the arm in the order of the grid; one empty point where it has none.
std::vector<Overrides> points_of(const Results& results, const std::string& arm);

// How well runs over the seeds do: the number that are done, and their mean loss (NaN of none). Ahead is who has more done,
// then who has the lower mean: means over different seeds are not comparable, and a point where runs diverge is not the best.
struct Standing {
  std::size_t done = 0;
  double mean = 0;
  bool ahead_of(const Standing& other) const;
};
Standing standing_of(const std::vector<double>& losses);

// The point that an arm is judged at: its only one, or the one ahead on the tuning seeds, of the arm or of the one that
// chooses for it.
struct Choice {
  Overrides point;                 // of no use unless decided
  std::vector<std::string> edges;  // the keys of which it has the first or the last number of several, but for no weight decay
  bool decided = false;            // all tuning runs have ended by themselves
};
Choice choose(const Plan& plan, const std::vector<FinishedRun>& runs, const std::string& arm);
Choice chosen_point(const Results& results, const std::string& arm);

// The choices of all arms, and candidates that were not chosen left out; `runs` are those of the plan.
std::map<std::string, Choice> settle(const Plan& plan, std::vector<FinishedRun>& runs);

// The chosen point, or, while it is not decided, the one ahead on the seeds of the plan.
Overrides best_point(const Results& results, const std::string& arm);
std::vector<Overrides> best_points(const Results& results);  // of every arm of the plan

}  // namespace cautious::study
