// One panel of a plane figure: the plane with everything in it, drawn into an area of the page.
#pragma once

#include "lab/drawing/contour.h"
#include "lab/drawing/plane_figure.h"

namespace cautious::lab {

void draw_panel(report::Svg& svg, const report::Rectangle& area, const PlanePanel& panel);

std::vector<MovingPath> moving_paths(const report::Rectangle& area, const PlanePanel& panel);

}  // namespace cautious::lab
