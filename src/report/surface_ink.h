// Lines on a surface: what is seen is drawn as it is, what lies behind the surface faintly.
#pragma once

#include <string>
#include <vector>

#include "report/surface_block.h"

namespace cautious::report {

// A line of the plane as it runs over the surface, cut where it appears and disappears. Parts outside the block or over a hole
// are left out.
struct SurfaceRun {
  bool hidden = false;
  std::vector<SvgPoint> points;
};

class SurfaceInk {
 public:
  SurfaceInk(const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view)
      : figure_(figure), grid_(grid), view_(view) {}

  // The place on the surface above or below a point of the plane; at the rim for a point outside, on the floor in a hole.
  BlockPoint on_surface(PlanePoint p) const;
  SvgPoint page(PlanePoint p) const { return view_.page(on_surface(p)); }
  bool hidden(PlanePoint p) const { return view_.hidden(grid_, on_surface(p)); }

  std::vector<SurfaceRun> runs(const std::vector<PlanePoint>& line) const;
  // Hidden parts get the class "behind" too.
  void draw(Svg& svg, const std::string& classes, const std::vector<SurfaceRun>& runs) const;

 private:
  const SurfaceFigure& figure_;
  const SurfaceGrid& grid_;
  const SurfaceView& view_;
};

// Lines of equal height at round steps between the bottom and the top.
void draw_contours(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceInk& ink);

}  // namespace cautious::report
