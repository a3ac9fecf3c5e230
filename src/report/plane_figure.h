// A figure of optimizers at work in the plane: per panel the contours of a function, curves that matter, a box and the paths
// of up to eight optimizers, and with it a table of numbers that is the legend too. Two panels stand side by side with their
// tables below; a last odd one has its table beside it. Light and dark by the reader's setting.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/moving_path.h"
#include "report/svg.h"

namespace cautious::report {

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
  std::size_t series = 0;  // number in the palette of eight (Okabe and Ito); the marker follows it
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
  double right;  // where its numbers end, as a part of the panel's width
};

struct PlaneFigure {
  std::string title, subtitle, note;
  std::string description;  // for those who cannot see it
  std::vector<PlaneColumn> columns;
  std::vector<PlanePanel> panels;
};

std::string to_svg(const PlaneFigure& figure);

SvgPoint page_size(const PlaneFigure& figure);

// Of all panels, one after the other.
std::vector<MovingPath> moving_paths(const PlaneFigure& figure);

// "0.41", or with a power of ten where that would be mostly zeros: "4×10⁻⁸".
std::string pretty(double value);

}  // namespace cautious::report
