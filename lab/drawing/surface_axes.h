// The scales of a block: x and y along the near edges of its floor, the height along its leftmost edge.
#pragma once

#include "lab/drawing/surface_block.h"

namespace cautious::lab {

void draw_surface_axes(report::Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view);

}  // namespace cautious::lab
