// A figure of optimizers at work in the plane: per panel the contours of a function, curves that matter, a box and the paths
// from a common start, and under it a table of numbers that is the legend too. Light and dark by the reader's setting.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/svg.h"

namespace cautious {

struct PlanePoint {
  double x = 0, y = 0;
};

// How a curve is drawn: dashed and thin, a broad band, or dotted.
enum class CurveStyle { thin, band, dotted };

struct PlaneCurve {
  CurveStyle style{};
  std::string label;  // beside the curve, toward its end; may be empty
  std::vector<PlanePoint> points;
};

// Colour and marker of a path: a blue disc, an orange square, a green diamond.
enum class Series { disc, square, diamond };

struct PlanePath {
  Series series{};
  std::string name;
  std::vector<PlanePoint> points;  // the start first; not empty
  std::vector<std::string> cells;  // of the table, one per column
};

struct PlaneBox {
  double half_side = 0;  // about the origin
  std::string label;
};

struct PlanePanel {
  std::string id;  // a letter first, then letters and digits; unique in the figure
  std::string title, formula;
  double low = 0, high = 1;  // shown on both axes
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

// "0.41", or with a power of ten where that would be mostly zeros: "4×10⁻⁸".
std::string pretty(double value);

}  // namespace cautious
