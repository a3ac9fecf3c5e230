#include "lab/bound/bound_figures.h"

#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace cautious::lab {
namespace {

report::ChartSeries left_series(const NamedCurve& named, std::size_t colour) {
  report::ChartSeries series;
  series.name = named.name;
  series.colour = colour;
  series.markers = true;
  for (const BoundPoint& point : named.curve) {
    series.x.push_back(point.at);
    series.y.push_back(point.left.mean);
    series.low.push_back(point.left.low);
    series.high.push_back(point.left.high);
  }
  return series;
}

report::ChartSeries bound_series(const NamedCurve& named, double BoundPoint::*bound, std::string_view what, std::size_t colour) {
  report::ChartSeries series;
  series.name = fmt::format("{}, {}", named.name, what);
  series.colour = colour;
  for (const BoundPoint& point : named.curve) {
    series.x.push_back(point.at);
    series.y.push_back(point.*bound);
  }
  return series;
}

}  // namespace

report::LineChart bound_chart(std::string title, std::string x_label, std::string description) {
  report::LineChart chart;
  chart.title = std::move(title);
  chart.x_label = std::move(x_label);
  chart.y_label = "mean stationarity measure";
  chart.description = std::move(description);
  chart.x_scale = chart.y_scale = report::Scale::log;
  return chart;
}

void add_curves(report::LineChart& chart, const std::vector<NamedCurve>& curves) {
  for (std::size_t k = 0; k < curves.size(); ++k) chart.series.push_back(left_series(curves[k], k));
  for (std::size_t k = 0; k < curves.size(); ++k) {
    chart.series.push_back(bound_series(curves[k], &BoundPoint::paper, "bound", curves.size() + k));
  }
  chart.series.push_back(bound_series(curves[0], &BoundPoint::sharper, "sharper bound", 2 * curves.size()));
}

std::vector<std::size_t> powers(std::size_t first, std::size_t last, std::size_t factor) {
  std::vector<std::size_t> values;
  for (std::size_t value = first; value <= last; value *= factor) values.push_back(value);
  return values;
}

}  // namespace cautious::lab
