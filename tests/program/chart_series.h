// Series of charts, for the tests of their parts and of the whole.
#pragma once

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "report/chart.h"

namespace cautious::report {

inline constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
inline constexpr double kInf = std::numeric_limits<double>::infinity();
using Numbers = std::vector<double>;

inline ChartSeries series(std::string name, Numbers x, Numbers y) {
  ChartSeries s;
  s.name = std::move(name);
  s.x = std::move(x);
  s.y = std::move(y);
  return s;
}

}  // namespace cautious::report
