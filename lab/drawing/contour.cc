// Grid points are numbered row by row with a ring of -inf around the area, which closes every loop. Edge 2 n leads from point n
// to the right, edge 2 n + 1 downward.
#include "lab/drawing/contour.h"

#include <array>
#include <limits>
#include <utility>

namespace cautious::lab::drawing {
namespace {

constexpr double kOutside = -std::numeric_limits<double>::infinity();
constexpr int kNoEdge = -1;

}  // namespace

ContourGrid::ContourGrid(const Rectangle& area, int cells, const std::function<double(SvgPoint)>& value)
    : area_(area), cells_(cells), width_(cells + 3), values_(static_cast<std::size_t>(width_) * width_, kOutside) {
  for (int row = 0; row <= cells; ++row) {
    for (int column = 0; column <= cells; ++column) {
      const SvgPoint p{area.left + (area.right - area.left) * column / cells,
                       area.top + (area.bottom - area.top) * row / cells};
      values_[static_cast<std::size_t>((row + 1) * width_ + column + 1)] = value(p);
    }
  }
}

double ContourGrid::at(int column, int row) const { return values_[static_cast<std::size_t>(row * width_ + column)]; }

SvgPoint ContourGrid::crossing(int edge, double level) const {
  const int column = edge / 2 % width_, row = edge / 2 / width_;
  const bool down = edge % 2 == 1;
  const double from = at(column, row), to = at(column + !down, row + down);
  const bool rim = from == kOutside || to == kOutside;
  const double part = rim ? 0.5 : (level - from) / (to - from);
  const double across = column - 1 + (down ? 0 : part), along = row - 1 + (down ? part : 0);
  return {area_.left + (area_.right - area_.left) * across / cells_, area_.top + (area_.bottom - area_.top) * along / cells_};
}

std::vector<std::vector<SvgPoint>> ContourGrid::above(double level) const {
  std::vector<int> next(2 * values_.size(), kNoEdge);
  for (int row = 0; row + 1 < width_; ++row) {
    for (int column = 0; column + 1 < width_; ++column) {
      // Clockwise: corner k, then edge k between corner k and k + 1. The loop leaves the square where the walk leaves the high
      // ground and comes back where it enters it; a saddle joins its high corners if its middle is high.
      const std::array corner{at(column, row), at(column + 1, row), at(column + 1, row + 1), at(column, row + 1)};
      const int n = row * width_ + column;
      const std::array edge{2 * n, 2 * (n + 1) + 1, 2 * (n + width_), 2 * n + 1};
      const auto high = [&](int k) { return corner[static_cast<std::size_t>(k % 4)] > level; };
      const bool joined = corner[0] + corner[1] + corner[2] + corner[3] > 4 * level;
      for (int k = 0; k < 4; ++k) {
        if (!high(k) || high(k + 1)) continue;
        int entry = k;
        do entry = (entry + (joined ? 1 : 3)) % 4;
        while (high(entry) || !high(entry + 1));
        next[static_cast<std::size_t>(edge[static_cast<std::size_t>(k)])] = edge[static_cast<std::size_t>(entry)];
      }
    }
  }
  std::vector<std::vector<SvgPoint>> loops;
  for (std::size_t first = 0; first < next.size(); ++first) {
    std::vector<SvgPoint> loop;
    for (int edge = static_cast<int>(first); next[static_cast<std::size_t>(edge)] != kNoEdge;) {
      loop.push_back(crossing(edge, level));
      edge = std::exchange(next[static_cast<std::size_t>(edge)], kNoEdge);
    }
    if (!loop.empty()) loops.push_back(std::move(loop));
  }
  return loops;
}

}  // namespace cautious::lab::drawing
