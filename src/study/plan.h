// A study as plain data: a base configuration, arms, a grid, seeds, and the contrasts that were fixed in advance. From a TOML
// file:
//
//   title = "Does CWD help AdamW?"
//   objective = "eval/hellaswag/acc_norm"     # instead of the validation loss (study/measure.h)
//   figure = "activation_ratio"               # the report opens with it (study/report.h)
//   seeds = [0, 1, 2]                         # the arms are judged on these
//   tune_seeds = 2                            # grid points are chosen on others: 100000 and 100001
//   [base]                                    # a run's configuration (run/config.h)
//   model.preset = "nano-100k"
//   data.path = "gcide"
//   [grid]                                    # every arm at every point, but arms with grid = false
//   "optimizer.weight_decay" = [0.1, 1.0]
//   [[arm]]
//   name = "plain"
//   optimizer.decay = "decoupled"
//   [[arm]]
//   name = "cwd"
//   optimizer.decay = "cautious"
//   grid."optimizer.weight_decay" = [0.25, 2.5]  # instead of the plan's
//   [[arm]]
//   name = "shuffled"
//   optimizer.decay = "shuffled"
//   point_of = "cwd"                          # at the grid point that is chosen for cwd
//   [[arm]]
//   name = "random"                           # the mask's density of each tensor and step from the cwd run of the same
//   density_of = "cwd"                        # seed and point; or budget_of = "cwd": plain decay with that run's budget
//   [[contrast]]
//   a = "cwd"
//   b = "plain"
//   best = true                               # each at its best grid point on the tuning seeds
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/toml.h"
#include "run/config.h"
#include "study/measure.h"

namespace cautious::study {

using Overrides = std::vector<std::pair<std::string, std::string>>;  // "optimizer.lr", "1e-3"

struct Axis {
  std::string key;
  std::vector<std::string> values;
};

struct Arm {
  std::string name;  // letters, digits, '-', '_', '+', '.'
  Overrides overrides;
  std::string density_of, budget_of;  // at most one is set: a control, with the runs of that arm as its reference runs
  bool grid = true;
  std::vector<Axis> axes = {};  // instead of the plan's grid
  std::string point_of = {};    // judged at the point that is chosen for that arm

  const std::string& reference() const { return density_of.empty() ? budget_of : density_of; }  // empty: not a control
  const std::string& chooser() const {  // the arm that its point is chosen for
    return !point_of.empty() ? point_of : !reference().empty() ? reference() : name;
  }
};

// Mean over the seeds of a - b. Primary ones are reported first, all others are exploratory.
struct Contrast {
  std::string a, b;
  bool best = false;  // each arm at its chosen point; else point by point
  bool primary = true;
};

// A number of the paper, shown beside ours.
struct PaperNumber {
  std::string what;    // "AdamW, 338M, validation loss"
  std::string number;  // as printed there
};

// Where the parts of a plan are in its file, for error messages. A part is named by words: "seeds", "base optimizer.lr",
// "grid optimizer.lr", "arm 0", "arm 0 density_of", "contrast 1". A plan that comes from no file has no lines.
class PlanLines {
 public:
  PlanLines() = default;
  explicit PlanLines(std::string file) : file_(std::move(file)) {}

  void set(std::string part, unsigned line) { lines_.insert_or_assign(std::move(part), line); }

  // "plan.toml:7" of the part, or of the one that it is in; "plan.toml" of one that is not there; empty without a file.
  std::string where(std::string_view part) const;
  std::string in_line(std::string_view part) const;  // " in line 7", where it is known
  [[noreturn]] void refuse(std::string_view part, const std::string& message) const;

  // What the call returns; its Error with where(part) in front.
  template <class Call>
  auto at(std::string_view part, const Call& call) const {
    return file_.empty() ? call() : base::with_context(where(part), call);
  }

 private:
  unsigned line_of(std::string_view part) const;

