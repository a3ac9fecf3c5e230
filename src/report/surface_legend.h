// The legend of a surface: its paths, and the curves and the box that have a label.
#pragma once

#include "report/surface_figure.h"

namespace cautious::report {

// Rows no wider than `width`.
double surface_legend_height(const SurfaceFigure& figure, double width);
void draw_surface_legend(Svg& svg, const SurfaceFigure& figure, SvgPoint left_top, double width);

}  // namespace cautious::report
