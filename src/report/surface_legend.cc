#include "report/surface_legend.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "report/chart_plot.h"
#include "report/chart_text.h"
#include "report/plane_marker.h"
#include "report/plane_style.h"

namespace cautious::report {
namespace {

constexpr double kRow = 24, kSample = 26, kGap = 8, kBetween = 26;

struct Entry {
  std::string label, style_class;
  std::function<void(Svg& svg, SvgPoint left)> sample;  // from left, in the middle of the row
  SvgPoint at;
};

std::vector<Entry> entries(const SurfaceFigure& figure, double width) {
  std::vector<Entry> all;
  for (const PlanePath& path : figure.paths) {
    all.push_back({path.name,
                   style_class("name", path.series),
                   [series = path.series](Svg& svg, SvgPoint left) {
                     draw_line(svg, style_class("path key", series), left, {left.x + kSample, left.y});
                     draw_marker(svg, {left.x + kSample / 2, left.y}, series, "mark key");
                   },
                   {}});
  }
  for (const PlaneCurve& curve : figure.curves) {
    if (curve.label.empty() || curve.points.empty()) continue;
    all.push_back({curve.label,
                   "entry",
                   [&curve](Svg& svg, SvgPoint left) {
                     if (curve.points.size() > 1) {
                       draw_line(svg, fmt::format("curve {}", class_of(curve.style)), {left.x + 4, left.y},
                                 {left.x + kSample - 4, left.y});
                     } else {
                       draw_ring(svg, {left.x + kSample / 2, left.y}, curve.style);
                     }
                   },
                   {}});
  }
  if (figure.box && !figure.box->label.empty()) {
    all.push_back({figure.box->label,
                   "entry",
                   [](Svg& svg, SvgPoint left) {
                     svg.element("rect", {{"class", "region"},
                                          {"x", svg_number(left.x + 4)},
                                          {"y", svg_number(left.y - 7)},
                                          {"width", svg_number(kSample - 8)},
                                          {"height", "14"}});
                   },
                   {}});
  }
  SvgPoint at;
  for (Entry& entry : all) {
    const double needed = kSample + kGap + text_width(entry.label, kPathNameSize);
    if (at.x > 0 && at.x + needed > width) at = {0, at.y + kRow};
    entry.at = at;
    at.x += needed + kBetween;
  }
  return all;
}

}  // namespace

double surface_legend_height(const SurfaceFigure& figure, double width) {
  double height = 0;
  for (const Entry& entry : entries(figure, width)) height = std::max(height, entry.at.y + kRow);
  return height;
}

void draw_surface_legend(Svg& svg, const SurfaceFigure& figure, SvgPoint left_top, double width) {
  for (const Entry& entry : entries(figure, width)) {
    const SvgPoint left{left_top.x + entry.at.x, left_top.y + entry.at.y + kRow / 2};
    entry.sample(svg, left);
    svg.text({left.x + kSample + kGap, left.y + 4.5}, entry.style_class + " start", entry.label);
  }
}

}  // namespace cautious::report
