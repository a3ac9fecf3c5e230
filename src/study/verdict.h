// What the runs of a study say, in numbers and in one sentence that does not claim more.
#pragma once

#include <string>
#include <vector>

#include "study/results.h"
#include "study/statistics.h"

namespace cautious::study {

struct ContrastResult {
  Contrast contrast;
  std::string name;         // "cwd - plain, each at its best weight_decay" or "cwd - random at weight_decay=1"
  Paired paired;            // losses of a minus losses of b, over the seeds where both are done
  std::size_t planned = 0;  // seeds of the plan; fewer are paired where runs are missing or diverged
  std::size_t needed = 0;   // pairs to find the observed difference with 80% power; 0 if not known
  double detectable = 0;    // smallest difference that this many pairs find with 80% power
  bool primary = true;
  std::string sentence;  // "cwd has a lower validation loss than plain by 0.012 +/- 0.004 nats (5 seeds, p = 0.01)"
};

struct Verdict {
  std::vector<ContrastResult> contrasts;  // primary first
  std::size_t exploratory = 0;            // number of exploratory comparisons, for the reader's correction
  std::string sentence;                   // the answer to the title
};

Verdict verdict_of(const Results& results);

}  // namespace cautious::study
