// The figures of a study's report: arms, sweeps over the grid, amounts of decay.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <limits>
#include <tuple>

#include <fmt/format.h>

#include "run/config_table.h"
#include "study/report_parts.h"
#include "study/statistics.h"

namespace cautious::study {
namespace {

constexpr const char* kJudged = "judged";  // a series of marks
constexpr double kNoValue = std::numeric_limits<double>::quiet_NaN();

std::string at_the_end(const Measure& measure) {
  return fmt::format("{} at the end{}", measure.name, in_brackets(measure.axis));
}

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

std::vector<double> budgets_of(const Results& results, const std::string& arm, const Overrides& point, bool tuning) {
  std::vector<double> budgets;
  for (const FinishedRun& run : results.runs) {
    const bool here = run.run.arm == arm && run.run.point == point && run.run.tuning == tuning;
    if (here && run.status == RunStatus::done && std::isfinite(run.decay_budget)) budgets.push_back(run.decay_budget);
  }
  return budgets;
}

// Whether the arm's points were compared on the tuning seeds.
bool was_tuned(const Results& results, const Arm& arm) {
  return !results.plan.tune_seeds.empty() && arm.chooser() == arm.name && points_of(results, arm.name).size() > 1;
}

// What the arm's curve over its points is made of: the tuning seeds where it has them.
std::vector<double> curve_losses(const Results& results, const Arm& arm, const Overrides& point) {
  return finite(was_tuned(results, arm) ? tuning_losses_of(results, arm.name, point) : losses_of(results, arm.name, point));
}

// How much higher the losses are on the judged seeds than on the tuning seeds: mean over the arms that have both; 0 of none.
double seeds_apart(const Results& results) {
  double sum = 0, count = 0;
  for (const Arm& arm : results.plan.arms) {
    const Choice choice = chosen_point(results, arm.name);
    if (!choice.decided || !was_tuned(results, arm)) continue;
    const std::vector<double> judged = finite(losses_of(results, arm.name, choice.point)),
                              tuned = finite(tuning_losses_of(results, arm.name, choice.point));
    if (judged.empty() || tuned.empty()) continue;
    sum += spread_of(judged).mean - spread_of(tuned).mean;
    ++count;
  }
  return count > 0 ? sum / count : 0;
}

// A point of its own where another series has one is not seen, so it has no place in the legend either.
void leave_out_covered(report::LineChart& chart) {
  const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-9 * std::max(std::abs(a), std::abs(b)); };
  const auto covers = [&](const report::ChartSeries& other, const report::ChartSeries& one) {
    if (&other == &one) return false;
    for (std::size_t i = 0; i < other.x.size(); ++i) {
      if (near(other.x[i], one.x[0]) && near(other.y[i], one.y[0])) return true;
    }
    return false;
  };
  for (std::size_t i = 0; i < chart.series.size();) {
    const report::ChartSeries& one = chart.series[i];
    const bool single = one.x.size() == 1 && one.name != kJudged;
    const bool covered = single && std::ranges::any_of(chart.series, [&](const auto& other) { return covers(other, one); });
    if (covered) {
      chart.series.erase(chart.series.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
}

// One mark of each arm that was tuned, all of one name and style, so that they share an entry of the legend; other arms have no
// other marks.
report::ChartSeries judged_mark(const Results& results, const Arm& arm, std::size_t number, double x, double loss) {
  report::ChartSeries mark;
  mark.name = was_tuned(results, arm) ? kJudged : arm.name;
  mark.colour = was_tuned(results, arm) ? 6 : number;
  mark.x = {x};
  mark.y = {loss};
  mark.markers = true;
  return mark;
}

std::string apart_text(const Results& results, double apart) {
  const bool tuned = std::ranges::any_of(results.plan.arms, [&](const Arm& arm) { return was_tuned(results, arm); });
  if (!tuned) return "";
  return fmt::format(
      " Lines are means over the tuning seeds. Judged: on the other seeds, moved by {}, the mean difference "
      "between the two sets of seeds.",
      measure_of(results.runs).signed_number(-apart));
}

// The arm's losses at this value of the axis, at the best point of the other axes.
std::vector<double> best_losses(const Results& results, const Arm& arm, const Axis& axis, const std::string& value) {
  std::vector<double> best;
  for (const Overrides& point : points_of(results, arm.name)) {
    if (std::ranges::find(point, std::pair(axis.key, value)) == point.end()) continue;
    std::vector<double> losses = curve_losses(results, arm, point);
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
    const std::vector<double> losses = best_losses(results, arm, axis, value);
    if (losses.empty()) continue;
    series.x.push_back(x);
    series.y.push_back(spread_of(losses).mean);
  }
  return series;
}

// A log axis where the values are positive and span at least a decade.
report::Scale scale_of(const std::vector<double>& values) {
  const auto [low, high] = std::ranges::minmax(values);
  return low > 0 && high >= 10 * low ? report::Scale::log : report::Scale::linear;
}

// Where the arm is judged on the axis.
void add_judged(const Results& results, std::size_t number, const Axis& axis, double apart, report::LineChart& chart,
                std::string& words) {
  const Arm& arm = results.plan.arms[number];
  const Choice choice = chosen_point(results, arm.name);
  const auto own = std::ranges::find(choice.point, axis.key, [](const auto& entry) { return entry.first; });
  const std::vector<double> losses = finite(losses_of(results, arm.name, choice.point));
  if (!choice.decided || own == choice.point.end() || losses.empty()) return;
  const double mean = spread_of(losses).mean;
  words += fmt::format("{}{} is judged at {} ({})", words.empty() ? "" : "; ", arm.name, own->second,
                       measure_of(results.runs).number(mean));
  chart.series.push_back(judged_mark(results, arm, number, number_of(own->second), mean - apart));
}

const Axis* axis_with(const std::vector<Axis>& axes, const std::string& key) {
  const auto found = std::ranges::find(axes, key, &Axis::key);
  return found == axes.end() ? nullptr : &*found;
}

std::string sweep_name(const std::string& key) { return fmt::format("sweep_{}", run::without_section(key)); }

report::Figure sweep_figure(const Results& results, const std::string& key, const std::vector<double>& values) {
  const std::string name(run::without_section(key));
  report::LineChart chart;
  chart.title = fmt::format("{} over {}", measure_of(results.runs).title(), name);
  chart.x_label = name;
  chart.y_label = at_the_end(measure_of(results.runs));
  chart.x_scale = scale_of(values);
  const double apart = seeds_apart(results);
  std::string words;
  for (const bool marks : {false, true}) {
    for (std::size_t i = 0; i < results.plan.arms.size(); ++i) {
      const Arm& arm = results.plan.arms[i];
      const Axis* const axis = axis_with(axes_of(results.plan, arm), key);
      if (!axis) continue;
      if (marks) {
        add_judged(results, i, *axis, apart, chart, words);
      } else if (arm.chooser() == arm.name) {
        report::ChartSeries series = sweep_series(results, arm, *axis);
        series.colour = i;
        if (!series.x.empty()) chart.series.push_back(std::move(series));
      }
    }
  }
  leave_out_covered(chart);
  chart.description = words.empty() ? "No arm is judged yet." : words + ".";
  std::string caption = chart.description + apart_text(results, apart);
  const auto several = [&](const Arm& arm) { return axes_of(results.plan, arm).size() > 1; };
  if (std::ranges::any_of(results.plan.arms, several))
    caption += " Other keys of the grid are at the best value for each point.";
  return {sweep_name(key), std::move(chart), std::move(caption)};
}

// Keys of grids with at least two numbers, and their numbers in all arms.
std::vector<std::pair<std::string, std::vector<double>>> swept_keys(const Plan& plan) {
  std::vector<std::pair<std::string, std::vector<double>>> swept;
  for (const Arm& arm : plan.arms) {
    for (const Axis& axis : axes_of(plan, arm)) {
      std::vector<double> values;
      for (const std::string& value : axis.values) values.push_back(number_of(value));
      if (values.size() < 2 || std::ranges::any_of(values, [](double value) { return std::isnan(value); })) continue;
      auto found = std::ranges::find(swept, axis.key, [](const auto& entry) { return entry.first; });
      if (found == swept.end()) found = swept.insert(found, {axis.key, {}});
      found->second.insert(found->second.end(), values.begin(), values.end());
    }
  }
  return swept;
}

void sort_by_x(report::ChartSeries& series) {
  std::vector<std::pair<double, double>> points;
  for (std::size_t i = 0; i < series.x.size(); ++i) points.emplace_back(series.x[i], series.y[i]);
  std::ranges::sort(points);
  for (std::size_t i = 0; i < points.size(); ++i) std::tie(series.x[i], series.y[i]) = points[i];
}

}  // namespace

report::Figure arms_figure(const Results& results, const std::vector<Overrides>& chosen) {
  const Measure measure = measure_of(results.runs);
  report::IntervalChart chart;
  chart.title = "Every arm at its point";
  chart.x_label = at_the_end(measure) + ", with 95% interval of the mean; small dots: single seeds";
  for (std::size_t i = 0; i < results.plan.arms.size(); ++i) {
    const std::string& arm = results.plan.arms[i].name;
    std::vector<double> losses = finite(losses_of(results, arm, chosen[i]));
    const Spread spread = spread_of(losses);
    const std::string name = chosen[i].empty() ? arm : fmt::format("{} ({})", arm, point_text(chosen[i]));
    if (!losses.empty()) chart.description += fmt::format("{}: {}. ", name, measure.number(spread.mean));
    chart.entries.push_back({.name = name,
                             .colour = i,
                             .value = losses.empty() ? kNoValue : spread.mean,
                             .low = losses.empty() ? kNoValue : spread.interval.low,
                             .high = losses.empty() ? kNoValue : spread.interval.high,
                             .points = std::move(losses)});
  }
  return {"arms", std::move(chart),
          "The interval of one arm includes the spread between seeds, which the arms share; differences are judged seed by "
          "seed."};
}

std::vector<report::Figure> sweep_figures(const Results& results) {
  std::vector<report::Figure> figures;
  for (const auto& [key, values] : swept_keys(results.plan)) figures.push_back(sweep_figure(results, key, values));
  return figures;
}

std::vector<std::string> lead_figures(const Plan& plan, run::TaskKind task) {
  std::vector<std::string> names{"arms", "amounts"};
  for (const auto& [key, values] : swept_keys(plan)) names.push_back(sweep_name(key));
  if (task == run::TaskKind::external) return names;
  for (const std::vector<CurveFigure>& figures : {loss_figures(task), inside_figures()}) {
    for (const CurveFigure& figure : figures) {
      if (figure.from == 0) names.push_back(figure.name);
    }
  }
  return names;
}

report::Figure amounts_figure(const Results& results) {
  const Measure measure = measure_of(results.runs);
  report::LineChart chart;
  chart.title = measure.title() + " over the amount of decay";
  chart.x_label = "decay budget: sum over steps and coordinates of |learning rate * weight decay * x|";
  chart.y_label = at_the_end(measure);
  const double apart = seeds_apart(results);
  std::vector<report::ChartSeries> marks;
  for (std::size_t i = 0; i < results.plan.arms.size(); ++i) {
    const Arm& arm = results.plan.arms[i];
    const bool tuned = was_tuned(results, arm);
    report::ChartSeries series;
    series.name = arm.name;
    series.colour = i;
    series.markers = true;
    for (const Overrides& point : points_of(results, arm.name)) {
      const std::vector<double> losses = curve_losses(results, arm, point),
                                budgets = budgets_of(results, arm.name, point, tuned),
                                judged = finite(losses_of(results, arm.name, point)),
                                spent = budgets_of(results, arm.name, point, false);
      if (!losses.empty() && !budgets.empty()) {
        series.x.push_back(spread_of(budgets).mean);
        series.y.push_back(spread_of(losses).mean - (tuned ? 0 : apart));
      }
      if (!tuned || judged.empty() || spent.empty()) continue;
      marks.push_back(judged_mark(results, arm, i, spread_of(spent).mean, spread_of(judged).mean - apart));
    }
    sort_by_x(series);
    if (series.x.empty()) continue;
    chart.description += fmt::format("{}: {} to {} at {:.4g} to {:.4g}. ", arm.name, measure.number(std::ranges::min(series.y)),
                                     measure.number(std::ranges::max(series.y)), series.x.front(), series.x.back());
    chart.series.push_back(std::move(series));
  }
  chart.series.insert(chart.series.end(), marks.begin(), marks.end());
  leave_out_covered(chart);
  return {"amounts", std::move(chart),
          "Arms on one curve differ by how much they decay; an arm below the others' curve decays better." +
              apart_text(results, apart)};
}

}  // namespace cautious::study
