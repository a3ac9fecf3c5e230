// One panel of a plane figure: the plane with everything in it, drawn into an area of the page.
#pragma once

#include "report/contour.h"
#include "report/plane_figure.h"

namespace cautious::report {

void draw_panel(Svg& svg, const Rectangle& area, const PlanePanel& panel);

std::vector<MovingPath> moving_paths(const Rectangle& area, const PlanePanel& panel);

}  // namespace cautious::report
