// What of a series can be seen.
#include <algorithm>
#include <cmath>
#include <limits>

#include "report/plot.h"

namespace cautious::report {
namespace {

constexpr double kNoSample = std::numeric_limits<double>::quiet_NaN();
constexpr double kBelowAnyLog = -1000;  // the logarithm of no double
constexpr double kTolerance = 0.2;      // of a line on the page, far less than its width

double band_low(double value, Scale scale) {
  return scale == Scale::log && std::isfinite(value) && value <= 0 ? kBelowAnyLog : scaled(value, scale);
}

LineSample sample(const ChartSeries& series, std::size_t i, Scale x_scale, Scale y_scale) {
  const bool band = series.low.size() == series.x.size() && series.high.size() == series.x.size();
  LineSample s{scaled(series.x[i], x_scale), scaled(series.y[i], y_scale), kNoSample, kNoSample, true};
  if (band) {
    s.low = band_low(series.low[i], y_scale);
    s.high = scaled(series.high[i], y_scale);
    if (std::isnan(s.low) || std::isnan(s.high)) s.low = s.high = kNoSample;
  }
  return s;
}

bool can_draw(const LineSample& s) { return !std::isnan(s.x) && !std::isnan(s.y); }

std::size_t samples_of(const ChartSeries& series) { return std::min(series.x.size(), series.y.size()); }

LineSample between(const LineSample& a, const LineSample& b, double part) {
  const auto mixed = [part](double from, double to) { return from + part * (to - from); };
  return {mixed(a.x, b.x), mixed(a.y, b.y), mixed(a.low, b.low), mixed(a.high, b.high), false};
}

// Adds what lies inside of the segment from a to b. The last run ends in `a` if that is inside.
void add_visible(std::vector<LineRun>& runs, const LineSample& a, const LineSample& b, const ChartExtent& x) {
  const auto inside = [&](const LineSample& s) { return s.x >= x.low && s.x <= x.high; };
  if (std::max(a.x, b.x) < x.low || std::min(a.x, b.x) > x.high) return;
  const auto crossing = [&](const LineSample& outside) {
    const double border = outside.x < x.low ? x.low : x.high;
    return between(a, b, (border - a.x) / (b.x - a.x));
  };
  if (!inside(a)) runs.push_back({crossing(a)});
  runs.back().push_back(inside(b) ? b : crossing(b));
}

// The first, lowest, highest and last of the neighbours in one column of pixels: drawn, they look like all of them.
std::vector<SvgPoint> per_column(const std::vector<SvgPoint>& points) {
  std::vector<SvgPoint> kept;
  for (std::size_t first = 0; first < points.size();) {
    std::size_t end = first + 1, lowest = first, highest = first;
    for (; end < points.size() && std::floor(points[end].x) == std::floor(points[first].x); ++end) {
      if (points[end].y < points[lowest].y) lowest = end;
      if (points[end].y > points[highest].y) highest = end;
    }
    std::vector<std::size_t> keep{first, lowest, highest, end - 1};
    std::sort(keep.begin(), keep.end());
    keep.erase(std::unique(keep.begin(), keep.end()), keep.end());
    for (const std::size_t i : keep) kept.push_back(points[i]);
    first = end;
  }
  return kept;
}

}  // namespace

std::vector<LineRun> visible(const ChartSeries& series, Scale x_scale, Scale y_scale, const ChartExtent& x) {
  std::vector<LineRun> runs;
  LineSample previous{kNoSample, kNoSample, kNoSample, kNoSample, false};
  for (std::size_t i = 0; i < samples_of(series); ++i) {
    const LineSample s = sample(series, i, x_scale, y_scale);
    if (can_draw(s)) {
      if (can_draw(previous)) {
        add_visible(runs, previous, s, x);
      } else if (s.x >= x.low && s.x <= x.high) {
        runs.push_back({s});
      }
    }
    previous = s;
  }
  return runs;
}

ChartExtent extent_of_x(const ChartSeries& series, Scale x_scale, Scale y_scale) {
  ChartExtent extent;
  for (std::size_t i = 0; i < samples_of(series); ++i) {
    const LineSample s = sample(series, i, x_scale, y_scale);
    if (can_draw(s)) extent.include(s.x);
  }
  return extent;
}

void include_y(ChartExtent& extent, const std::vector<LineRun>& runs) {
  for (const LineRun& run : runs) {
    for (const LineSample& s : run) {
      extent.include(s.y);
      if (!s.given) continue;
      extent.include(s.high);
      if (s.low != kBelowAnyLog) extent.include(s.low);
    }
  }
}

std::vector<SvgPoint> outline(const LineRun& run, double LineSample::*member, const ChartAxis& x, const ChartAxis& y) {
  const auto [top, bottom] = std::minmax(y.from, y.to);
  std::vector<SvgPoint> points;
  for (const LineSample& s : run) points.push_back({x.at(s.x), std::clamp(y.at(s.*member), top, bottom)});
  return simplified(per_column(points), kTolerance);
}

std::vector<LineRun> banded(const LineRun& run) {
  std::vector<LineRun> parts;
  bool open = false;
  for (const LineSample& s : run) {
    const bool band = !std::isnan(s.low);
    if (band && !open) parts.emplace_back();
    if (band) parts.back().push_back(s);
    open = band;
  }
  return parts;
}

}  // namespace cautious::report
