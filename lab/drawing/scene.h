// What figures of the plane and of surfaces share: how curves and paths are drawn, how a page moves the paths, and where labels
// go. The series have the colours of a chart and differ in their markers too.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/drawing/figures.h"
#include "report/style.h"
#include "report/svg.h"

namespace cautious::lab::drawing {

using report::draw_line, report::simplified, report::style_class, report::svg_number, report::svg_path;
using report::Ends, report::Svg;

// Where the path is after a step: if that is not finite, the last finite point before, or else the origin.
PlanePoint standing(const PlanePath& path, std::size_t step);

inline constexpr std::size_t kMovingPoints = 400;

// Numbers of the steps that stay of a path with `points` points, at least one.
std::vector<std::size_t> moving_steps(std::size_t points);

// The path as it moves; `page` takes a point of the plane to the SVG.
MovingPath moving_path(const PlanePath& path, const std::function<SvgPoint(PlanePoint)>& page);

// What page_json() says of paths in an SVG of that size.
std::string moving_json(SvgPoint size, const std::vector<MovingPath>& paths);

// Sizes that the layout has to know.
inline constexpr double kPathNameSize = 12.5, kPlaneNoteSize = 11.5, kPlaneSoftSize = 12.5;

// The style sheet. No custom properties: some SVG readers do not know them.
std::string plane_style();

// `classes`: "mark" at the end of a path, "mark key" in a legend, which the page never dims.
void draw_marker(Svg& svg, SvgPoint at, std::size_t series, std::string_view classes = "mark");

inline constexpr double kMarkerRadius = 5.2;

// A curve of one point.
void draw_ring(Svg& svg, SvgPoint at, CurveStyle style);

std::string_view class_of(CurveStyle style);

// Lines of text below each other.
void draw_lines(Svg& svg, SvgPoint at, const std::vector<std::string>& lines, double line_height);

// Where to put a label beside a point: at the free one of the places around it, given what is already there.
struct LabelPlace {
  SvgPoint at;              // of the text's anchor on its baseline
  std::string_view anchor;  // style class: "start", "middle" or "end"
  Rectangle space;          // what the text covers
};

// Avoids lines (given as dense points) and, harder, the spaces of other labels; never leaves the area.
class LabelPlanner {
 public:
  explicit LabelPlanner(const Rectangle& area) : area_(area) {}
  void avoid(const std::vector<SvgPoint>& line);
  void avoid(const Rectangle& space) { taken_.push_back(space); }

  // Places the label at least `gap` from the point and keeps its space from then on.
  LabelPlace place(SvgPoint point, std::string_view text, double font_size, double gap);

 private:
  double cost(const Rectangle& space) const;
  Rectangle area_;
  std::vector<SvgPoint> ink_;
  std::vector<Rectangle> taken_;
};

}  // namespace cautious::lab::drawing
