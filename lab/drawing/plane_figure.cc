// Figures of the plane: panels with hills, curves and paths, and a table below or beside each.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/drawing/contour.h"
#include "lab/drawing/scene.h"
#include "report/axis.h"

namespace cautious::lab::drawing {
namespace {

constexpr int kHillCells = 120;
constexpr int kHillBands = 14;
constexpr std::size_t kPlaneTicks = 8;

// The square part of the plane that is shown, and where on the page.
struct PlaneView {
  double low, high;
  Rectangle area;

  double scale() const { return (area.right - area.left) / (high - low); }
  SvgPoint page(PlanePoint p) const { return {area.left + (p.x - low) * scale(), area.bottom - (p.y - low) * scale()}; }
  PlanePoint plane(SvgPoint p) const { return {low + (p.x - area.left) / scale(), low + (area.bottom - p.y) / scale()}; }
  // Far outside they come nearer, so that the numbers stay short; without those that are not finite.
  std::vector<SvgPoint> page(const std::vector<PlanePoint>& points) const {
    const double side = high - low;
    std::vector<SvgPoint> result;
    for (const PlanePoint& p : points) {
      if (std::isfinite(p.x) && std::isfinite(p.y))
        result.push_back(page(PlanePoint{std::clamp(p.x, low - side, high + side), std::clamp(p.y, low - side, high + side)}));
    }
    return result;
  }
  // On the rim if it is outside.
  SvgPoint marked(PlanePoint p) const { return page(PlanePoint{std::clamp(p.x, low, high), std::clamp(p.y, low, high)}); }
};

PlanePoint end_of(const PlanePath& path) { return standing(path, path.points.size() - 1); }

void draw_hills(Svg& svg, const PlaneView& view, const PlanePanel& panel) {
  constexpr double kHuge = 1e300;
  constexpr int kSamples = 24;
  // What is not a number is as low as can be: no contour encloses it.
  const auto height = [&](SvgPoint p) {
    const double value = panel.height(view.plane(p));
    return std::isnan(value) ? -INFINITY : std::clamp(value, -kHuge, kHuge);
  };
  double low = INFINITY, top = -INFINITY;
  for (int i = 0; i <= kSamples * (kSamples + 2); ++i) {
    const int row = i / (kSamples + 1), column = i % (kSamples + 1);
    const double side = view.high - view.low;
    const double value = panel.height({view.low + side * column / kSamples, view.low + side * row / kSamples});
    if (!std::isfinite(value)) continue;
    low = std::min(low, value);
    top = std::max(top, value);
  }
  if (!(low < top)) return;
  const ContourGrid grid(view.area, kHillCells, height);
  for (int band = 0; band < kHillBands; ++band) {
    std::string data;
    for (auto& loop : grid.above(low + (top - low) * (band + 0.4) / kHillBands)) {
      loop.push_back(loop.front());
      data += svg_path(simplified(loop, 0.1), Ends::closed);
    }
    if (!data.empty()) svg.element("path", {{"class", "hill"}, {"d", data}});
  }
}

void draw_trace(Svg& svg, const std::string& classes, const std::vector<SvgPoint>& points) {
  svg.element("path", {{"class", classes}, {"d", svg_path(simplified(points, 0.08), Ends::open)}});
}

void draw_curve(Svg& svg, const PlaneCurve& curve, const std::vector<SvgPoint>& points) {
  if (points.size() > 1) draw_trace(svg, fmt::format("curve {}", class_of(curve.style)), points);
  if (points.size() == 1) draw_ring(svg, points[0], curve.style);
}

void draw_box(Svg& svg, const PlaneView& view, LabelPlanner& planner, double half_side) {
  const SvgPoint corner = view.page(PlanePoint{-half_side, half_side});
  const double side = 2 * half_side * view.scale();
  svg.element("rect", {{"class", "box"},
                       {"x", svg_number(corner.x)},
                       {"y", svg_number(corner.y)},
                       {"width", svg_number(side)},
                       {"height", svg_number(side)}});
  constexpr int kPoints = 400;
  std::vector<SvgPoint> edges;
  for (int i = 0; i <= kPoints; ++i) {
    edges.push_back({corner.x + side * i / kPoints, corner.y});
    edges.push_back({corner.x + side, corner.y + side * i / kPoints});
  }
  planner.avoid(edges);
}

void draw_panel_axes(Svg& svg, const PlaneView& view) {
  const Rectangle& a = view.area;
  const auto number = [](double v) { return svg_number(v); };
  const std::vector<double> ticks = report::axis_ticks(view.low, view.high, report::Scale::linear, kPlaneTicks);
  const std::vector<std::string> labels = report::tick_labels(ticks, report::Scale::linear);
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    const SvgPoint p = view.page(PlanePoint{ticks[i], ticks[i]});
    draw_line(svg, "tick", {p.x, a.bottom}, {p.x, a.bottom + 5});
    draw_line(svg, "tick", {a.left - 5, p.y}, {a.left, p.y});
    svg.text({p.x, a.bottom + 18}, "axis middle", labels[i]);
    svg.text({a.left - 9, p.y + 4}, "axis end", labels[i]);
  }
  svg.element("rect", {{"class", "frame"},
                       {"x", number(a.left)},
                       {"y", number(a.top)},
                       {"width", number(a.right - a.left)},
                       {"height", number(a.bottom - a.top)}});
  svg.text({a.right, a.bottom + 32}, "axis end", "x");
  svg.text({a.left - 26, a.top + 8}, "axis end", "y");
}

void draw_label(Svg& svg, LabelPlanner& planner, SvgPoint point, const std::string& classes, std::string_view words,
                double size, double gap) {
  const LabelPlace place = planner.place(point, words, size, gap);
  svg.text(place.at, fmt::format("{} {}", classes, place.anchor), words);
}

Rectangle around(SvgPoint p, double reach) { return {p.x - reach, p.y - reach, p.x + reach, p.y + reach}; }

// The different points where paths start.
std::vector<SvgPoint> starts(const PlaneView& view, const PlanePanel& panel) {
  std::vector<SvgPoint> found;
  for (const PlanePath& path : panel.paths) {
    const SvgPoint p = view.marked(standing(path, 0));
    if (std::none_of(found.begin(), found.end(), [p](SvgPoint o) { return std::hypot(o.x - p.x, o.y - p.y) < 1; }))
      found.push_back(p);
  }
  return found;
}

// Starts and ends, then the labels of everything: the names of the paths choose their places first.
void draw_panel_marks(Svg& svg, const PlaneView& view, LabelPlanner& planner, const PlanePanel& panel) {
  const std::vector<SvgPoint> from = starts(view, panel);
  for (const SvgPoint& p : from) {
    svg.element("circle", {{"class", "origin"}, {"cx", svg_number(p.x)}, {"cy", svg_number(p.y)}, {"r", "4.5"}});
    planner.avoid(around(p, 6));
  }
  for (const PlanePath& path : panel.paths) {
    const SvgPoint end = view.marked(end_of(path));
    draw_marker(svg, end, path.series);
    planner.avoid(around(end, 7));
  }
  for (const PlanePath& path : panel.paths) {
    draw_label(svg, planner, view.marked(end_of(path)), style_class("name", path.series), path.name, kPathNameSize, 11);
  }
  if (!from.empty()) draw_label(svg, planner, from.front(), "note", "start", kPlaneNoteSize, 10);
  for (const PlaneCurve& curve : panel.curves) {
    if (!curve.label.empty() && !curve.points.empty()) {
      draw_label(svg, planner, view.marked(curve.points[curve.points.size() * 4 / 5]), "note", curve.label, kPlaneNoteSize, 12);
    }
  }
  if (panel.box) {
    const double side = std::min(panel.box->half_side, view.high);
    draw_label(svg, planner, view.page(PlanePoint{side * 0.5, side * 0.12}), "note", panel.box->label, kPlaneNoteSize, 4);
  }
}

void draw_panel(Svg& svg, const Rectangle& area, const PlanePanel& panel) {
  const PlaneView view{panel.low, panel.high, area};
  const auto left = svg_number(area.left), top = svg_number(area.top);
  const auto width = svg_number(area.right - area.left), height = svg_number(area.bottom - area.top);
  const auto clip = fmt::format("clip-{}", panel.id);
  svg.open("clipPath", {{"id", clip}});
  svg.element("rect", {{"x", left}, {"y", top}, {"width", width}, {"height", height}});
  svg.close();

  LabelPlanner planner(area);
  svg.open("g", {{"clip-path", fmt::format("url(#{})", clip)}});
  svg.element("rect", {{"class", "plot"}, {"x", left}, {"y", top}, {"width", width}, {"height", height}});
  draw_hills(svg, view, panel);
  if (panel.box) draw_box(svg, view, planner, panel.box->half_side);
  for (const PlaneCurve& curve : panel.curves) {
    const auto points = view.page(curve.points);
    draw_curve(svg, curve, points);
    planner.avoid(points);
  }
  for (const PlanePath& path : panel.paths) {
    const auto points = view.page(path.points);
    draw_trace(svg, "casing", points);
    draw_trace(svg, style_class("path", path.series), points);
    planner.avoid(points);
  }
  svg.close();
  draw_panel_marks(svg, view, planner, panel);
  draw_panel_axes(svg, view);
}

std::vector<MovingPath> paths_in(const Rectangle& area, const PlanePanel& panel) {
  const PlaneView view{panel.low, panel.high, area};
  std::vector<MovingPath> paths;
  for (const PlanePath& path : panel.paths) {
    paths.push_back(moving_path(path, [&view](PlanePoint p) { return view.marked(p); }));
  }
  return paths;
}

constexpr double kPanel = 440, kPanelGap = 76, kLeft = 56, kRight = 24, kPlaneInner = 2 * kPanel + kPanelGap;
constexpr double kLonePanel = 560, kLoneGap = 44, kLoneInner = kLonePanel + kLoneGap + kPanel;  // with its table beside it
constexpr double kPlotTop = 108, kHeading = 14, kTable = 58, kBesideTop = 24, kTableRow = 21, kPlaneLine = 17;
constexpr double kBelowAxes = 52, kBelowTable = 34, kBetweenRows = 40, kPlaneFoot = 14;

// Where everything is. The note is beside the last panel if that is alone in its row.
struct Place {
  Rectangle plot;
  SvgPoint table;
};

struct PlaneLayout {
  std::vector<std::string> subtitle, note;
  std::vector<Place> panels;
  SvgPoint note_at, size;
};

PlaneLayout plane_layout(const PlaneFigure& figure) {
  PlaneLayout result;
  const bool single = figure.panels.size() == 1;
  const double side = single ? kLonePanel : kPanel, gap = single ? kLoneGap : kPanelGap;
  const double inner = single ? kLoneInner : kPlaneInner;
  result.subtitle = report::wrapped(figure.subtitle, kPlaneSoftSize, inner);
  double top = kPlotTop + (figure.subtitle.empty() ? -1.0 : static_cast<double>(result.subtitle.size() - 1)) * kPlaneLine;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const bool left = i % 2 == 0, alone = left && i + 1 == figure.panels.size();
    const double x = left ? kLeft : kLeft + kPanel + kPanelGap;
    const double rows = static_cast<double>(figure.panels[i].paths.size()) * kTableRow;
    const Rectangle plot{x, top, x + side, top + side};
    const SvgPoint table = alone ? SvgPoint{plot.right + gap, top + kBesideTop} : SvgPoint{x, plot.bottom + kTable};
    result.panels.push_back({plot, table});
    const double bottom = std::max(plot.bottom + kBelowAxes, table.y + 7 + rows + kBelowTable);
    result.size.y = std::max(result.size.y, bottom);
    result.note_at = {table.x, alone ? table.y + 7 + rows + kBelowTable : result.size.y};
    result.note = report::wrapped(figure.note, kPlaneSoftSize, alone ? kPanel : kPlaneInner);
    if (alone) continue;
    result.note_at.x = kLeft;
    if (!left) top = result.size.y + kBetweenRows;
  }
  const double note_end = result.note_at.y + static_cast<double>(result.note.size() - 1) * kPlaneLine;
  result.size = {kLeft + inner + kRight, std::max(result.size.y, note_end) + kPlaneFoot};
  return result;
}

