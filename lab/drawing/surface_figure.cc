// Figures of a surface: the block with its marks, and the legend below it.
#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "lab/drawing/surface_block.h"

namespace cautious::lab::drawing {
namespace {

constexpr double kSurfaceWidth = 860, kSurfaceMargin = 36, kSurfaceInner = kSurfaceWidth - 2 * kSurfaceMargin;
constexpr double kSurfaceTop = 78, kBlock = 500, kAroundPlot = 34, kBelowPlot = 6, kSurfaceLine = 18, kSurfaceFoot = 20;

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

constexpr double kEntryRow = 24, kSampleWidth = 26, kSampleGap = 8, kBetweenEntries = 26;

struct LegendEntry {
  std::string label, style_class;
  std::function<void(Svg& svg, SvgPoint left)> sample;  // from left, in the middle of the row
  SvgPoint at;
};

std::vector<LegendEntry> legend_entries(const SurfaceFigure& figure, double width) {
  std::vector<LegendEntry> all;
  for (const PlanePath& path : figure.paths) {
    all.push_back({path.name,
                   style_class("name", path.series),
                   [series = path.series](Svg& svg, SvgPoint left) {
                     draw_line(svg, style_class("path key", series), left, {left.x + kSampleWidth, left.y});
                     draw_marker(svg, {left.x + kSampleWidth / 2, left.y}, series, "mark key");
                   },
                   {}});
  }
  for (const PlaneCurve& curve : figure.curves) {
    if (curve.label.empty() || curve.points.empty()) continue;
    all.push_back({curve.label,
                   "entry",
                   [&curve](Svg& svg, SvgPoint left) {
                     if (curve.points.size() > 1) {
                       draw_line(svg, fmt::format("curve {}", class_of(curve.style)), {left.x + 4, left.y},
                                 {left.x + kSampleWidth - 4, left.y});
                     } else {
                       draw_ring(svg, {left.x + kSampleWidth / 2, left.y}, curve.style);
                     }
                   },
                   {}});
  }
  if (figure.box && !figure.box->label.empty()) {
    all.push_back({figure.box->label,
                   "entry",
                   [](Svg& svg, SvgPoint left) {
                     svg.element("rect", {{"class", "region"},
                                          {"x", svg_number(left.x + 4)},
                                          {"y", svg_number(left.y - 7)},
                                          {"width", svg_number(kSampleWidth - 8)},
                                          {"height", "14"}});
                   },
                   {}});
  }
  SvgPoint at;
  for (LegendEntry& entry : all) {
    const double needed = kSampleWidth + kSampleGap + report::text_width(entry.label, kPathNameSize);
    if (at.x > 0 && at.x + needed > width) at = {0, at.y + kEntryRow};
    entry.at = at;
    at.x += needed + kBetweenEntries;
  }
  return all;
}

// Rows no wider than `width`.
double legend_height(const SurfaceFigure& figure, double width) {
  double height = 0;
  for (const LegendEntry& entry : legend_entries(figure, width)) height = std::max(height, entry.at.y + kEntryRow);
  return height;
}

void draw_legend(Svg& svg, const SurfaceFigure& figure, SvgPoint left_top, double width) {
  for (const LegendEntry& entry : legend_entries(figure, width)) {
    const SvgPoint left{left_top.x + entry.at.x, left_top.y + entry.at.y + kEntryRow / 2};
    entry.sample(svg, left);
    svg.text({left.x + kSampleWidth + kSampleGap, left.y + 4.5}, entry.style_class + " start", entry.label);
  }
}

struct SurfaceLayout {
  std::vector<std::string> subtitle, note;
  Rectangle plot{};
  double legend = 0, note_at = 0;
  SvgPoint size;
};

SurfaceLayout surface_layout(const SurfaceFigure& figure) {
  SurfaceLayout result;
  result.subtitle = report::wrapped(figure.subtitle, kPlaneSoftSize, kSurfaceInner);
  result.note = report::wrapped(figure.note, kPlaneSoftSize, kSurfaceInner);
  const double top =
      kSurfaceTop + (figure.subtitle.empty() ? -1.0 : static_cast<double>(result.subtitle.size() - 1)) * kSurfaceLine;
  result.plot = {kSurfaceMargin + kAroundPlot, top, kSurfaceWidth - kSurfaceMargin - kAroundPlot, top + kBlock};
  result.legend = result.plot.bottom + kAroundPlot + kBelowPlot;
  result.note_at = result.legend + legend_height(figure, kSurfaceInner) + kSurfaceLine;
  const double end = figure.note.empty() ? result.note_at - kSurfaceLine
                                         : result.note_at + static_cast<double>(result.note.size() - 1) * kSurfaceLine;
  result.size = {kSurfaceWidth, end + kSurfaceFoot};
  return result;
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
  const SurfaceLayout places = surface_layout(figure);
  const SurfaceGrid grid(figure);
  const SurfaceView view(places.plot, figure.azimuth, figure.elevation);
  const SurfaceInk ink(figure, grid, view);
  const std::string style = plane_style() + std::string(kSurfaceStyle) + mesh_style(figure, grid, view);
  Svg svg(places.size.x, places.size.y, figure.title, figure.description, style);
  svg.element("rect", {{"class", "page"}, {"width", svg_number(places.size.x)}, {"height", svg_number(places.size.y)}});
  svg.text({kSurfaceMargin, 34}, "title start", figure.title);
  draw_lines(svg, {kSurfaceMargin, 56}, places.subtitle, kSurfaceLine);
  svg.text({kSurfaceWidth - kSurfaceMargin, places.plot.top + 14}, "formula end", figure.formula);
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
  draw_legend(svg, figure, {kSurfaceMargin, places.legend}, kSurfaceInner);
  draw_lines(svg, {kSurfaceMargin, places.note_at}, places.note, kSurfaceLine);
  return svg.finish();
}

SvgPoint page_size(const SurfaceFigure& figure) { return surface_layout(figure).size; }

std::vector<MovingPath> moving_paths(const SurfaceFigure& figure) {
  const SurfaceGrid grid(figure);
  const SurfaceView view(surface_layout(figure).plot, figure.azimuth, figure.elevation);
  const SurfaceInk ink(figure, grid, view);
  std::vector<MovingPath> paths;
  for (const PlanePath& path : figure.paths) {
    paths.push_back(moving_path(path, [&ink](PlanePoint p) { return ink.page(p); }));
  }
  return paths;
}

std::string page_json(const SurfaceFigure& figure) { return moving_json(page_size(figure), moving_paths(figure)); }

}  // namespace cautious::lab::drawing
