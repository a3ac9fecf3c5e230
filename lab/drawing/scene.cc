#include "lab/drawing/scene.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace cautious::lab::drawing {
namespace {

constexpr double kRing = 6.5;

std::string path_json(const MovingPath& path) {
  std::string points;
  for (const SvgPoint& p : path.points) {
    points += fmt::format("{}{},{}", points.empty() ? "" : ",", svg_number(p.x), svg_number(p.y));
  }
  return fmt::format(R"({{"name":{},"series":{},"steps":{},"marker":"{}","points":[{}]}})", report::script_string(path.name),
                     path.series % report::kSeriesStyles, path.steps, report::marker_path({0, 0}, path.series, kMarkerRadius),
                     points);
}

constexpr double kAscent = 0.8, kDescent = 0.25;
constexpr double kPerInkPoint = 1, kPerOverlap = 1e4, kOutsideArea = 1e6;

// Width in font sizes, on the safe side: that of bold type in a wide font.
double label_width(std::string_view text) {
  double width = 0;
  for (const char c : text) {
    const bool narrow = std::string_view("fijlrt|,. ").find(c) != std::string_view::npos;
    const bool wide = std::string_view("mwMW").find(c) != std::string_view::npos;
    const bool continues = (c & 0xC0) == 0x80;  // of a character in UTF-8
    width += continues ? 0 : narrow ? 0.42 : wide ? 1.08 : 0.75;
  }
  return width;
}

bool overlap(const Rectangle& a, const Rectangle& b) {
  return a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom;
}

std::string superscript(int number) {
  constexpr std::array<std::string_view, 10> digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result = number < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(number))) result += digits[static_cast<std::size_t>(c - '0')];
  return result;
}