void draw_table(Svg& svg, SvgPoint at, const PlaneFigure& figure, const PlanePanel& panel) {
  const double left = at.x, top = at.y;
  const auto line = [&svg, left](double y) { draw_line(svg, "rule", {left, y}, {left + kPanel, y}); };
  for (const PlaneColumn& column : figure.columns) svg.text({left + column.right * kPanel, top}, "head end", column.head);
  double y = top + 7;
  line(y);
  for (const PlanePath& path : panel.paths) {
    y += kTableRow;
    draw_marker(svg, {left + 7, y - 4}, path.series, "mark key");
    svg.text({left + 20, y}, "cell start", path.name);
    for (std::size_t i = 0; i < figure.columns.size(); ++i) {
      svg.text({left + figure.columns[i].right * kPanel, y}, "cell end", path.cells.at(i));
    }
  }
  line(y + 8);
}

}  // namespace

std::string to_svg(const PlaneFigure& figure) {
  const PlaneLayout places = plane_layout(figure);
  Svg svg(places.size.x, places.size.y, figure.title, figure.description, plane_style());
  svg.element("rect", {{"class", "page"}, {"width", svg_number(places.size.x)}, {"height", svg_number(places.size.y)}});
  svg.text({kLeft, 34}, "title start", figure.title);
  draw_lines(svg, {kLeft, 56}, places.subtitle, kPlaneLine);
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const PlanePanel& panel = figure.panels[i];
    const auto& [plot, table] = places.panels[i];
    svg.text({plot.left, plot.top - kHeading}, "panel start", panel.title);
    svg.text({plot.right, plot.top - kHeading}, "formula end", panel.formula);
    draw_panel(svg, plot, panel);
    draw_table(svg, table, figure, panel);
  }
  draw_lines(svg, places.note_at, places.note, kPlaneLine);
  return svg.finish();
}

SvgPoint page_size(const PlaneFigure& figure) { return plane_layout(figure).size; }

std::vector<MovingPath> moving_paths(const PlaneFigure& figure) {
  const PlaneLayout places = plane_layout(figure);
  std::vector<MovingPath> all;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    for (MovingPath& path : paths_in(places.panels[i].plot, figure.panels[i])) all.push_back(std::move(path));
  }
  return all;
}

std::string page_json(const PlaneFigure& figure) { return moving_json(page_size(figure), moving_paths(figure)); }

}  // namespace cautious::lab::drawing
