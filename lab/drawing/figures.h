// Figures of optimizers at work on a function of two variables, as data: in the plane and on a surface. Light or dark as the
// reader has set it; report::Figure makes a figure of a page out of them.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "report/svg.h"

namespace cautious::lab::drawing {

using report::Rectangle, report::SvgPoint;

struct PlanePoint {
  double x = 0, y = 0;
};

// How a curve is drawn: dashed and thin, a broad band, or dotted.
enum class CurveStyle { thin, band, dotted };

struct PlaneCurve {
  CurveStyle style{};
  std::string label;               // beside the curve, toward its end; may be empty
  std::vector<PlanePoint> points;  // a single one is drawn as a ring
};

struct PlanePath {
  std::size_t series = 0;  // number in the palette of twelve; the marker follows it
  std::string name;
  std::vector<PlanePoint> points;  // the start first; not empty; where one is not finite the path stays at the one before
  std::vector<std::string> cells;  // of the table, one per column
};

struct PlaneBox {
  double half_side = 0;  // about the origin
  std::string label;
};

struct PlanePanel {
  std::string id;  // a letter first, then letters and digits; unique in the figure
  std::string title, formula;
  double low = 0, high = 1;  // shown on both axes; paths are clipped to it, an end outside is marked at the rim
  std::function<double(PlanePoint)> height;
  std::optional<PlaneBox> box;
  std::vector<PlaneCurve> curves;
  std::vector<PlanePath> paths;
};

struct PlaneColumn {
  std::string head;
  double right;  // where its numbers end, as a fraction of the panel's width
};

// A figure of optimizers at work in the plane: per panel the contours of a function, curves that matter, a box and the paths of
// up to twelve optimizers, and with it a table of numbers that is the legend too. Two panels are side by side with their tables
// below; a last odd one has its table beside it, and is larger if it is the only one.
struct PlaneFigure {
  static constexpr std::string_view kScript = "paths";  // the script of the page that moves the paths, from page_json()
  std::string title, subtitle, note;
  std::string description;  // for those who cannot see it
  std::vector<PlaneColumn> columns;
  std::vector<PlanePanel> panels;
};

// A function of two variables as a surface in space, with paths of optimizers on it: a block seen from above, shaded, with
// contours, the curves that matter and a region of its own colour. What lies behind the surface is drawn faintly.
struct SurfaceFigure {
  static constexpr std::string_view kScript = "paths";  // the script of the page that moves the paths, from page_json()
  std::string title, subtitle, note;
  std::string description;  // for those who cannot see it
  std::string formula;
  double low = 0, high = 1;                  // shown on both axes; what lies outside is left out
  std::function<double(PlanePoint)> height;  // as drawn: the caller takes logarithms; where it is not finite there is a hole
  std::string height_label;
  std::optional<PlaneBox> box;
  std::vector<PlaneCurve> curves;  // their labels are in the legend
  std::vector<PlanePath> paths;    // likewise; they have no cells
  // Where the reader stands, in degrees: around the block, 0 on the side of large x, 90 of large y; and above its floor.
  double azimuth = 32, elevation = 46;
};

std::string to_svg(const PlaneFigure& figure);
std::string to_svg(const SurfaceFigure& figure);

// Of the SVG.
SvgPoint page_size(const PlaneFigure& figure);
SvgPoint page_size(const SurfaceFigure& figure);

// A path as its page moves it: where it is at equally spaced steps, in the coordinates of the figure's SVG.
struct MovingPath {
  std::size_t series = 0;
  std::string name;
  std::size_t steps = 0;         // of the whole path: its points less one
  std::vector<SvgPoint> points;  // the start, the end and what lies equally spaced between, at most kMovingPoints
};

// Of all panels, one after the other; also of the parts behind the surface.
std::vector<MovingPath> moving_paths(const PlaneFigure& figure);
std::vector<MovingPath> moving_paths(const SurfaceFigure& figure);

// The moving paths for the page's script, safe inside <script>: {"width", "height", "paths": [{"name", "series", "steps",
// "marker", "points": [x, y, x, y, ...]}]}.
std::string page_json(const PlaneFigure& figure);
std::string page_json(const SurfaceFigure& figure);

// "0.41", or with a power of ten where that would be mostly zeros: "4×10⁻⁸".
std::string pretty(double value);

}  // namespace cautious::lab::drawing
