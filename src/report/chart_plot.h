// The inside of a chart: grid, axes, lines, bands and markers in a rectangle of the page. The chart and its inset share it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "report/chart_runs.h"
#include "report/contour.h"
#include "report/svg.h"

namespace cautious::report {

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

// "s0" to "s7" after the other classes.
std::string style_class(std::string_view classes, std::size_t colour);

void draw_line(Svg& svg, std::string_view classes, SvgPoint from, SvgPoint to);

// Every style has its shape.
void draw_markers(Svg& svg, const std::vector<SvgPoint>& at, std::size_t colour, double radius);

}  // namespace cautious::report
