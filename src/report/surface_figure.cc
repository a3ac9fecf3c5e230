#include "report/surface_figure.h"

#include <algorithm>

#include <fmt/format.h>

#include "report/chart_plot.h"
#include "report/chart_text.h"
#include "report/label.h"
#include "report/plane_marker.h"
#include "report/plane_style.h"
#include "report/surface_axes.h"
#include "report/surface_ink.h"
#include "report/surface_legend.h"
#include "report/surface_mesh.h"

namespace cautious::report {
namespace {

constexpr double kWidth = 860, kMargin = 36, kInner = kWidth - 2 * kMargin;
constexpr double kTop = 78, kPlot = 500, kAroundPlot = 34, kBelowPlot = 6, kLine = 18, kFoot = 20;

// What the style of the plane does not have. The region is green as in the paper.
constexpr std::string_view kSurfaceStyle = R"(
.entry{font-size:12.5px}
.region{fill:#8fcd9e;stroke:#2f8a5f}
.outline{fill:none;stroke:#1d7a50;stroke-width:1.3;stroke-linejoin:round}
.contour{fill:none;stroke:#33507f;stroke-opacity:.3;stroke-width:.7}
.side{fill:#dfe4ed;stroke:#b4bdcc;stroke-width:.8;stroke-linejoin:round}.side.turned{fill:#eef1f6}
.band{stroke-width:7}
.path{stroke-width:2.4}.casing{stroke:#ffffff;stroke-width:4.6}
.path.behind{stroke-width:1.6;stroke-opacity:.55;stroke-dasharray:1 4}
.casing.behind{stroke-opacity:0}
.curve.behind,.outline.behind{stroke-opacity:.25}
.mark.behind{opacity:.55}
@media (prefers-color-scheme:dark){
.region{fill:#30745a;stroke:#5fc796}
.outline{stroke:#6fd6a4}
.contour{stroke:#cfdcff;stroke-opacity:.2}
.side{fill:#1d2431;stroke:#434f63}.side.turned{fill:#262f3f}
.casing{stroke:#0d1118;stroke-opacity:.65}
}
)";

struct Layout {
  std::vector<std::string> subtitle, note;
  Rectangle plot{};
  double legend = 0, note_at = 0;
  SvgPoint size;
};

Layout layout(const SurfaceFigure& figure) {
  Layout result;
  result.subtitle = wrapped(figure.subtitle, kPlaneSoftSize, kInner);
  result.note = wrapped(figure.note, kPlaneSoftSize, kInner);
  const double top = kTop + (figure.subtitle.empty() ? -1.0 : static_cast<double>(result.subtitle.size() - 1)) * kLine;
  result.plot = {kMargin + kAroundPlot, top, kWidth - kMargin - kAroundPlot, top + kPlot};
  result.legend = result.plot.bottom + kAroundPlot + kBelowPlot;
  result.note_at = result.legend + surface_legend_height(figure, kInner) + kLine;
  const double end =
      figure.note.empty() ? result.note_at - kLine : result.note_at + static_cast<double>(result.note.size() - 1) * kLine;
  result.size = {kWidth, end + kFoot};
  return result;
}

void draw_lines(Svg& svg, SvgPoint at, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    svg.text(at, "soft start", line);
    at.y += kLine;
  }
}

void draw_outline(Svg& svg, const SurfaceFigure& figure, const SurfaceInk& ink) {
  const double r = figure.box->half_side;
  const double low = std::max(-r, figure.low), high = std::min(r, figure.high);
  if (!(low < high)) return;
  for (const double edge : {-r, r}) {
    ink.draw(svg, "outline", ink.runs({{edge, low}, {edge, high}}));
    ink.draw(svg, "outline", ink.runs({{low, edge}, {high, edge}}));
  }
}

void draw_marks(Svg& svg, const SurfaceFigure& figure, const SurfaceInk& ink, const Rectangle& plot) {
  LabelPlanner planner(plot);
  if (!figure.paths.empty()) {
    const SvgPoint start = ink.page(standing(figure.paths.front(), 0));
    planner.avoid({start.x - 6, start.y - 6, start.x + 6, start.y + 6});
    const LabelPlace place = planner.place(start, "start", kPlaneNoteSize, 10);
    svg.text(place.at, fmt::format("note {}", place.anchor), "start");
  }
  for (const PlanePath& path : figure.paths) {
    const SvgPoint start = ink.page(standing(path, 0));
    svg.element("circle", {{"class", "origin"}, {"cx", svg_number(start.x)}, {"cy", svg_number(start.y)}, {"r", "4.5"}});
  }
  for (const PlanePath& path : figure.paths) {
    const PlanePoint end = standing(path, path.points.size() - 1);
    draw_marker(svg, ink.page(end), path.series, ink.hidden(end) ? "mark behind" : "mark");
  }
}

}  // namespace

std::string to_svg(const SurfaceFigure& figure) {
  const Layout places = layout(figure);
  const SurfaceGrid grid(figure);
  const SurfaceView view(places.plot, figure.azimuth, figure.elevation);
  const SurfaceInk ink(figure, grid, view);
  const std::string style = std::string(kPlaneStyle) + std::string(kSurfaceStyle) + mesh_style(figure, grid, view);
  Svg svg(places.size.x, places.size.y, figure.title, figure.description, style);
  svg.element("rect", {{"class", "page"}, {"width", svg_number(places.size.x)}, {"height", svg_number(places.size.y)}});
  svg.text({kMargin, 34}, "title start", figure.title);
  draw_lines(svg, {kMargin, 56}, places.subtitle);
  svg.text({kWidth - kMargin, places.plot.top + 14}, "formula end", figure.formula);
  draw_mesh(svg, figure, grid, view);
  draw_contours(svg, figure, grid, ink);
  draw_surface_axes(svg, figure, grid, view);
  if (figure.box) draw_outline(svg, figure, ink);
  for (const PlaneCurve& curve : figure.curves) {
    if (curve.points.size() == 1) draw_ring(svg, ink.page(curve.points[0]), curve.style);
    ink.draw(svg, fmt::format("curve {}", class_of(curve.style)), ink.runs(curve.points));
  }
  for (const PlanePath& path : figure.paths) {
    const std::vector<SurfaceRun> runs = ink.runs(path.points);
    ink.draw(svg, "casing", runs);
    ink.draw(svg, style_class("path", path.series), runs);
  }
  draw_marks(svg, figure, ink, places.plot);
  draw_surface_legend(svg, figure, {kMargin, places.legend}, kInner);
  draw_lines(svg, {kMargin, places.note_at}, places.note);
  return svg.finish();
}

SvgPoint page_size(const SurfaceFigure& figure) { return layout(figure).size; }

std::vector<MovingPath> moving_paths(const SurfaceFigure& figure) {
  const SurfaceGrid grid(figure);
  const SurfaceView view(layout(figure).plot, figure.azimuth, figure.elevation);
  const SurfaceInk ink(figure, grid, view);
  std::vector<MovingPath> paths;
  for (const PlanePath& path : figure.paths) {
    MovingPath moving{path.series, path.name, path.points.size() - 1, {}};
    for (const std::size_t step : moving_steps(path.points.size())) moving.points.push_back(ink.page(standing(path, step)));
    paths.push_back(std::move(moving));
  }
  return paths;
}

}  // namespace cautious::report
