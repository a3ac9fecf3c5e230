#include "report/moving_path.h"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/chart_style.h"
#include "report/plane_marker.h"

namespace cautious::report {
namespace {

std::string path_json(const MovingPath& path) {
  std::string points;
  for (const SvgPoint& p : path.points) {
    points += fmt::format("{}{},{}", points.empty() ? "" : ",", svg_number(p.x), svg_number(p.y));
  }
  std::string name = nlohmann::json(path.name).dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
  for (std::size_t at = 0; (at = name.find('<', at)) != std::string::npos;) name.replace(at, 1, "\\u003c");
  return fmt::format(R"({{"name":{},"series":{},"steps":{},"marker":"{}","points":[{}]}})", name, path.series % kSeriesStyles,
                     path.steps, marker_path({0, 0}, path.series, kMarkerRadius), points);
}

}  // namespace

std::string moving_json(SvgPoint size, const std::vector<MovingPath>& paths) {
  std::string all;
  for (const MovingPath& path : paths) all += (all.empty() ? "" : ",\n") + path_json(path);
  return fmt::format(R"({{"width":{},"height":{},"paths":[{}]}})", svg_number(size.x), svg_number(size.y), all);
}

}  // namespace cautious::report
