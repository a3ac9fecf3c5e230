#include "report/surface_ink.h"

#include <algorithm>
#include <cmath>

namespace cautious::report {
namespace {

constexpr int kContours = 9, kContourCells = 120;

bool finite(PlanePoint p) { return std::isfinite(p.x) && std::isfinite(p.y); }

}  // namespace

BlockPoint SurfaceInk::on_surface(PlanePoint p) const {
  const double side = figure_.high - figure_.low;
  const double u = std::clamp((p.x - figure_.low) / side, 0.0, 1.0), v = std::clamp((p.y - figure_.low) / side, 0.0, 1.0);
  const double w = grid_.w(u, v);
  return {u, v, std::isnan(w) ? 0 : w};
}

std::vector<SurfaceRun> SurfaceInk::runs(const std::vector<PlanePoint>& line) const {
  const double side = figure_.high - figure_.low, spacing = 0.5 * side / static_cast<double>(grid_.cells());
  std::vector<SurfaceRun> result;
  bool connected = false;
  const auto add = [&](PlanePoint p) {
    const double u = (p.x - figure_.low) / side, v = (p.y - figure_.low) / side;
    const bool inside = u >= 0 && u <= 1 && v >= 0 && v <= 1;
    const double w = inside ? grid_.w(u, v) : NAN;
    if (std::isnan(w)) {
      connected = false;
      return;
    }
    const BlockPoint at{u, v, w};
    const bool behind = view_.hidden(grid_, at);
    const SvgPoint page = view_.page(at);
    if (!connected || behind != result.back().hidden) {
      SurfaceRun next{behind, {}};
      if (connected) next.points.push_back(result.back().points.back());
      result.push_back(std::move(next));
    }
    result.back().points.push_back(page);
    connected = true;
  };
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (!finite(line[i])) continue;
    if (i > 0 && finite(line[i - 1])) {
      const PlanePoint from = line[i - 1];
      const double length = std::min(std::hypot(line[i].x - from.x, line[i].y - from.y), 4 * side);
      const int parts = static_cast<int>(std::ceil(length / spacing));
      for (int k = 1; k < parts; ++k) {
        const double part = static_cast<double>(k) / parts;
        add({std::lerp(from.x, line[i].x, part), std::lerp(from.y, line[i].y, part)});
      }
    }
    add(line[i]);
  }
  return result;
}

void SurfaceInk::draw(Svg& svg, const std::string& classes, const std::vector<SurfaceRun>& runs) const {
  for (const SurfaceRun& run : runs) {
    if (run.points.size() < 2) continue;
    svg.element("path", {{"class", run.hidden ? classes + " behind" : classes},
                         {"d", svg_path(simplified(run.points, 0.08), Ends::open)}});
  }
}

void draw_contours(Svg& svg, const SurfaceFigure& figure, const SurfaceGrid& grid, const SurfaceInk& ink) {
  if (!(grid.bottom() < grid.top())) return;
  const Rectangle area{0, 0, 1, 1};
  const ContourGrid contours(area, kContourCells, [&](SvgPoint p) {
    const double w = grid.w(p.x, p.y);
    return std::isnan(w) ? -INFINITY : w;
  });
  const double side = figure.high - figure.low;
  for (int i = 1; i <= kContours; ++i) {
    for (auto& loop : contours.above(kTall * i / (kContours + 1))) {
      loop.push_back(loop.front());
      std::vector<PlanePoint> line;
      for (const SvgPoint& p : loop) line.push_back({figure.low + p.x * side, figure.low + p.y * side});
      std::vector<SurfaceRun> runs = ink.runs(line);
      std::erase_if(runs, [](const SurfaceRun& run) { return run.hidden; });
      ink.draw(svg, "contour", runs);
    }
  }
}

}  // namespace cautious::report
