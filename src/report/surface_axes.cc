#include "report/surface_axes.h"

#include <algorithm>
#include <cmath>

#include "report/chart_axis.h"
#include "report/chart_plot.h"
#include "report/chart_style.h"
#include "report/chart_text.h"

namespace cautious::report {
namespace {

constexpr double kTick = 0.018, kLabel = 0.055, kName = 0.125;  // away from the edge, in sides of the block
constexpr double kTextMargin = 12;                              // of the page
constexpr double kDrop = 4;                                     // from the middle of small text to its baseline
constexpr double kNarrow = 25;                                  // a label less than so far from straight below its tick

// A scale of the plane along the floor: where `part` of it lies, moved outward by `away`.
template <class Place>
void draw_scale(Svg& svg, const SurfaceFigure& figure, const SurfaceView& view, std::string_view name, const Place& place) {
  const SvgPoint middle = view.page(place(0.5, 0)), outward = view.page(place(0.5, kName));
  const double lean = outward.x - middle.x;
  const char* anchor = std::abs(lean) < kNarrow ? "axis middle" : lean < 0 ? "axis end" : "axis start";
  draw_line(svg, "frame", view.page(place(0, 0)), view.page(place(1, 0)));
  const std::vector<double> ticks = axis_ticks(figure.low, figure.high, Scale::linear, 7);
  const std::vector<std::string> labels = tick_labels(ticks, Scale::linear);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double part = (ticks[i] - figure.low) / (figure.high - figure.low);
    draw_line(svg, "tick", view.page(place(part, 0)), view.page(place(part, kTick)));
    const SvgPoint at = view.page(place(part, kLabel));
    svg.text({at.x, at.y + kDrop}, "axis middle", labels[i]);
  }
  svg.text({outward.x, outward.y + kDrop}, anchor, name);
}

void draw_height(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view) {
  BlockPoint foot;
  for (const double u : {0.0, 1.0}) {
    for (const double v : {0.0, 1.0}) {
      if (view.page({u, v, 0}).x < view.page(foot).x) foot = {u, v, 0};
    }
  }
  const SvgPoint low = view.page(foot), high = view.page({foot.u, foot.v, kTall});
  draw_line(svg, "frame", low, high);
  const double width = text_width(figure.height_label, kAxisSize);
  svg.text({std::max(high.x + 6, width + kTextMargin), high.y - 12}, "axis end", figure.height_label);
  if (!(grid.bottom() < grid.top())) return;
  const std::vector<double> ticks = axis_ticks(grid.bottom(), grid.top(), Scale::linear, 5);
  const std::vector<std::string> labels = tick_labels(ticks, Scale::linear);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const double y = std::lerp(low.y, high.y, (ticks[i] / 2 - grid.bottom() / 2) / (grid.top() / 2 - grid.bottom() / 2));
    draw_line(svg, "tick", {low.x - 5, y}, {low.x, y});
    svg.text({low.x - 9, y + kDrop}, "axis end", labels[i]);
  }
}

}  // namespace

void draw_surface_axes(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view) {
  const double near_u = view.high_u_is_near() ? 1 : 0, near_v = view.high_v_is_near() ? 1 : 0;
  const double out_u = 2 * near_u - 1, out_v = 2 * near_v - 1;
  draw_scale(svg, figure, view, "x", [=](double part, double away) { return BlockPoint{part, near_v + out_v * away, 0}; });
  draw_scale(svg, figure, view, "y", [=](double part, double away) { return BlockPoint{near_u + out_u * away, part, 0}; });
  draw_height(svg, figure, grid, view);
}

}  // namespace cautious::report
