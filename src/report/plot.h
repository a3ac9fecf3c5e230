// The inside of a chart: what of its series can be seen, then grid, axes, lines, bands and markers in a rectangle of the page.
// A chart and its inset are both such plots.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/axis.h"
#include "report/chart.h"
#include "report/svg.h"

namespace cautious::report {

// The page around the plot, the same for all charts.
inline constexpr double kPageWidth = 760, kPageLeft = 24, kPageTop = 16, kPageBottom = 14;
inline constexpr double kTitleLine = 22, kSoftLine = 18, kBelowPlot = 26;

// A series as unbroken runs of samples inside the shown part of x, and their outlines with no more points than the page can
// tell apart.
struct LineSample {
  double x, y, low, high;  // scaled; low and high are NaN where there is no band
  bool given;              // not made where the line enters or leaves the shown part
};
using LineRun = std::vector<LineSample>;  // not empty

// Left out: samples the axes cannot show (they break the line) and what lies outside `x`. A band that reaches down to no
// positive value on a log axis continues to its lower end.
std::vector<LineRun> visible(const ChartSeries& series, Scale x_scale, Scale y_scale, const ChartExtent& x);

ChartExtent extent_of_x(const ChartSeries& series, Scale x_scale, Scale y_scale);

// Of lines and bands.
void include_y(ChartExtent& extent, const std::vector<LineRun>& runs);

std::vector<SvgPoint> outline(const LineRun& run, double LineSample::*member, const ChartAxis& x, const ChartAxis& y);

// The parts of a run that have a band.
std::vector<LineRun> banded(const LineRun& run);

struct PlotSeries {
  std::size_t colour = 0;
  bool markers = false;
  std::vector<LineRun> runs;
};

struct ChartPlot {
  Rectangle area{};
  ChartAxis x, y;
  std::vector<PlotSeries> series;
  bool small = false;

  bool empty() const;
};

// The part of x that `shown` gives (scaled; empty: all), with y fitted to it. It has no place on the page yet.
ChartPlot make_plot(const LineChart& chart, ChartExtent shown);

void place(ChartPlot& plot, const Rectangle& area);

// Width that the labels of the y axis take to the left of the area.
double label_space(const ChartPlot& plot);

void draw_axes(Svg& svg, const ChartPlot& plot, bool empty);  // says so if empty
void draw_series(Svg& svg, const ChartPlot& plot);

// A rectangle in the plot, as near to a corner as there is one free of lines and bands.
std::optional<Rectangle> free_corner(const ChartPlot& plot);

// The inset in `space`; the part of x that it shows is shaded in the plot.
void draw_inset(Svg& svg, ChartPlot& inset, const Rectangle& space);
void draw_inset_zone(Svg& svg, const ChartPlot& plot, const ChartExtent& x);

}  // namespace cautious::report
