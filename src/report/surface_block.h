// The block under a surface and the reader who looks at it. Positions in the block: u and v from 0 to 1 along x and y, w upward
// from the floor to at most kTall. The picture is a parallel projection.
#pragma once

#include <vector>

#include "report/contour.h"
#include "report/surface_figure.h"

namespace cautious::report {

inline constexpr double kTall = 0.45;

struct BlockPoint {
  double u = 0, v = 0, w = 0;
};

// Heights at the crossings of lines in x and y.
class SurfaceGrid {
 public:
  explicit SurfaceGrid(const SurfaceFigure& figure);

  std::size_t cells() const { return lines_.size() - 1; }
  BlockPoint corner(std::size_t column, std::size_t row) const;  // w is NaN in a hole
  double w(double u, double v) const;                            // between the corners by bilinear interpolation
  double bottom() const { return bottom_; }                      // the heights of w = 0 and of w = kTall
  double top() const { return top_; }

 private:
  std::vector<double> lines_, w_;  // lines: places of u and of v, closer to the edges of the box than to even spacing
  double bottom_ = 0, top_ = 0;
};

class SurfaceView {
 public:
  // The block fills the area, in its middle.
  SurfaceView(const Rectangle& area, double azimuth, double elevation);

  SvgPoint page(BlockPoint p) const;
  double nearness(BlockPoint p) const;  // to the reader
  // The sides that face the reader: at u, v = 1 or at 0.
  bool high_u_is_near() const { return cos_a_ > 0; }
  bool high_v_is_near() const { return sin_a_ > 0; }
  // Unit vector from the block to the reader.
  BlockPoint toward() const { return {cos_e_ * cos_a_, cos_e_ * sin_a_, sin_e_}; }
  // True if the surface lies between the point and the reader.
  bool hidden(const SurfaceGrid& grid, BlockPoint p) const;

 private:
  double cos_a_, sin_a_, cos_e_, sin_e_;
  double scale_ = 1;
  SvgPoint shift_;
};

}  // namespace cautious::report
