// Curves of runs out of their metrics: one column over the steps, and several runs as their mean with a band.
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "report/chart.h"
#include "run/metrics.h"
#include "study/results.h"

namespace cautious::study {

struct Curve {
  std::vector<double> steps, values;  // rows without the column or with a number that is not finite are left out
};

Curve curve_of(const std::vector<run::MetricsRow>& rows, const std::string& column);

// The sum over the steps so far, from a column that has a number of single steps: a logged step stands for those since the one
// before it.
Curve summed(const Curve& curve);

// Mean at the steps that all have, with the lowest and the highest as the band where there are several.
report::ChartSeries mean_series(const std::vector<Curve>& curves);

// The metrics of a study's runs, each read when it is first asked for.
class StudyMetrics {
 public:
  explicit StudyMetrics(const Results& results) : results_(results) {}

  // The runs of the arm at the point that are done, or, as long as none is, those that have begun.
  std::vector<Curve> curves(const std::string& arm, const Overrides& point, const std::string& column);

 private:
  const std::vector<run::MetricsRow>& rows(const FinishedRun& run);
  const Results& results_;
  std::map<std::string, std::vector<run::MetricsRow>> read_;
};

}  // namespace cautious::study
