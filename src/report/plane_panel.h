// One panel of a plane figure: the plane with everything in it, drawn into an area of the page.
#pragma once

#include "report/contour.h"
#include "report/plane_figure.h"

namespace cautious {

void draw_panel(Svg& svg, const Rectangle& area, const PlanePanel& panel);

void draw_marker(Svg& svg, SvgPoint at, Series series);

}  // namespace cautious
