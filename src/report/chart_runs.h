// What of a series can be seen: unbroken runs of samples inside the shown part of x, and their outlines on the page with no
// more points than the page can tell apart.
#pragma once

#include <vector>

#include "report/chart_axis.h"
#include "report/svg.h"

namespace cautious::report {

struct LineSample {
  double x, y, low, high;  // scaled; low and high are NaN where there is no band
  bool given;              // not made where the line enters or leaves the shown part
};
using LineRun = std::vector<LineSample>;  // not empty

// Left out: samples the axes cannot show (they break the line) and what lies outside `x`. A band that reaches down to no
// positive value on a log axis goes on to its lower end.
std::vector<LineRun> visible(const ChartSeries& series, Scale x_scale, Scale y_scale, const ChartExtent& x);

ChartExtent extent_of_x(const ChartSeries& series, Scale x_scale, Scale y_scale);

// Of lines and bands.
void include_y(ChartExtent& extent, const std::vector<LineRun>& runs);

std::vector<SvgPoint> outline(const LineRun& run, double LineSample::*member, const ChartAxis& x, const ChartAxis& y);

// The parts of a run that have a band.
std::vector<LineRun> banded(const LineRun& run);

}  // namespace cautious::report
