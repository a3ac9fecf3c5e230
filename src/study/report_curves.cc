#include "study/report_curves.h"

#include <algorithm>

#include <fmt/format.h>

namespace cautious::study {
namespace {

double last_step(const std::vector<report::ChartSeries>& all) {
  double last = 0;
  for (const report::ChartSeries& series : all) {
    for (const double x : series.x) last = std::max(last, x);
  }
  return last;
}

std::string ends_of(const std::vector<report::ChartSeries>& all) {
  std::string words;
  for (const report::ChartSeries& series : all) {
    if (!series.y.empty()) words += fmt::format(" {}: {:.4g} at the last step.", series.name, series.y.back());
  }
  return words.empty() ? "No data." : words.substr(1);
}

}  // namespace

std::vector<CurveFigure> loss_figures() {
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
  return {
      {.name = "activation_ratio",
       .title = "Activation ratio",
       .y_label = "part of the coordinates where update and parameter agree in sign",
       .column = "ratio_strict",
       .caption = "These are the coordinates that cautious decay shrinks, counted for every arm, whatever its decay.",
       .inset = true},
      {.name = "rms_parameters", .title = "Parameters", .y_label = "RMS of all parameters", .column = "rms_x"},
      {.name = "rms_gradient", .title = "Gradient", .y_label = "RMS of the gradient", .column = "rms_g", .y_scale = report::Scale::log},
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
       .caption = "A logged step stands for those since the one before it; the table of runs has the exact sums.",
       .sum = true}};
}

report::Figure curve_figure(const CurveFigure& what, std::vector<report::ChartSeries> series, const std::string& who) {
  report::LineChart chart;
  chart.title = what.title;
  chart.x_label = "step";
  chart.y_label = what.y_label;
  chart.y_scale = what.y_scale;
  chart.description = ends_of(series);
  const double last = last_step(series);
  if (what.from > 0 && last > 0) chart.x_range = {what.from * last, last};
  if (what.inset && last > 0) chart.inset = {0, 0.1 * last};
  chart.series = std::move(series);
  return {what.name, std::move(chart), what.caption.empty() ? who : who + " " + what.caption};
}

report::Figure arms_curve_figure(const CurveFigure& what, const Results& results, StudyMetrics& metrics) {
  std::vector<report::ChartSeries> all;
  for (std::size_t i = 0; i < results.plan.arms.size(); ++i) {
    const std::string& arm = results.plan.arms[i].name;
    std::vector<Curve> curves = metrics.curves(arm, best_point(results, arm), what.column);
    if (what.sum) std::ranges::transform(curves, curves.begin(), summed);
    if (curves.empty()) continue;
    report::ChartSeries series = mean_series(curves);
    series.name = arm;
    series.colour = i;
    all.push_back(std::move(series));
  }
  return curve_figure(what, std::move(all),
                      "Each arm at its best point: mean over the seeds, the band from the lowest to the highest.");
}

}  // namespace cautious::study
