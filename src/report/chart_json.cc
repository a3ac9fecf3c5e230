// The data of a line chart as JSON for the page's script.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/html_page.h"

namespace cautious::report {
namespace {

constexpr std::size_t kMostPoints = 600;

bool drawable(double value, Scale scale) { return std::isfinite(value) && (scale == Scale::linear || value > 0); }

// Places of the samples that stay: those in the shown part of x, evenly thinned, with the first and the last.
std::vector<std::size_t> kept(const ChartSeries& series, const LineChart& chart) {
  std::vector<std::size_t> inside;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const double x = series.x[i];
    if (!drawable(x, chart.x_scale)) continue;
    if (!chart.x_range || (x >= chart.x_range->first && x <= chart.x_range->second)) inside.push_back(i);
  }
  if (inside.size() <= kMostPoints) return inside;
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < kMostPoints; ++i) result.push_back(inside[i * (inside.size() - 1) / (kMostPoints - 1)]);
  return result;
}

std::string numbers(const std::vector<double>& values, const std::vector<std::size_t>& places, Scale scale) {
  std::string text = "[";
  for (const std::size_t place : places) {
    if (text.size() > 1) text += ',';
    text += drawable(values[place], scale) ? fmt::format("{:.7g}", values[place]) : "null";
  }
  return text + "]";
}

// Text out of a plan must not end the script element.
std::string quoted(const std::string& text) {
  const std::string json = nlohmann::json(text).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  std::string result;
  for (const char c : json) {
    if (c == '<') {
      result += "\\u003c";
    } else {
      result += c;
    }
  }
  return result;
}

std::string series_json(const ChartSeries& series, const LineChart& chart) {
  const std::vector<std::size_t> places = kept(series, chart);
  std::string text =
      fmt::format("{{\"name\":{},\"colour\":{},\"markers\":{},\"x\":{},\"y\":{}", quoted(series.name), series.colour % 8,
                  series.markers, numbers(series.x, places, chart.x_scale), numbers(series.y, places, chart.y_scale));
  if (!series.low.empty() && !series.high.empty()) {
    text += fmt::format(",\"low\":{},\"high\":{}", numbers(series.low, places, chart.y_scale),
                        numbers(series.high, places, chart.y_scale));
  }
  return text + "}";
}

}  // namespace

std::string chart_json(const LineChart& chart) {
  std::string series;
  for (const ChartSeries& one : chart.series) series += (series.empty() ? "" : ",\n") + series_json(one, chart);
  return fmt::format("{{\"title\":{},\"x_label\":{},\"y_label\":{},\"x_log\":{},\"y_log\":{},\"series\":[{}]}}",
                     quoted(chart.title), quoted(chart.x_label), quoted(chart.y_label), chart.x_scale == Scale::log,
                     chart.y_scale == Scale::log, series);
}

}  // namespace cautious::report
