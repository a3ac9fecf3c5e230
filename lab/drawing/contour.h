// Filled contours of a function on a rectangle (marching squares).
#pragma once

#include <functional>
#include <vector>

#include "report/svg.h"

namespace cautious::lab::drawing {

using report::Rectangle, report::SvgPoint;

// Values of a function at the corners of cells x cells squares.
class ContourGrid {
 public:
  ContourGrid(const Rectangle& area, int cells, const std::function<double(SvgPoint)>& value);

  // Closed loops around the places where the function is above the level; fill them by the even-odd rule. At the rim of the
  // area the loops run half a cell outside of it, so clip.
  std::vector<std::vector<SvgPoint>> above(double level) const;

 private:
  double at(int column, int row) const;  // -inf in the ring around the area
  SvgPoint crossing(int edge, double level) const;

  Rectangle area_;
  int cells_;
  int width_;  // grid points in a row, with the ring
  std::vector<double> values_;
};

}  // namespace cautious::lab::drawing
