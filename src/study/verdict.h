// What the runs of a study say, in numbers and in sentences that do not claim more.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "study/measure.h"
#include "study/results.h"
#include "study/statistics.h"

namespace cautious::study {

inline constexpr double kLevel = 0.05;  // of the tests, for all primary contrasts together

enum class Outcome {
  lower,  // the first arm's loss is
  higher,
  equal,    // practically: the interval is within the measure's target
  open,     // none of these can be said
  edge,     // a chosen point is the last of its grid, so the arms are not at their best
  same,     // both arms have the same runs
  missing,  // fewer than two seeds, or no point is chosen yet
};

// What the layout of a contrast can find with 80% power at the level of its test.
struct Power {
  double detectable = 0;  // the smallest difference
  Interval detectable_interval{0, 0};
  std::size_t needed = 0, needed_low = 0, needed_high = 0;  // seeds for the measure's target; 0 if not known
};                                                          // intervals: 95%, from that of the residuals' sd

struct ContrastResult {
  Contrast contrast;
  std::string name;  // "cwd (weight_decay=1) - plain (weight_decay=0.4)", "cwd - shuffled at weight_decay=1"
  Overrides point_a, point_b;
  std::vector<std::string> edges;  // "plain is at the edge of its grid (weight_decay=2.5)"
  std::size_t planned = 0;         // seeds of the plan; fewer are paired where runs are missing or diverged
  Paired paired;                   // losses of a minus losses of b, over the seeds where both are done
  Layout layout;                   // the one that judges it: of all complete arms, or of the two
  bool complete = true;            // both arms have every seed
  Difference difference;
  double holm_p = 1;  // among the primary contrasts; NaN for others and where nothing is tested
  double regret = 0;  // what another point of the arm with the higher loss might gain: bound of 97.5% from the tuning seeds
  Power power;
  Outcome outcome = Outcome::missing;
  bool primary = true;
  std::string sentence;  // without capital and full stop
};

// A contrast that is judged at every point of two grids of weight decay, as one number: a smooth curve of the loss over the
// logarithm of the decay budget (cubic; a parabola below seven points), the same for both arms but for a constant.
struct EqualAmounts {
  Contrast contrast;
  Spread difference = {};         // of the constants, one of each seed
  double p = 1;                   // t-test
  double ratio = 0;               // best weight decay of a over that of b, of parabolas; NaN if one is not inside its grid
  Interval ratio_interval{0, 0};  // 95%, jackknife over the seeds
  std::string sentence = {};
};

// A verdict that was given before.
struct Look {
  std::size_t seeds = 0, tune_seeds = 0;
  friend bool operator==(const Look&, const Look&) = default;
};

struct Verdict {
  Measure measure = measure_of(run::TaskKind::text);
  std::vector<ContrastResult> decay;      // plain decay against none, where the plan has both: one for each group of arms
  std::vector<ContrastResult> contrasts;  // primary first; without those above
  std::size_t family = 0;                 // primary contrasts that are tested together
  std::vector<EqualAmounts> amounts;      // exploratory too
  std::size_t exploratory = 0;            // number of exploratory comparisons, for the reader's correction
  std::vector<Look> looks;                // with fewer seeds than these, or other tuning
  std::vector<std::string> answers;       // whether decay matters, then the primary contrasts: a sentence each
  std::vector<std::string> notes;         // what limits them
  std::string sentence;                   // all of them, a line each
};

Verdict verdict_of(const Results& results);

// Of contrasts that are not at best points, whose arms have three weight decays or more and overlap in their amounts.
std::vector<EqualAmounts> equal_amounts(const Results& results);

// Looks are lines of looks.jsonl in the study's directory. A look at the seeds of the last one is not written again.
std::vector<Look> looks_of(const std::filesystem::path& directory);
void record_look(const Results& results);
// The seeds of the plan whose runs have all ended.
std::size_t judged_seeds(const Results& results);

// Fills in the words of the numbers: verdict_of() does, and knows nothing of words itself.
void put_in_words(const Results& results, Verdict& verdict);

// "p = 0.012".
std::string p_text(double p);

// "cwd (weight_decay=1)".
std::string cell_text(const std::string& arm, const Overrides& point);

}  // namespace cautious::study
