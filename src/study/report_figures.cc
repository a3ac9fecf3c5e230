// The figures of a study's report: differences, arms, sweeps over the grid.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>

#include <fmt/format.h>

#include "run/config_table.h"
#include "study/report_parts.h"
#include "study/statistics.h"

namespace cautious::study {
namespace {

constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

std::vector<double> finite(const std::vector<double>& values) {
  std::vector<double> result;
  std::ranges::copy_if(values, std::back_inserter(result), [](double value) { return std::isfinite(value); });
  return result;
}

// NaN for what is not a number.
double number_of(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? value : kNoValue;
}

// The arm's losses at this value of the axis, at the best point of the other axes.
std::vector<double> best_losses(const Results& results, const std::string& arm, const Axis& axis, const std::string& value) {
  std::vector<double> best;
  for (const Overrides& point : points_of(results, arm)) {
    if (std::ranges::find(point, std::pair(axis.key, value)) == point.end()) continue;
    std::vector<double> losses = finite(losses_of(results, arm, point));
    if (losses.empty()) continue;
    if (best.empty() || spread_of(losses).mean < spread_of(best).mean) best = std::move(losses);
  }
  return best;
}

report::ChartSeries sweep_series(const Results& results, const Arm& arm, const Axis& axis) {
  std::vector<std::pair<double, std::string>> values;
  for (const std::string& value : axis.values) values.emplace_back(number_of(value), value);
  std::ranges::sort(values);
  report::ChartSeries series;
  series.name = arm.name;
  series.markers = true;
  for (const auto& [x, value] : values) {
    const std::vector<double> losses = best_losses(results, arm.name, axis, value);
    if (losses.empty()) continue;
    const auto [low, high] = std::ranges::minmax(losses);
    series.x.push_back(x);
    series.y.push_back(spread_of(losses).mean);
    series.low.push_back(low);
    series.high.push_back(high);
  }
  return series;
}

// All of one name and style, so that they share an entry of the legend.
report::ChartSeries optimum_of(const report::ChartSeries& series, std::size_t at) {
  report::ChartSeries optimum;
  optimum.name = "best of each arm";
  optimum.colour = 6;
  optimum.x = {series.x[at]};
  optimum.y = {series.y[at]};
  optimum.markers = true;
  return optimum;
}

// A log axis where the values are positive and span at least a decade.
report::Scale scale_of(const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  return low > 0 && high >= 10 * low ? report::Scale::log : report::Scale::linear;
}

report::Figure sweep_figure(const Results& results, const Axis& axis, const std::vector<double>& values) {
  const std::string key(run::without_section(axis.key));
  report::LineChart chart;
  chart.title = fmt::format("Validation loss over {}", key);
  chart.x_label = key;
  chart.y_label = "validation loss at the end (nats per token)";
  chart.x_scale = scale_of(values);
  std::vector<report::ChartSeries> optima;
  std::string words;
  for (std::size_t i = 0; i < results.plan.arms.size(); ++i) {
    report::ChartSeries series = sweep_series(results, results.plan.arms[i], axis);
    if (series.x.empty()) continue;
    series.colour = i;
    const auto least = static_cast<std::size_t>(std::ranges::min_element(series.y) - series.y.begin());
    optima.push_back(optimum_of(series, least));
    words +=
        fmt::format("{}{} is best at {:g} ({:.4f})", words.empty() ? "" : "; ", series.name, series.x[least], series.y[least]);
    chart.series.push_back(std::move(series));
  }
  chart.series.insert(chart.series.end(), optima.begin(), optima.end());
  chart.description = words.empty() ? "No run is done." : words + ".";
  std::string caption = "Mean over the seeds; the band is from the lowest to the highest seed. " + chart.description;
  if (results.plan.grid.size() > 1) caption += " Other keys of the grid are at the best value for each point.";
  return {"sweep_" + key, std::move(chart), std::move(caption)};
}

}  // namespace

report::Figure contrasts_figure(const Verdict& verdict, bool primary) {
  report::IntervalChart chart;
  chart.title = primary ? "Prespecified differences" : "Exploratory differences";
  chart.x_label = "difference of validation loss (nats per token), with 95% interval; left of 0: the first is better";
  chart.reference = 0;
  for (const ContrastResult& result : verdict.contrasts) {
    if (result.primary != primary) continue;
    const Paired& paired = result.paired;
    const bool none = paired.n == 0;
    chart.entries.push_back({.name = result.name,
                             .value = none ? kNoValue : paired.difference,
                             .low = none ? kNoValue : paired.interval.low,
                             .high = none ? kNoValue : paired.interval.high,
                             .points = {}});
    chart.description += result.sentence + ". ";
  }
  return {primary ? "contrasts" : "contrasts_exploratory", std::move(chart), ""};
}

report::Figure arms_figure(const Results& results, const std::vector<Overrides>& best) {
  report::IntervalChart chart;
  chart.title = "Every arm at its best point";
  chart.x_label = "validation loss at the end (nats per token), with 95% interval of the mean; small dots: single seeds";
  for (std::size_t i = 0; i < results.plan.arms.size(); ++i) {
    const std::string& arm = results.plan.arms[i].name;
    std::vector<double> losses = finite(losses_of(results, arm, best[i]));
    const Spread spread = spread_of(losses);
    const std::string name = best[i].empty() ? arm : fmt::format("{} ({})", arm, point_text(best[i]));
    if (!losses.empty()) chart.description += fmt::format("{}: {:.4f}. ", name, spread.mean);
    chart.entries.push_back({.name = name,
                             .colour = i,
                             .value = losses.empty() ? kNoValue : spread.mean,
                             .low = losses.empty() ? kNoValue : spread.interval.low,
                             .high = losses.empty() ? kNoValue : spread.interval.high,
                             .points = std::move(losses)});
  }
  return {
      "arms", std::move(chart),
      "The interval of one arm includes the spread between seeds, which the arms share; differences are judged seed by seed. "
      "Here the best point is chosen on the runs that are shown, which favours arms with more points; contrasts of best points "
      "choose it on the other seeds."};
}

std::vector<report::Figure> sweep_figures(const Results& results) {
  std::vector<report::Figure> figures;
  for (const Axis& axis : results.plan.grid) {
    std::vector<double> values;
    for (const std::string& value : axis.values) values.push_back(number_of(value));
    if (values.size() < 2 || std::ranges::any_of(values, [](double value) { return std::isnan(value); })) continue;
    figures.push_back(sweep_figure(results, axis, values));
  }
  return figures;
}

}  // namespace cautious::study
