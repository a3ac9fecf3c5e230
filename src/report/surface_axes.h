// The scales of a block: x and y along the near edges of its floor, the height along its leftmost edge.
#pragma once

#include "report/surface_block.h"

namespace cautious::report {

void draw_surface_axes(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view);

}  // namespace cautious::report
