// The prespecified differences of a study as its tables keep them: what there is to read when its runs are gone.
#pragma once

#include <cstddef>
#include <filesystem>
#include <string>
#include <vector>

#include "study/statistics.h"

namespace cautious::study {

struct Judged {
  std::string study, a, point_a, b, point_b, outcome, measure, unit;
  double value = 0, low = 0, high = 0, p = 0, holm_p = 0, sd = 0;  // NaN: not known
  std::size_t seeds = 0;

  std::string name() const;  // "cwd - plain"
  // Whether it says anything of the truth: not between runs that are the same, nor at the edge of a grid.
  bool counts() const;
  Finding finding() const;
};

// From tables/contrasts.csv of the study, by whatever name it is called here. With a column of tables/runs.csv, as "accuracy",
// the same arms are compared in it, by paired t-tests. Without these tables an Error(Fault::usage).
std::vector<Judged> judged_in(const std::filesystem::path& study, const std::string& name, const std::string& column);

}  // namespace cautious::study