  std::string file_;
  std::map<std::string, unsigned, std::less<>> lines_;
};

struct Plan {
  std::string title, about;  // about: the paper's setting and ours, a few sentences
  Overrides base;
  std::vector<Arm> arms;
  std::vector<Axis> grid;
  std::vector<std::uint64_t> seeds;  // the arms are judged on these
  std::vector<Contrast> contrasts;
  std::vector<PaperNumber> paper;
  std::vector<std::uint64_t> tune_seeds = {};  // grid points are chosen on these, and nothing is judged on them
  std::string objective = {};                  // what runs are judged by; empty: their task's own
  std::string figure = {};                     // that the report opens with; empty: the prespecified differences
  PlanLines lines = {};
};

// What `tune_seeds = count` means: far from the seeds 0, 1, 2, ... so that these can be added to.
std::vector<std::uint64_t> tuning_seeds(std::size_t count);

// What the file says. What is wrong with its form is an Error(Fault::usage) with file and line; what is wrong with the plan
// itself is one of expand().
Plan read_plan(const std::filesystem::path& file);
Plan read_plan(const base::TomlValue& top, const std::string& file);
// Makes the paths of runs absolute, so that the plan means the same wherever it is read: those of files that are in `folder`,
// or else where the program was started. Names of known sets stay.
void settle_paths(Plan& plan, const std::filesystem::path& folder);
// The same text again: read_plan() of it gives the same plan.
std::string to_toml(const Plan& plan);

// The keys of a run in a table and in its sections, in the order of the file, but for the table's own `others`.
std::vector<base::TomlEntry> run_keys(const base::TomlValue& table, base::Names others = {});
// A value as it would be typed after --key=.
std::string typed_text(const base::TomlTable& table, std::string_view key, const base::TomlValue& value);
Axis read_axis(const base::TomlTable& table, const base::TomlEntry& entry);

// One run of a plan.
struct PlannedRun {
  std::string arm;
  Overrides point;  // of the grid; empty where the arm has none
  std::uint64_t seed = 0;
  bool tuning = false;          // on a tuning seed
  bool candidate = false;       // at one of several points, of which only the chosen one is run
  double share = 1;             // of this run that is expected to be work: 0 where another has the same folder
  run::RunConfig config;        // complete, but for the directory of a control's reference run
  std::string objective = {};   // the plan's
  std::string hash;             // of the configuration (and of the reference run's): 16 hex digits
  std::string folder;           // "cwd_weight_decay=0.1_seed=0_<hash>", below runs/; that of a run that computes the same
  std::ptrdiff_t follows = -1;  // position of its reference run
};

// Every run, those of the tuning seeds first, reference runs before their controls. Everything about the plan is checked here,
// before anything runs, and wrong is an Error(Fault::usage) with the file and line: unknown keys (with suggestion), an empty
// axis, arms of the same name or the same configuration, a control of an unknown arm or of a control, a contrast of unknown
// arms, no seeds or one twice, layers that contradict each other (an arm's override of a grid key), configurations that are not
// valid. All arms of a seed share train.seed: initial weights and data order are the same. With tuning seeds, an arm that has
// several points runs all of them there, and on the other seeds only the one chosen, unless a contrast compares it point by
// point. Runs without weight decay are the same whatever their decay is, and are made once. Costly: once for each study.
std::vector<PlannedRun> expand(const Plan& plan);

// Whether a key of a run's configuration has an effect on what the run computes.
bool changes_numbers(std::string_view key);

// What the run is judged by.
inline Measure measure_of(const PlannedRun& run) { return measure_of(run.objective, run.config); }

// Every arm at every point of its grid, in the order of expand().
std::vector<std::pair<const Arm*, Overrides>> arms_at_points(const Plan& plan);
// The axes that an arm's points are on: its own, those of the arm that its point is chosen for, or the plan's; none without a
// grid.
const std::vector<Axis>& axes_of(const Plan& plan, const Arm& arm);
std::size_t count_points(const Plan& plan, const Arm& arm);
// Whether a contrast asks for the best of several points.
bool chooses(const Plan& plan);

// The arm whose runs are a control's reference runs; null for an arm that is not a control, or of an unknown one.
const Arm* reference_of(const Plan& plan, const Arm& arm);
// Whether a control's reference run decides the key, so that the control cannot set it.
bool decided_by_reference(const Arm& control, std::string_view key);

// Throws the Errors of expand() that need no configuration.
void check(const Plan& plan);

// A key that runs do not choose themselves, and what to do instead; an Error if the key is one of them.
using DecidedKey = std::pair<std::string_view, std::string_view>;
void refuse_decided(const std::string& key, std::span<const DecidedKey> decided);

// Adds a layer of settings in place of those before it that decide the same: the key itself, or train.steps and train.tokens.
void put(Overrides& all, const Overrides& layer);

// "weight_decay=0.1, lr=0.003"; empty for no point.
std::string point_text(const Overrides& point);
// "cwd", "cwd weight_decay=0.1".
std::string name_of(const std::string& arm, const Overrides& point);

}  // namespace cautious::study
