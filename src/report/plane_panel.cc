#include "report/plane_panel.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "report/label.h"

namespace cautious {
namespace {

constexpr int kCells = 120;
constexpr int kBands = 14;
constexpr double kNameSize = 12.5, kNoteSize = 11.5;

// The square part of the plane that is shown, and where on the page.
struct View {
  double low, high;
  Rectangle area;

  double scale() const { return (area.right - area.left) / (high - low); }
  SvgPoint page(PlanePoint p) const { return {area.left + (p.x - low) * scale(), area.bottom - (p.y - low) * scale()}; }
  PlanePoint plane(SvgPoint p) const { return {low + (p.x - area.left) / scale(), low + (area.bottom - p.y) / scale()}; }
  std::vector<SvgPoint> page(const std::vector<PlanePoint>& points) const {
    std::vector<SvgPoint> result;
    for (const PlanePoint& p : points) result.push_back(page(p));
    return result;
  }
};

std::string_view class_of(Series series) {
  constexpr std::array<std::string_view, 3> names{"disc", "square", "diamond"};
  return names[static_cast<std::size_t>(series)];
}

std::string_view class_of(CurveStyle style) {
  constexpr std::array<std::string_view, 3> names{"thin", "band", "dotted"};
  return names[static_cast<std::size_t>(style)];
}

void draw_hills(Svg& svg, const View& view, const PlanePanel& panel) {
  const auto height = [&](SvgPoint p) { return panel.height(view.plane(p)); };
  double top = 0;
  const Rectangle& a = view.area;
  for (const SvgPoint corner : {SvgPoint{a.left, a.top}, {a.right, a.top}, {a.left, a.bottom}, {a.right, a.bottom}}) {
    top = std::max(top, height(corner));
  }
  const ContourGrid grid(view.area, kCells, height);
  for (int band = 0; band < kBands; ++band) {
    std::string data;
    for (auto& loop : grid.above(top * (band + 0.4) / kBands)) {
      loop.push_back(loop.front());
      data += svg_path(simplified(loop, 0.1), Ends::closed);
    }
    if (!data.empty()) svg.element("path", {{"class", "hill"}, {"d", data}});
  }
}

void draw_line(Svg& svg, const std::string& style_class, const std::vector<SvgPoint>& points) {
  svg.element("path", {{"class", style_class}, {"d", svg_path(simplified(points, 0.08), Ends::open)}});
}

void draw_box(Svg& svg, const View& view, LabelPlanner& planner, double half_side) {
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

void draw_axes(Svg& svg, const View& view) {
  const Rectangle& a = view.area;
  const auto number = [](double v) { return svg_number(v); };
  const auto tick = [&](SvgPoint from, SvgPoint to) {
    svg.element(
        "line",
        {{"class", "tick"}, {"x1", number(from.x)}, {"y1", number(from.y)}, {"x2", number(to.x)}, {"y2", number(to.y)}});
  };
  const double raw = (view.high - view.low) / 7, power = std::pow(10, std::floor(std::log10(raw)));
  const double step = power * (raw <= power ? 1 : raw <= 2 * power ? 2 : raw <= 5 * power ? 5 : 10);
  for (double at = std::ceil(view.low / step) * step; at <= view.high; at += step) {
    const SvgPoint p = view.page(PlanePoint{at, at});
    tick({p.x, a.bottom}, {p.x, a.bottom + 5});
    tick({a.left - 5, p.y}, {a.left, p.y});
    svg.text({p.x, a.bottom + 18}, "axis middle", number(at));
    svg.text({a.left - 9, p.y + 4}, "axis end", number(at));
  }
  svg.element("rect", {{"class", "frame"},
                       {"x", number(a.left)},
                       {"y", number(a.top)},
                       {"width", number(a.right - a.left)},
                       {"height", number(a.bottom - a.top)}});
  svg.text({a.right, a.bottom + 32}, "axis end", "x");
  svg.text({a.left - 26, a.top + 8}, "axis end", "y");
}

void draw_label(Svg& svg, LabelPlanner& planner, SvgPoint point, const std::string& style_class, std::string_view words,
                double size, double gap) {
  const LabelPlace place = planner.place(point, words, size, gap);
  svg.text(place.at, fmt::format("{} {}", style_class, place.anchor), words);
}

Rectangle around(SvgPoint p, double reach) { return {p.x - reach, p.y - reach, p.x + reach, p.y + reach}; }

// Start and ends, then the labels of everything: the names of the paths choose their places first.
void draw_marks(Svg& svg, const View& view, LabelPlanner& planner, const PlanePanel& panel) {
  const SvgPoint start = view.page(panel.paths.front().points.front());
  svg.element("circle", {{"class", "origin"}, {"cx", svg_number(start.x)}, {"cy", svg_number(start.y)}, {"r", "4.5"}});
  planner.avoid(around(start, 6));
  for (const PlanePath& path : panel.paths) {
    draw_marker(svg, view.page(path.points.back()), path.series);
    planner.avoid(around(view.page(path.points.back()), 7));
  }
  for (const PlanePath& path : panel.paths) {
    draw_label(svg, planner, view.page(path.points.back()), fmt::format("name {}", class_of(path.series)), path.name, kNameSize,
               11);
  }
  draw_label(svg, planner, start, "note", "start", kNoteSize, 10);
  for (const PlaneCurve& curve : panel.curves) {
    if (!curve.label.empty())
      draw_label(svg, planner, view.page(curve.points[curve.points.size() * 4 / 5]), "note", curve.label, kNoteSize, 12);
  }
  if (panel.box) {
    const double side = std::min(panel.box->half_side, view.high);
    draw_label(svg, planner, view.page(PlanePoint{side * 0.5, side * 0.12}), "note", panel.box->label, kNoteSize, 4);
  }
}

}  // namespace

void draw_marker(Svg& svg, SvgPoint at, Series series) {
  const auto style_class = fmt::format("mark {}", class_of(series));
  if (series == Series::disc) {
    svg.element("circle", {{"class", style_class}, {"cx", svg_number(at.x)}, {"cy", svg_number(at.y)}, {"r", "5.2"}});
    return;
  }
  const double r = series == Series::square ? 4.8 : 6.6;
  const std::vector<SvgPoint> square{{at.x - r, at.y - r}, {at.x + r, at.y - r}, {at.x + r, at.y + r}, {at.x - r, at.y + r}};
  const std::vector<SvgPoint> diamond{{at.x, at.y - r}, {at.x + r, at.y}, {at.x, at.y + r}, {at.x - r, at.y}};
  svg.element("path", {{"class", style_class}, {"d", svg_path(series == Series::square ? square : diamond, Ends::closed)}});
}

void draw_panel(Svg& svg, const Rectangle& area, const PlanePanel& panel) {
  const View view{panel.low, panel.high, area};
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
    draw_line(svg, fmt::format("curve {}", class_of(curve.style)), points);
    planner.avoid(points);
  }
  for (const PlanePath& path : panel.paths) {
    const auto points = view.page(path.points);
    draw_line(svg, fmt::format("path {}", class_of(path.series)), points);
    planner.avoid(points);
  }
  svg.close();
  draw_marks(svg, view, planner, panel);
  draw_axes(svg, view);
}

}  // namespace cautious
