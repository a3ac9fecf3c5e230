#include "report/chart_plot.h"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/chart_style.h"
#include "report/chart_text.h"
#include "report/plane_marker.h"

namespace cautious::report {
namespace {

constexpr double kAroundY = 0.05, kAroundX = 0.03;
constexpr double kNearZero = 0.01;  // of the largest x: an axis from so near zero begins there
constexpr double kDenseLine = 4;    // plot widths: a noisy line so long is drawn thin
constexpr double kTick = 5, kMinorTick = 3, kLabelGap = 9;
constexpr double kMarker = 4.2, kSmallMarker = 3, kDot = 1.6, kSamePlace = 0.5;

void draw_path(Svg& svg, std::string_view classes, std::size_t colour, const std::string& data) {
  svg.element("path", {{"class", style_class(classes, colour)}, {"d", data}});
}

void draw_bands(Svg& svg, const ChartPlot& plot, const PlotSeries& series) {
  for (const LineRun& run : series.runs) {
    for (const LineRun& part : banded(run)) {
      std::vector<SvgPoint> upper = outline(part, &LineSample::high, plot.x, plot.y);
      const std::vector<SvgPoint> lower = outline(part, &LineSample::low, plot.x, plot.y);
      if (part.size() == 1) {
        draw_line(svg, style_class("whisker", series.colour), upper.front(), lower.front());
        continue;
      }
      upper.insert(upper.end(), lower.rbegin(), lower.rend());
      draw_path(svg, "band", series.colour, svg_path(upper, Ends::closed));
    }
  }
}

std::vector<SvgPoint> marked_points(const ChartPlot& plot, const PlotSeries& series) {
  std::vector<SvgPoint> points;
  for (const LineRun& run : series.runs) {
    for (const LineSample& s : run) {
      const SvgPoint p{plot.x.at(s.x), plot.y.at(s.y)};
      const bool same = !points.empty() && std::hypot(p.x - points.back().x, p.y - points.back().y) < kSamePlace;
      if (s.given && !same) points.push_back(p);
    }
  }
  return points;
}

double length_of(const std::vector<SvgPoint>& line) {
  double length = 0;
  for (std::size_t i = 1; i < line.size(); ++i) length += std::hypot(line[i].x - line[i - 1].x, line[i].y - line[i - 1].y);
  return length;
}

void draw_lines(Svg& svg, const ChartPlot& plot, const PlotSeries& series) {
  for (const LineRun& run : series.runs) {
    const std::vector<SvgPoint> line = outline(run, &LineSample::y, plot.x, plot.y);
    if (line.size() > 1) {
      const bool thin = plot.small || length_of(line) > kDenseLine * (plot.area.right - plot.area.left);
      draw_path(svg, thin ? "line thin" : "line", series.colour, svg_path(line, Ends::open));
    } else if (!series.markers) {
      svg.element("circle", {{"class", style_class("mark", series.colour)},
                             {"cx", svg_number(line.front().x)},
                             {"cy", svg_number(line.front().y)},
                             {"r", svg_number(2 * kDot)}});
    }
  }
}

}  // namespace

bool ChartPlot::empty() const {
  return std::all_of(series.begin(), series.end(), [](const PlotSeries& s) { return s.runs.empty(); });
}

ChartPlot make_plot(const LineChart& chart, ChartExtent shown) {
  ChartExtent x = shown;
  if (x.empty()) {
    bool markers = false;
    for (const ChartSeries& series : chart.series) {
      const ChartExtent own = extent_of_x(series, chart.x_scale, chart.y_scale);
      if (own.empty()) continue;
      x.include(own.low);
      x.include(own.high);
      markers = markers || series.markers;
    }
    const bool from_zero = chart.x_scale == Scale::linear && x.low > 0 && x.low < kNearZero * x.high;
    if (from_zero) x.low = 0;
    x = widened(x, chart.x_scale, markers ? kAroundX : 0);
  }
  ChartPlot plot;
  ChartExtent y;
  for (const ChartSeries& series : chart.series) {
    plot.series.push_back({series.colour, series.markers, visible(series, chart.x_scale, chart.y_scale, x)});
    include_y(y, plot.series.back().runs);
  }
  plot.x = {chart.x_scale, x, 0, 0, {}, {}};
  plot.y = {chart.y_scale, widened(y, chart.y_scale, kAroundY), 0, 0, {}, {}};
  return plot;
}

void place(ChartPlot& plot, const Rectangle& area) {
  plot.area = area;
  if (!plot.empty()) {
    const auto fitting = [](double length, double per_tick) {
      return static_cast<std::size_t>(std::max(3.0, length / per_tick));
    };
    plot.x = make_axis(plot.x.scale, plot.x.shown, fitting(area.right - area.left, plot.small ? 40 : 72));
    plot.y = make_axis(plot.y.scale, plot.y.shown, fitting(area.bottom - area.top, plot.small ? 24 : 42));
  }
  plot.x.from = area.left;
  plot.x.to = area.right;
  plot.y.from = area.bottom;
  plot.y.to = area.top;
}

double label_space(const ChartPlot& plot) {
  double widest = 0;
  for (const std::string& label : plot.y.labels) {
    widest = std::max(widest, text_width(label, plot.small ? kSmallSize : kAxisSize));
  }
  return widest + kLabelGap;
}

void draw_axes(Svg& svg, const ChartPlot& plot, bool empty) {
  const Rectangle& a = plot.area;
  const double size = plot.small ? kSmallSize : kAxisSize;
  const std::string text = plot.small ? "axis small " : "axis ";
  const auto line_class = [](const ChartAxis& axis, double tick) {
    return axis.scale == Scale::linear && tick == 0 && axis.shown.low < 0 ? "grid zero" : "grid";
  };
  for (std::size_t i = 0; i < plot.y.ticks.size(); ++i) {
    const double y = plot.y.at_value(plot.y.ticks[i]);
    draw_line(svg, line_class(plot.y, plot.y.ticks[i]), {a.left, y}, {a.right, y});
    svg.text({a.left - kLabelGap, y + size * 0.35}, text + "end", plot.y.labels[i]);
  }
  for (std::size_t i = 0; i < plot.x.ticks.size(); ++i) {
    const double x = plot.x.at_value(plot.x.ticks[i]);
    draw_line(svg, line_class(plot.x, plot.x.ticks[i]), {x, a.top}, {x, a.bottom});
    draw_line(svg, "tick", {x, a.bottom}, {x, a.bottom + kTick});
    svg.text({x, a.bottom + kTick + size + 1}, text + "middle", plot.x.labels[i]);
  }
  for (const double tick : minor_ticks(plot.x)) {
    const double x = plot.x.at_value(tick);
    draw_line(svg, "tick", {x, a.bottom}, {x, a.bottom + kMinorTick});
  }
  for (const double tick : minor_ticks(plot.y)) {
    const double y = plot.y.at_value(tick);
    draw_line(svg, "tick", {a.left - kMinorTick, y}, {a.left, y});
  }
  draw_line(svg, "base", {a.left, a.bottom}, {a.right, a.bottom});
  if (plot.y.scale == Scale::log) draw_line(svg, "base", {a.left, a.top}, {a.left, a.bottom});
  if (empty) svg.text({(a.left + a.right) / 2, (a.top + a.bottom) / 2}, "soft middle", "no data");
}

void draw_series(Svg& svg, const ChartPlot& plot) {
  for (const PlotSeries& series : plot.series) draw_bands(svg, plot, series);
  for (const PlotSeries& series : plot.series) {
    draw_lines(svg, plot, series);
    if (series.markers) {
      draw_markers(svg, marked_points(plot, series), series.colour, plot.small ? kSmallMarker : kMarker);
    }
  }
}

std::string style_class(std::string_view classes, std::size_t colour) {
  return fmt::format("{} s{}", classes, colour % kSeriesStyles);
}

void draw_line(Svg& svg, std::string_view classes, SvgPoint from, SvgPoint to) {
  svg.element("line", {{"class", std::string(classes)},
                       {"x1", svg_number(from.x)},
                       {"y1", svg_number(from.y)},
                       {"x2", svg_number(to.x)},
                       {"y2", svg_number(to.y)}});
}

void draw_markers(Svg& svg, const std::vector<SvgPoint>& at, std::size_t colour, double radius) {
  if (at.empty()) return;
  std::string data;
  for (const SvgPoint& middle : at) data += marker_path(middle, colour, radius);
  draw_path(svg, "mark", colour, data);
}

}  // namespace cautious::report
