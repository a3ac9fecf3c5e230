#include "report/chart_inset.h"

#include <algorithm>
#include <cmath>

#include "report/chart_style.h"

namespace cautious::report {
namespace {

constexpr double kWidthPart = 0.44, kHeightPart = 0.48;
constexpr double kMargin = 10, kAir = 8, kInkStep = 5;
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

std::optional<Rectangle> free_corner(const ChartPlot& plot) {
  const std::vector<SvgPoint> ink = ink_of(plot);
  const Rectangle room{plot.area.left + kMargin, plot.area.top + kMargin / 2, plot.area.right - kMargin / 2,
                       plot.area.bottom - kMargin};
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
