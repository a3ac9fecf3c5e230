#include "report/plot.h"

#include <algorithm>
#include <cmath>

#include "report/style.h"

namespace cautious::report {
namespace {

constexpr double kAroundY = 0.05, kAroundX = 0.03;
constexpr double kNearZero = 0.01;  // of the largest x: an axis that begins nearer to zero begins at zero
constexpr double kDenseLine = 4;    // plot widths: a longer line is noisy and drawn thin
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

void draw_runs(Svg& svg, const ChartPlot& plot, const PlotSeries& series) {
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

constexpr double kWidthPart = 0.44, kHeightPart = 0.48;
constexpr double kInsetMargin = 10, kAir = 8, kInkStep = 5;
constexpr double kNarrowestZone = 3;
constexpr int kPlacesAcross = 9, kPlacesDown = 7;

void add_segment(std::vector<SvgPoint>& ink, SvgPoint a, SvgPoint b) {
  const double steps = std::ceil(std::hypot(b.x - a.x, b.y - a.y) / kInkStep) + 1;
  for (double i = 0; i <= steps; ++i) ink.push_back({a.x + (b.x - a.x) * i / steps, a.y + (b.y - a.y) * i / steps});
}

void add_line(std::vector<SvgPoint>& ink, const std::vector<SvgPoint>& line) {
  for (std::size_t i = 0; i < line.size(); ++i) add_segment(ink, line[i ? i - 1 : 0], line[i]);
}

// From edge to edge, once in a step of x.
void add_band(std::vector<SvgPoint>& ink, const ChartPlot& plot, const LineRun& part) {
  const LineSample* from = &part.front();
  for (const LineSample& to : part) {
    const double left = plot.x.at(from->x), width = plot.x.at(to.x) - left;
    if (std::abs(width) < kInkStep && &to != &part.front()) continue;
    const double steps = std::ceil(std::abs(width) / kInkStep) + 1;
    const double low = plot.y.at(from->low), high = plot.y.at(from->high);
    for (double i = 0; i <= steps; ++i) {
      const double done = i / steps, x = left + width * done;
      add_segment(ink, {x, low + (plot.y.at(to.low) - low) * done}, {x, high + (plot.y.at(to.high) - high) * done});
    }
    from = &to;
  }
}

// Points of everything drawn, dense enough that no rectangle with air around it falls between them.
std::vector<SvgPoint> ink_of(const ChartPlot& plot) {
  std::vector<SvgPoint> ink;
  for (const PlotSeries& series : plot.series) {
    for (const LineRun& run : series.runs) {
      add_line(ink, outline(run, &LineSample::y, plot.x, plot.y));
      for (const LineRun& part : banded(run)) {
        add_line(ink, outline(part, &LineSample::low, plot.x, plot.y));
        add_line(ink, outline(part, &LineSample::high, plot.x, plot.y));
        add_band(ink, plot, part);
      }
    }
  }
  return ink;
}

bool is_free(const std::vector<SvgPoint>& ink, const Rectangle& space) {
  return std::none_of(ink.begin(), ink.end(), [&](const SvgPoint& p) {
    return p.x > space.left - kAir && p.x < space.right + kAir && p.y > space.top - kAir && p.y < space.bottom + kAir;
  });
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
    draw_runs(svg, plot, series);
    if (series.markers) {
      draw_markers(svg, marked_points(plot, series), series.colour, plot.small ? kSmallMarker : kMarker);
    }
  }
}

std::optional<Rectangle> free_corner(const ChartPlot& plot) {
  const std::vector<SvgPoint> ink = ink_of(plot);
  const Rectangle room{plot.area.left + kInsetMargin, plot.area.top + kInsetMargin / 2, plot.area.right - kInsetMargin / 2,
                       plot.area.bottom - kInsetMargin};
  for (const double size : {1.0, 0.88, 0.76}) {
    const double width = (plot.area.right - plot.area.left) * kWidthPart * size;
    const double height = (plot.area.bottom - plot.area.top) * kHeightPart * size;
    std::optional<Rectangle> best;
    double nearest = INFINITY;
    for (int row = 0; row < kPlacesDown; ++row) {
      for (int column = 0; column < kPlacesAcross; ++column) {
        const double across = static_cast<double>(column) / (kPlacesAcross - 1),
                     down = static_cast<double>(row) / (kPlacesDown - 1);
        const double off = std::min(across, 1 - across) + std::min(down, 1 - down) + 0.01 * (1 - across) + 0.02 * down;
        const double left = room.left + across * (room.right - room.left - width);
        const double top = room.top + down * (room.bottom - room.top - height);
        const Rectangle space{left, top, left + width, top + height};
        if (off < nearest && is_free(ink, space)) {
          nearest = off;
          best = space;
        }
      }
    }
    if (best) return best;
  }
  return std::nullopt;
}

void draw_inset_zone(Svg& svg, const ChartPlot& plot, const ChartExtent& x) {
  const double low = std::clamp(plot.x.at(x.low), plot.area.left, plot.area.right);
  const double high = std::clamp(plot.x.at(x.high), plot.area.left, plot.area.right);
  svg.element("rect", {{"class", "zone"},
                       {"x", svg_number(low)},
                       {"y", svg_number(plot.area.top)},
                       {"width", svg_number(std::max(high - low, kNarrowestZone))},
                       {"height", svg_number(plot.area.bottom - plot.area.top)}});
}

void draw_inset(Svg& svg, ChartPlot& inset, const Rectangle& space) {
  svg.element("rect", {{"class", "inset"},
                       {"x", svg_number(space.left)},
                       {"y", svg_number(space.top)},
                       {"width", svg_number(space.right - space.left)},
                       {"height", svg_number(space.bottom - space.top)},
                       {"rx", "3"}});
  inset.small = true;
  Rectangle area{space.left + 40, space.top + 24, space.right - 16, space.bottom - 24};
  place(inset, area);
  area.left = space.left + label_space(inset) + 6;
  place(inset, area);
  svg.text({space.left + 8, space.top + 15}, "axis small start", "the shaded part");
  draw_axes(svg, inset, false);
  draw_series(svg, inset);
}

}  // namespace cautious::report
