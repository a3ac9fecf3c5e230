#include "report/plane_marker.h"

#include <array>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include "report/chart_plot.h"
#include "report/chart_style.h"

namespace cautious::report {
namespace {

constexpr double kUp = -std::numbers::pi / 2, kDown = -kUp, kDiagonal = kDown / 2;
constexpr double kRing = 6.5;

std::vector<SvgPoint> polygon(std::size_t corners, double start, double radius) {
  std::vector<SvgPoint> points;
  for (std::size_t i = 0; i < corners; ++i) {
    const double angle = start + 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(corners);
    points.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
  return points;
}

std::vector<SvgPoint> plus(double start) {
  constexpr double kReach = 1.18, kHalf = 0.36;  // direction of an arm's corner from its axis
  std::vector<SvgPoint> points;
  for (int arm = 0; arm < 4; ++arm) {
    const double axis = start + arm * kDown;
    for (const double side : {-kHalf, kHalf})
      points.push_back({kReach * std::cos(axis + side), kReach * std::sin(axis + side)});
    points.push_back({0.58 * std::cos(axis + kDiagonal), 0.58 * std::sin(axis + kDiagonal)});
  }
  return points;
}

// Corners of the shape with radius one; of equal weight to the eye.
std::vector<SvgPoint> shape(std::size_t style) {
  switch (style) {
    case 1:
      return polygon(4, kDiagonal, 1.25);
    case 2:
      return polygon(4, 0, 1.3);
    case 3:
      return polygon(3, kUp, 1.35);
    case 4:
      return polygon(3, kDown, 1.35);
    case 5:
      return plus(0);
    case 6:
      return plus(kDiagonal);
    case 7:
      return polygon(5, kUp, 1.2);
    default:
      return polygon(24, 0, 1);
  }
}

}  // namespace

std::string marker_path(SvgPoint at, std::size_t series, double radius) {
  std::vector<SvgPoint> corners = shape(series % kSeriesStyles);
  for (SvgPoint& corner : corners) corner = {at.x + radius * corner.x, at.y + radius * corner.y};
  return svg_path(corners, Ends::closed);
}

void draw_marker(Svg& svg, SvgPoint at, std::size_t series, std::string_view classes) {
  svg.element("path", {{"class", style_class(classes, series)}, {"d", marker_path(at, series, kMarkerRadius)}});
}

void draw_ring(Svg& svg, SvgPoint at, CurveStyle style) {
  svg.element("circle", {{"class", fmt::format("{} ring", class_of(style))},
                         {"cx", svg_number(at.x)},
                         {"cy", svg_number(at.y)},
                         {"r", svg_number(kRing)}});
}

std::string_view class_of(CurveStyle style) {
  constexpr std::array<std::string_view, 3> names{"thin", "band", "dotted"};
  return names[static_cast<std::size_t>(style)];
}

PlanePoint standing(const PlanePath& path, std::size_t step) {
  for (std::size_t i = step + 1; i-- > 0;) {
    if (std::isfinite(path.points[i].x) && std::isfinite(path.points[i].y)) return path.points[i];
  }
  return {};
}

}  // namespace cautious::report
