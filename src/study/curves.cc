#include "study/curves.h"

#include <algorithm>
#include <cmath>

namespace cautious::study {

Curve curve_of(const std::vector<run::MetricsRow>& rows, const std::string& column) {
  Curve curve;
  for (const run::MetricsRow& row : rows) {
    const auto found = std::ranges::find(row.values, column, &std::pair<std::string, double>::first);
    if (found == row.values.end() || !std::isfinite(found->second)) continue;
    curve.steps.push_back(static_cast<double>(row.step));
    curve.values.push_back(found->second);
  }
  return curve;
}

Curve summed(const Curve& curve) {
  Curve result = curve;
  double before = 0, sum = 0;
  for (std::size_t i = 0; i < curve.steps.size(); ++i) {
    sum += curve.values[i] * (curve.steps[i] - before);
    before = curve.steps[i];
    result.values[i] = sum;
  }
  return result;
}

report::ChartSeries mean_series(const std::vector<Curve>& curves) {
  std::map<double, std::vector<double>> by_step;
  for (const Curve& curve : curves) {
    for (std::size_t i = 0; i < curve.steps.size(); ++i) by_step[curve.steps[i]].push_back(curve.values[i]);
  }
  report::ChartSeries series;
  for (const auto& [step, values] : by_step) {
    if (values.size() != curves.size()) continue;
    double sum = 0;
    for (const double value : values) sum += value;
    series.x.push_back(step);
    series.y.push_back(sum / static_cast<double>(values.size()));
    if (curves.size() < 2) continue;
    const auto [low, high] = std::ranges::minmax(values);
    series.low.push_back(low);
    series.high.push_back(high);
  }
  return series;
}

const std::vector<run::MetricsRow>& StudyMetrics::rows(const FinishedRun& run) {
  const auto known = read_.find(run.run.folder);
  if (known != read_.end()) return known->second;
  const auto file = results_.directory / "runs" / run.run.folder / "metrics.jsonl";
  std::error_code error;
  const bool there = std::filesystem::exists(file, error);
  return read_[run.run.folder] = there ? run::read_metrics(file) : std::vector<run::MetricsRow>{};
}

std::vector<Curve> StudyMetrics::curves(const std::string& arm, const Overrides& point, const std::string& column) {
  std::vector<Curve> done, begun;
  for (const FinishedRun& run : results_.runs) {
    if (run.run.arm != arm || run.run.point != point) continue;
    Curve curve = curve_of(rows(run), column);
    if (curve.steps.empty()) continue;
    (run.status == RunStatus::done ? done : begun).push_back(std::move(curve));
  }
  return done.empty() ? begun : done;
}

}  // namespace cautious::study
