// The legend of a surface: its paths, and the curves and the box that have a label.
#pragma once

#include "lab/drawing/surface_figure.h"

namespace cautious::lab {

// Rows no wider than `width`.
double surface_legend_height(const SurfaceFigure& figure, double width);
void draw_surface_legend(report::Svg& svg, const SurfaceFigure& figure, report::SvgPoint left_top, double width);

}  // namespace cautious::lab
