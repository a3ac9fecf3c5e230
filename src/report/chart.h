// Charts as data, drawn to SVG: lines with bands, and points with intervals per category. Light and dark by the reader's
// setting, told apart by colour and by dash or marker. The HTML report draws the same data with zoom and hover.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace cautious::report {

struct ChartSeries {
  std::string name;
  std::size_t colour = 0;         // number in the palette of eight (Okabe and Ito); the dash follows it
  std::vector<double> x, y;       // of equal length; NaN breaks the line
  std::vector<double> low, high;  // a band around y; empty or of that length
  bool markers = false;           // a marker at every point
};

enum class Scale { linear, log };

struct LineChart {
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

struct IntervalChart {
  std::string title, x_label, description;
  std::vector<IntervalEntry> entries;
  std::optional<double> reference;  // a vertical line, as at no difference
};

// Both ignore what cannot be drawn (no finite points: the axes stay empty and say "no data").
std::string to_svg(const LineChart& chart);
std::string to_svg(const IntervalChart& chart);

// Ticks of an axis: round numbers (1, 2, 5 times a power of ten; decades on a log axis), at most `most`.
// None for a range that the axis cannot show.
std::vector<double> axis_ticks(double low, double high, Scale scale, std::size_t most);

}  // namespace cautious::report
