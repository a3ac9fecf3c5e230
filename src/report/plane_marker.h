// Small parts that figures of the plane and of surfaces share. The marker of a series: each of the eight styles has its shape,
// so that a path is told without its colour.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "report/plane_figure.h"

namespace cautious::report {

// Path data of the closed shape.
std::string marker_path(SvgPoint at, std::size_t series, double radius);

// `classes`: "mark" at the end of a path, "mark key" in a legend, which the page never dims.
void draw_marker(Svg& svg, SvgPoint at, std::size_t series, std::string_view classes = "mark");

inline constexpr double kMarkerRadius = 5.2;

// A curve of one point.
void draw_ring(Svg& svg, SvgPoint at, CurveStyle style);

std::string_view class_of(CurveStyle style);

// Where the path is after a step: if that is not finite, the last finite point before, or else the origin.
PlanePoint standing(const PlanePath& path, std::size_t step);

}  // namespace cautious::report
