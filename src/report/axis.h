// An axis of a chart: from values to positions on the page, its ticks and their labels. "Scaled" is a value as the axis counts
// it: itself, or its decimal logarithm.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace cautious::report {

enum class Scale { linear, log };

// NaN for what the axis cannot show: not finite, beyond 1e300, or not positive on a log axis.
double scaled(double value, Scale scale);

// What values cover so far; empty as long as low > high.
struct ChartExtent {
  double low = 1e301, high = -1e301;
  bool empty() const { return low > high; }
  void include(double value);  // NaN is left out
};

// Widens by a part of the extent on both sides, and makes one out of a single value or of none. On a linear axis it does not
// cross zero.
ChartExtent widened(ChartExtent data, Scale scale, double part);

struct ChartAxis {
  Scale scale = Scale::linear;
  ChartExtent shown;          // scaled
  double from = 0, to = 0;    // where its low and its high end lie on the page
  std::vector<double> ticks;  // values
  std::vector<std::string> labels;

  double at(double scaled_value) const;  // kept between 10 lengths before and after the axis
  double at_value(double value) const { return at(scaled(value, scale)); }
};

ChartAxis make_axis(Scale scale, const ChartExtent& shown, std::size_t most);

// The ticks between those with a label on a log axis that shows every decade.
std::vector<double> minor_ticks(const ChartAxis& axis);

// Ticks of an axis: round numbers (1, 2, 5 times a power of ten; decades on a log axis), at most `most`.
// None for a range that the axis cannot show.
std::vector<double> axis_ticks(double low, double high, Scale scale, std::size_t most);

// All in one notation on a linear axis: "0.5" and "1.0", "0" and "10k", "2e-5".
std::vector<std::string> tick_labels(const std::vector<double>& ticks, Scale scale);

// With the decimals that tell a sixtieth of the span apart; of a span of 0, a sixtieth of the value.
std::string reading(double value, double span);

}  // namespace cautious::report
