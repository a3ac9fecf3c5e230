// The skin of the block: shaded quadrilaterals from the farthest to the nearest, the two cut sides, and their colours.
#pragma once

#include <string>

#include "report/surface_block.h"

namespace cautious::report {

// Steps of the colour in height and in light. The class of a tone is "g", in the box "b", and level * kMeshShades + shade.
inline constexpr int kMeshLevels = 36, kMeshShades = 24;

// Style rules of the tones that draw_mesh uses.
std::string mesh_style(const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view);

void draw_mesh(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceView& view);

}  // namespace cautious::report
