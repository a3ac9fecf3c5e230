#include "lab/drawing/surface_block.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "lab/drawing/contour.h"

namespace cautious::lab::drawing {
namespace {

constexpr std::size_t kSurfaceCells = 72;
constexpr double kClear = 0.004;  // a point on the surface that lies at most this far below it is still seen

// Even spacing, except that the line next to an edge of the box runs along it.
std::vector<double> grid_lines(const SurfaceFigure& figure) {
  std::vector<double> lines;
  for (std::size_t i = 0; i <= kSurfaceCells; ++i) lines.push_back(static_cast<double>(i) / kSurfaceCells);
  if (!figure.box) return lines;
  for (const double side : {-figure.box->half_side, figure.box->half_side}) {
    const double edge = (side - figure.low) / (figure.high - figure.low);
    const double nearest = std::round(edge * kSurfaceCells);
    if (nearest > 0 && nearest < kSurfaceCells) lines[static_cast<std::size_t>(nearest)] = edge;
  }
  return lines;
}

constexpr int kContours = 9, kContourCells = 120;

bool finite(PlanePoint p) { return std::isfinite(p.x) && std::isfinite(p.y); }

}  // namespace

SurfaceGrid::SurfaceGrid(const SurfaceFigure& figure) : lines_(grid_lines(figure)) {
  const double side = figure.high - figure.low;
  bottom_ = INFINITY;
  top_ = -INFINITY;
  for (const double v : lines_) {
    for (const double u : lines_) {
      const double height = figure.height({figure.low + u * side, figure.low + v * side});
      w_.push_back(std::isfinite(height) ? height : NAN);
      bottom_ = std::fmin(bottom_, w_.back());
      top_ = std::fmax(top_, w_.back());
    }
  }
  if (!(bottom_ <= top_)) bottom_ = top_ = 0;
  // Halves, because the difference of two finite heights may not be.
  const double extent = top_ / 2 - bottom_ / 2;
  for (double& w : w_) w = std::isnan(w) ? w : extent > 0 ? kTall * ((w / 2 - bottom_ / 2) / extent) : kTall / 2;
}

BlockPoint SurfaceGrid::corner(std::size_t column, std::size_t row) const {
  return {lines_[column], lines_[row], w_[row * lines_.size() + column]};
}

double SurfaceGrid::w(double u, double v) const {
  const auto cell = [this](double at) {
    const auto above = std::upper_bound(lines_.begin(), lines_.end(), at);
    return static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(above - lines_.begin() - 1, 0, static_cast<std::ptrdiff_t>(cells()) - 1));
  };
  const std::size_t column = cell(u), row = cell(v);
  const double across = (u - lines_[column]) / (lines_[column + 1] - lines_[column]);
  const double along = (v - lines_[row]) / (lines_[row + 1] - lines_[row]);
  return std::lerp(std::lerp(corner(column, row).w, corner(column + 1, row).w, across),
                   std::lerp(corner(column, row + 1).w, corner(column + 1, row + 1).w, across), along);
}

SurfaceView::SurfaceView(const Rectangle& area, double azimuth, double elevation)
    : cos_a_(std::cos(azimuth * std::numbers::pi / 180)),
      sin_a_(std::sin(azimuth * std::numbers::pi / 180)),
      cos_e_(std::cos(elevation * std::numbers::pi / 180)),
      sin_e_(std::sin(elevation * std::numbers::pi / 180)) {
  double left = INFINITY, top = INFINITY, right = -INFINITY, bottom = -INFINITY;
  for (int corner = 0; corner < 8; ++corner) {
    const SvgPoint p = page({corner % 2 * 1.0, corner / 2 % 2 * 1.0, corner / 4 * kTall});
    left = std::min(left, p.x);
    right = std::max(right, p.x);
    top = std::min(top, p.y);
    bottom = std::max(bottom, p.y);
  }
  const double width = area.right - area.left, height = area.bottom - area.top;
  scale_ = std::min(width / (right - left), height / (bottom - top));
  shift_ = {area.left + (width - scale_ * (left + right)) / 2, area.top + (height - scale_ * (top + bottom)) / 2};
}

SvgPoint SurfaceView::page(BlockPoint p) const {
  const double across = cos_a_ * p.v - sin_a_ * p.u;
  const double up = cos_e_ * p.w - sin_e_ * (cos_a_ * p.u + sin_a_ * p.v);
  return {shift_.x + scale_ * across, shift_.y - scale_ * up};
}

double SurfaceView::nearness(BlockPoint p) const {
  const BlockPoint to = toward();
  return to.u * p.u + to.v * p.v + to.w * p.w;
}

bool SurfaceView::hidden(const SurfaceGrid& grid, BlockPoint p) const {
  const double step = 0.4 / static_cast<double>(grid.cells()), rise = sin_e_ / cos_e_;
  for (double far = step;; far += step) {
    const double u = p.u + far * cos_a_, v = p.v + far * sin_a_, w = p.w + far * rise;
    if (u < 0 || u > 1 || v < 0 || v > 1 || w > kTall) return false;
    if (grid.w(u, v) > w + kClear) return true;
  }
}

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

}  // namespace cautious::lab::drawing