constexpr std::string_view kPlaneRules = R"(
text{font-family:Inter,"Helvetica Neue",Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#1b2330}
.page{fill:#ffffff}
.plot{fill:#fbfcfe}
.hill{fill:#24447a;fill-opacity:.027;fill-rule:evenodd}
.frame{fill:none;stroke:#8a94a6;stroke-width:1}
.tick{stroke:#8a94a6;stroke-width:1}
.title{font-size:19px;font-weight:600}
.panel{font-size:14px;font-weight:600}
.formula{font-size:13px;fill:#4c5769}
.soft{font-size:12.5px;fill:#4c5769}
.axis{font-size:11.5px;fill:#4c5769;font-variant-numeric:tabular-nums}
.note{font-size:11.5px;fill:#4c5769;paint-order:stroke;stroke:#fbfcfe;stroke-opacity:.75;stroke-width:3px;stroke-linejoin:round}
.name{font-size:12.5px;font-weight:600;fill:currentColor;paint-order:stroke;stroke:#fbfcfe;stroke-opacity:.75;stroke-width:3.5px;stroke-linejoin:round}
.head{font-size:11px;fill:#4c5769}
.cell{font-size:11.5px;font-variant-numeric:tabular-nums}
.rule{stroke:#c9d0dc;stroke-width:1}
.start{text-anchor:start}.middle{text-anchor:middle}.end{text-anchor:end}
.box{fill:#d55e00;fill-opacity:.13;stroke:#d55e00;stroke-opacity:.55;stroke-width:1}
.curve,.path,.casing{fill:none;stroke-linejoin:round;stroke-linecap:round}
.thin{stroke:#1b2330;stroke-opacity:.75;stroke-width:1.2;stroke-dasharray:5 4;stroke-linecap:butt}
.band{stroke:#cc79a7;stroke-opacity:.65;stroke-width:9}
.dotted{stroke:#cc79a7;stroke-opacity:.4;stroke-width:4.5;stroke-dasharray:1 7}
.ring{fill:none;stroke-dasharray:none}
.thin.ring{stroke-width:1.6}.band.ring{stroke-width:4;stroke-opacity:.8}.dotted.ring{stroke-width:3}
.path{stroke:currentColor;stroke-width:2}
.casing{stroke:#fbfcfe;stroke-opacity:.6;stroke-width:4}
.mark{fill:currentColor;stroke:#ffffff;stroke-width:1.2;stroke-linejoin:round}
.origin{fill:#ffffff;stroke:#1b2330;stroke-width:1.8}
@media (prefers-color-scheme:dark){
text{fill:#e6eaf2}
.page{fill:#11151c}
.plot{fill:#161b24}
.hill{fill:#9db7ff;fill-opacity:.028}
.frame,.tick{stroke:#6b7688}
.formula,.soft,.axis,.note,.head{fill:#aab4c5}
.name{fill:currentColor}
.note,.name,.casing{stroke:#161b24}
.rule{stroke:#333c4b}
.box{fill:#f08c3c;fill-opacity:.14;stroke:#f08c3c}
.thin{stroke:#e6eaf2}
.band{stroke:#d78fb8;stroke-opacity:.6}
.dotted{stroke:#d78fb8;stroke-opacity:.5}
.mark{stroke:#11151c}
.origin{fill:#11151c;stroke:#e6eaf2}
}
)";

}  // namespace

std::string plane_style() { return std::string(kPlaneRules) + report::series_colours(); }

std::vector<std::size_t> moving_steps(std::size_t points) {
  const std::size_t kept = std::min(points, kMovingPoints);
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < kept; ++i) result.push_back(kept == 1 ? 0 : (i * (points - 1) + (kept - 1) / 2) / (kept - 1));
  return result;
}

MovingPath moving_path(const PlanePath& path, const std::function<SvgPoint(PlanePoint)>& page) {
  MovingPath moving{path.series, path.name, path.points.size() - 1, {}};
  for (const std::size_t step : moving_steps(path.points.size())) moving.points.push_back(page(standing(path, step)));
  return moving;
}

std::string moving_json(SvgPoint size, const std::vector<MovingPath>& paths) {
  std::string all;
  for (const MovingPath& path : paths) all += (all.empty() ? "" : ",\n") + path_json(path);
  return fmt::format(R"({{"width":{},"height":{},"paths":[{}]}})", svg_number(size.x), svg_number(size.y), all);
}

void draw_marker(Svg& svg, SvgPoint at, std::size_t series, std::string_view classes) {
  svg.element("path", {{"class", style_class(classes, series)}, {"d", report::marker_path(at, series, kMarkerRadius)}});
}

void draw_ring(Svg& svg, SvgPoint at, CurveStyle style) {
  svg.element("circle", {{"class", fmt::format("{} ring", class_of(style))},
                         {"cx", svg_number(at.x)},
                         {"cy", svg_number(at.y)},
                         {"r", svg_number(kRing)}});
}

std::string_view class_of(CurveStyle style) {
  constexpr std::array<std::string_view, 3> names{"thin", "band", "dotted"};
  return names[static_cast<std::size_t>(style)];
}

PlanePoint standing(const PlanePath& path, std::size_t step) {
  for (std::size_t i = step + 1; i-- > 0;) {
    if (std::isfinite(path.points[i].x) && std::isfinite(path.points[i].y)) return path.points[i];
  }
  return {};
}

void draw_lines(Svg& svg, SvgPoint at, const std::vector<std::string>& lines, double line_height) {
  for (const std::string& line : lines) {
    svg.text(at, "soft start", line);
    at.y += line_height;
  }
}

void LabelPlanner::avoid(const std::vector<SvgPoint>& line) { ink_.insert(ink_.end(), line.begin(), line.end()); }

double LabelPlanner::cost(const Rectangle& space) const {
  if (space.left < area_.left || space.right > area_.right || space.top < area_.top || space.bottom > area_.bottom) {
    return kOutsideArea;
  }
  double total = 0;
  for (const Rectangle& other : taken_) total += overlap(space, other) ? kPerOverlap : 0;
  for (const SvgPoint& p : ink_) {
    total += p.x > space.left && p.x < space.right && p.y > space.top && p.y < space.bottom ? kPerInkPoint : 0;
  }
  return total;
}

LabelPlace LabelPlanner::place(SvgPoint point, std::string_view text, double font_size, double gap) {
  struct Side {
    double across, down;  // from the point to the text, in gaps; down also shifts by the text's height
  };
  constexpr std::array<Side, 8> sides{{{1, 0}, {-1, 0}, {0, -1}, {0, 1}, {0.8, -0.8}, {0.8, 0.8}, {-0.8, -0.8}, {-0.8, 0.8}}};
  const double width = label_width(text) * font_size;
  LabelPlace best{};
  double least = INFINITY;
  for (const double reach : {1.0, 1.6, 2.4, 3.4}) {
    for (const Side& side : sides) {
      const double middle = (kAscent - kDescent) / 2 * font_size;
      const double lift = side.down < 0 ? -kDescent * font_size : side.down > 0 ? kAscent * font_size : middle;
      const SvgPoint at{point.x + side.across * gap * reach, point.y + side.down * gap * reach + lift};
      const double left = side.across > 0 ? at.x : side.across < 0 ? at.x - width : at.x - width / 2;
      const Rectangle space{left, at.y - kAscent * font_size, left + width, at.y + kDescent * font_size};
      const double total = cost(space) + 2 * reach;
      if (total < least) {
        least = total;
        best = {at, side.across > 0 ? "start" : side.across < 0 ? "end" : "middle", space};
      }
    }
  }
  constexpr double kAir = 5;
  taken_.push_back({best.space.left - kAir, best.space.top - kAir, best.space.right + kAir, best.space.bottom + kAir});
  return best;
}

std::string pretty(double value) {
  if (value == 0 || std::abs(value) >= 1e5 || std::abs(value) >= 9.95e-3) {
    if (value == 0 || std::abs(value) < 1e5) return fmt::format("{:.{}f}", value, std::abs(value) >= 9.995 ? 1 : 2);
  }
  const int power = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double digit = std::round(value / std::pow(10, power));
  return std::abs(digit) == 10 ? fmt::format("{}×10{}", digit / 10, superscript(power + 1))
                               : fmt::format("{}×10{}", digit, superscript(power));
}

}  // namespace cautious::lab::drawing
