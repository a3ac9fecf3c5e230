// Charts as data, drawn to SVG: lines with bands, and points with intervals per category. Light or dark as the reader has set
// it; series differ in colour and in dash or marker. The HTML report draws the same data with zoom and hover.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/axis.h"

namespace cautious::report {

struct ChartSeries {
  std::string name;
  std::size_t colour = 0;         // number in the palette of twelve; the dash follows it
  std::vector<double> x, y;       // of equal length; NaN breaks the line
  std::vector<double> low, high;  // a band around y; empty or of that length
  bool markers = false;           // a marker at every point
};

struct LineChart {
  static constexpr std::string_view kScript = "chart";  // the script of the page that draws it again, from page_json()
  std::string title, x_label, y_label;
  std::string description;  // for those who cannot see it
  Scale x_scale = Scale::linear, y_scale = Scale::linear;
  std::vector<ChartSeries> series;
  std::optional<std::pair<double, double>> x_range;  // shows only this part, y fitted to it
  std::optional<std::pair<double, double>> inset;    // a small chart of this part of x in a free corner
};

// One row of points with an interval per entry; entries from top to bottom.
struct IntervalEntry {
  std::string name;
  std::size_t colour = 0;
  double value = 0;
  double low = 0, high = 0;    // NaN: no interval
  std::vector<double> points;  // single runs
};

// Where intervals are so long that the points would all be in one place, the axis is cut, and arrows say where they go on; the
// numbers beside them are whole.
struct IntervalChart {
  static constexpr std::string_view kScript = "";  // none: it stays an image
  std::string title, x_label, description;
  std::vector<IntervalEntry> entries;
  std::optional<double> reference;  // a vertical line, as at no difference
};

// Both ignore what cannot be drawn (no finite points: the axes stay empty and say "no data").
std::string to_svg(const LineChart& chart);
std::string to_svg(const IntervalChart& chart);

// The same for a narrow screen, where the other would be too small to read: a telephone's.
std::string narrow_svg(const IntervalChart& chart);

// The data of a chart for the page's script, at most 600 points per series, safe inside <script>.
std::string page_json(const LineChart& chart);
inline std::string page_json(const IntervalChart&) { return {}; }

}  // namespace cautious::report
