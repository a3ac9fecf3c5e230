// The block under a surface and the reader who looks at it. Positions in the block: u and v from 0 to 1 along x and y, w upward
// from the floor to at most kTall. The picture is a parallel projection; lines on the surface, its skin and its scales are
// drawn from these.
#pragma once

#include <string>
#include <vector>

#include "lab/drawing/figures.h"
#include "lab/drawing/scene.h"

namespace cautious::lab::drawing {

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

// The skin of the block is shaded quadrilaterals from the farthest to the nearest, and two cut sides.
// Steps of its colour in height and in light. The class of a tone is "g", in the box "b", and level * kMeshShades + shade.
inline constexpr int kMeshLevels = 36, kMeshShades = 24;

// Style rules of the tones that draw_mesh uses.
std::string mesh_style(const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view);

void draw_mesh(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view);

// The scales of a block: x and y along the near edges of its floor, the height along its leftmost edge.
void draw_surface_axes(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view);

}  // namespace cautious::lab::drawing
