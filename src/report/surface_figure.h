// A function of two variables as a surface in space, with paths of optimizers on it: a block seen from above, shaded, with
// contours, the curves that matter and a region of its own colour. What lies behind the surface is drawn faintly. Light and
// dark by the reader's setting.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/plane_figure.h"

namespace cautious::report {

struct SurfaceFigure {
  std::string title, subtitle, note;
  std::string description;  // for those who cannot see it
  std::string formula;
  double low = 0, high = 1;                  // shown on both axes; what lies outside is left out
  std::function<double(PlanePoint)> height;  // as drawn: the caller takes logarithms; where it is not finite there is a hole
  std::string height_label;
  std::optional<PlaneBox> box;
  std::vector<PlaneCurve> curves;  // their labels stand in the legend
  std::vector<PlanePath> paths;    // likewise; they have no cells
  // Where the reader stands, in degrees: around the block, 0 on the side of large x, 90 of large y; and above its floor.
  double azimuth = 32, elevation = 46;
};

std::string to_svg(const SurfaceFigure& figure);

SvgPoint page_size(const SurfaceFigure& figure);

// Also of the parts behind the surface.
std::vector<MovingPath> moving_paths(const SurfaceFigure& figure);

}  // namespace cautious::report
