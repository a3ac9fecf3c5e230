// A small chart of a part of x inside the plot, where it hides nothing.
#pragma once

#include <optional>

#include "report/chart_plot.h"

namespace cautious::report {

// A rectangle in the plot, as near to a corner as there is one free of lines and bands.
std::optional<Rectangle> free_corner(const ChartPlot& plot);

// The inset in `space`; the part of x that it shows is shaded in the plot.
void draw_inset(Svg& svg, ChartPlot& inset, const Rectangle& space);
void draw_inset_zone(Svg& svg, const ChartPlot& plot, const ChartExtent& x);

}  // namespace cautious::report
