// The names of the series: at the ends of their lines where that is clear, in rows above the plot otherwise.
#pragma once

#include <string>
#include <vector>

#include "report/chart_plot.h"

namespace cautious::report {

struct LegendEntry {
  std::string name;
  std::size_t colour = 0;
  bool markers = false;
};

// One per name and style, in the order of the series; says which have nothing to show.
std::vector<LegendEntry> legend_entries(const LineChart& chart, const ChartPlot& plot);

// True if every line runs to the right end and its name is short. `plot` needs its shown extents only.
bool can_label_ends(const LineChart& chart, const ChartPlot& plot);

// Width to the right of the plot that the names take.
double end_label_space(const LineChart& chart);
void draw_end_labels(Svg& svg, const LineChart& chart, const ChartPlot& plot);

// Rows of entries no wider than `width`.
double legend_height(const std::vector<LegendEntry>& entries, double width);
void draw_legend(Svg& svg, const std::vector<LegendEntry>& entries, SvgPoint left_top, double width);

// Places as near to the wanted ones (ascending) as they can be (least squares) `gap` apart and between low and high.
std::vector<double> spread(const std::vector<double>& wanted, double gap, double low, double high);

}  // namespace cautious::report
