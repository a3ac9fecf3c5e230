// Curves of runs out of their metrics, and the figures that show them.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "study/report_parts.h"

namespace cautious::study {
namespace {

double largest_step(const std::vector<report::ChartSeries>& all) {
  double last = 0;
  for (const report::ChartSeries& series : all) {
    for (const double x : series.x) last = std::max(last, x);
  }
  return last;
}

// Whether the figure shows more than its whole one does: not of an end with hardly a point, or with all points of the run.
bool tells_more(const CurveFigure& what, const std::vector<report::ChartSeries>& all) {
  constexpr std::ptrdiff_t kFewest = 3;
  const double begin = what.from * largest_step(all);
  return what.from == 0 || std::ranges::any_of(all, [&](const report::ChartSeries& series) {
           const auto shown = std::ranges::count_if(series.x, [&](double x) { return x >= begin; });
           return shown >= kFewest && shown < std::ssize(series.x);
         });
}

std::string ends_of(const std::vector<report::ChartSeries>& all) {
  std::string words;
  for (const report::ChartSeries& series : all) {
    if (!series.y.empty()) words += fmt::format(" {}: {:.4g} at the last step.", series.name, series.y.back());
  }
  return words.empty() ? "No data." : words.substr(1);
}

std::vector<CurveFigure> error_figures() {
  return {{.name = "validation_error", .title = "Top-1 error", .y_label = "% of the validation images", .column = "val_error"},
          {.name = "validation_error_end",
           .title = "Top-1 error, the last 40% of the steps",
           .y_label = "% of the validation images",
           .column = "val_error",
           .from = 0.6},
          {.name = "validation_top5_error",
           .title = "Top-5 error",
           .y_label = "% of the validation images",
           .column = "val_top5_error"},
          {.name = "validation_loss", .title = "Validation loss", .y_label = "nats per image", .column = "val_loss"},
          {.name = "training_loss", .title = "Training loss", .y_label = "nats per image", .column = "loss"}};
}

}  // namespace

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

std::vector<run::MetricsRow> metrics_in(const std::filesystem::path& run) {
  std::error_code error;
  const auto file = run / "metrics.jsonl";
  return std::filesystem::exists(file, error) ? run::read_metrics(file) : std::vector<run::MetricsRow>{};
}

const std::vector<run::MetricsRow>& StudyMetrics::rows(const FinishedRun& run) {
  const auto [entry, added] = read_.try_emplace(run.run.folder);
  if (added) entry->second = metrics_in(folder_of(results_, run));
  return entry->second;
}

std::vector<Curve> StudyMetrics::curves(const std::string& arm, const Overrides& point, const std::string& column) {
  std::vector<Curve> done, begun;
  for (const FinishedRun& run : results_.runs) {
    if (run.run.tuning || run.run.arm != arm || run.run.point != point) continue;
    Curve curve = curve_of(rows(run), column);
    if (curve.steps.empty()) continue;
    (run.status == RunStatus::done ? done : begun).push_back(std::move(curve));
  }
  return done.empty() ? begun : done;
}

std::vector<CurveFigure> loss_figures(run::TaskKind task) {
  if (task == run::TaskKind::image) return error_figures();
  return {{.name = "validation_loss", .title = "Validation loss", .y_label = "nats per token", .column = "val_loss"},
          {.name = "validation_loss_end",
           .title = "Validation loss, the last 40% of the steps",
           .y_label = "nats per token",
           .column = "val_loss",
           .from = 0.6},
          {.name = "training_loss", .title = "Training loss", .y_label = "nats per token", .column = "loss"},
          {.name = "training_loss_end",
           .title = "Training loss, the last 40% of the steps",
           .y_label = "nats per token",
           .column = "loss",
           .from = 0.6}};
}

std::vector<CurveFigure> inside_figures() {
  return {{.name = "activation_ratio",
           .title = "Activation ratio",
           .y_label = "fraction of the coordinates where update and parameter agree in sign",
           .column = "ratio_strict",
           .caption = "These are the coordinates that cautious decay shrinks, counted for every arm, whatever its decay.",
           .inset = true},
          {.name = "rms_parameters", .title = "Parameters", .y_label = "RMS of all parameters", .column = "rms_x"},
          {.name = "rms_gradient",
           .title = "Gradient",
           .y_label = "RMS of the gradient",
           .column = "rms_g",
           .y_scale = report::Scale::log},
          {.name = "rms_update",
           .title = "Update",
           .y_label = "RMS of the update direction, before the learning rate",
           .column = "rms_u"},
          {.name = "decay_budget",
           .title = "Decay budget of a step",
           .y_label = "sum of |learning rate * weight decay * x| over the coordinates that decay",
           .column = "decay_budget"},
          {.name = "decay_budget_sum",
           .title = "Decay budget so far",
           .y_label = "sum over the steps",
           .column = "decay_budget",
           .caption = "Each logged step counts for all steps since the previous one; the table of runs has the exact sums.",
           .sum = true}};
}

void add_curve_figure(std::vector<report::Figure>& figures, const CurveFigure& what, std::vector<report::ChartSeries> series,
                      const std::string& who) {
  if (!tells_more(what, series)) return;
  report::LineChart chart;
  chart.title = what.title;
  chart.x_label = "step";
  chart.y_label = what.y_label;
  chart.y_scale = what.y_scale;
  chart.description = ends_of(series);
  const double last = largest_step(series);
  if (what.from > 0 && last > 0) chart.x_range = {what.from * last, last};
  if (what.inset && last > 0) chart.inset = {0, 0.1 * last};
  chart.series = std::move(series);
  figures.emplace_back(what.name, std::move(chart), what.caption.empty() ? who : who + " " + what.caption);
}

void add_arms_curve_figure(std::vector<report::Figure>& figures, const CurveFigure& what, const Results& results,
                           const std::vector<Overrides>& chosen, StudyMetrics& metrics) {
  std::vector<report::ChartSeries> all;
  for (std::size_t i = 0; i < results.plan.arms.size(); ++i) {
    const std::string& arm = results.plan.arms[i].name;
    std::vector<Curve> curves = metrics.curves(arm, chosen[i], what.column);
    if (what.sum) std::ranges::transform(curves, curves.begin(), summed);
    if (curves.empty()) continue;
    report::ChartSeries series = mean_series(curves);
    series.name = arm;
    series.colour = i;
    all.push_back(std::move(series));
  }
  add_curve_figure(figures, what, std::move(all),
                   "Each arm at its point: mean over the seeds, the band from the lowest to the highest.");
}

}  // namespace cautious::study
