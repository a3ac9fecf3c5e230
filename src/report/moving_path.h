// Paths of a figure as its page moves them: where each path is at equally spaced steps, in the coordinates of the figure's SVG.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "report/svg.h"

namespace cautious::report {

struct MovingPath {
  std::size_t series = 0;
  std::string name;
  std::size_t steps = 0;         // of the whole path: its points less one
  std::vector<SvgPoint> points;  // the start, the end and what lies equally spaced between, at most kMovingPoints
};

inline constexpr std::size_t kMovingPoints = 400;

// Numbers of the steps that stay of a path with `points` points, which are not none.
inline std::vector<std::size_t> moving_steps(std::size_t points) {
  const std::size_t kept = std::min(points, kMovingPoints);
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < kept; ++i) result.push_back(kept == 1 ? 0 : (i * (points - 1) + (kept - 1) / 2) / (kept - 1));
  return result;
}

// For the page's script: {"width", "height", "paths": [{"name", "series", "steps", "marker", "points": [x, y, x, y, ...]}]},
// safe inside <script>. `size`: of the SVG.
std::string moving_json(SvgPoint size, const std::vector<MovingPath>& paths);

}  // namespace cautious::report
