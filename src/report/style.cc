#include "report/style.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <sstream>

#include <fmt/format.h>

namespace cautious::report {
namespace {

constexpr double kUp = -std::numbers::pi / 2, kDown = -kUp, kDiagonal = kDown / 2;

std::vector<SvgPoint> polygon(std::size_t corners, double start, double radius) {
  std::vector<SvgPoint> points;
  for (std::size_t i = 0; i < corners; ++i) {
    const double angle = start + 2 * std::numbers::pi * static_cast<double>(i) / static_cast<double>(corners);
    points.push_back({radius * std::cos(angle), radius * std::sin(angle)});
  }
  return points;
}

std::vector<SvgPoint> star() {
  std::vector<SvgPoint> points;
  const std::vector<SvgPoint> outer = polygon(5, kUp, 1.5), inner = polygon(5, kUp + std::numbers::pi / 5, 0.62);
  for (std::size_t i = 0; i < outer.size(); ++i) points.insert(points.end(), {outer[i], inner[i]});
  return points;
}

std::vector<SvgPoint> plus(double start) {
  constexpr double kReach = 1.18, kHalf = 0.36;  // direction of an arm's corner from its axis
  std::vector<SvgPoint> points;
  for (int arm = 0; arm < 4; ++arm) {
    const double axis = start + arm * kDown;
    for (const double side : {-kHalf, kHalf})
      points.push_back({kReach * std::cos(axis + side), kReach * std::sin(axis + side)});
    points.push_back({0.58 * std::cos(axis + kDiagonal), 0.58 * std::sin(axis + kDiagonal)});
  }
  return points;
}

// Corners of the shape with radius one; of equal weight to the eye.
std::vector<SvgPoint> shape(std::size_t style) {
  switch (style) {
    case 1:
      return polygon(4, kDiagonal, 1.25);
    case 2:
      return polygon(4, 0, 1.3);
    case 3:
      return polygon(3, kUp, 1.35);
    case 4:
      return polygon(3, kDown, 1.35);
    case 5:
      return plus(0);
    case 6:
      return plus(kDiagonal);
    case 7:
      return polygon(5, kUp, 1.2);
    case 8:
      return star();
    case 9:
      return polygon(3, std::numbers::pi, 1.35);
    case 10:
      return polygon(3, 0, 1.35);
    case 11:
      return {{-1.2, -1}, {1.2, -1}, {-1.2, 1}, {1.2, 1}};  // an hourglass
    default:
      return polygon(24, 0, 1);
  }
}

bool continues_character(char c) { return (c & 0xC0) == 0x80; }

// In font sizes.
double width_of(char c) {
  const auto one_of = [c](std::string_view set) { return set.find(c) != std::string_view::npos; };
  if (continues_character(c)) return 0;
  if (one_of("fijlrtI|,.:;!'()[]/- ")) return 0.43;
  if (one_of("mwMW%@")) return 1.02;
  return c >= 'A' && c <= 'Z' ? 0.77 : 0.68;
}

// Cuts a word into pieces that fit.
std::vector<std::string> pieces(const std::string& word, double font_size, double width) {
  std::vector<std::string> parts(1);
  double used = 0;
  for (const char c : word) {
    const double more = width_of(c) * font_size;
    if (used + more > width && !parts.back().empty() && !continues_character(c)) {
      parts.emplace_back();
      used = 0;
    }
    parts.back() += c;
    used += more;
  }
  return parts;
}

struct SeriesStyle {
  std::string_view light, light_name, dark, dash;  // a name is text, so it may have to be darker than its line
};
constexpr std::array<SeriesStyle, kSeriesStyles> kPalette{{{"#0072b2", "#0072b2", "#4aa3e0", ""},
                                                           {"#d55e00", "#c25400", "#f0743e", "8 3"},
                                                           {"#009e73", "#00805d", "#2fc79b", "3 2.5"},
                                                           {"#cc79a7", "#a84d80", "#d78fb8", "9 3 2 3"},
                                                           {"#365f13", "#365f13", "#b7c451", "14 4"},
                                                           {"#3a9cd4", "#2577a8", "#8ad0ff", "1.5 2.5"},
                                                           {"#1b2330", "#1b2330", "#e6eaf2", "9 3 2 3 2 3"},
                                                           {"#7e00f6", "#7e00f6", "#9a6cff", "5 5"},
                                                           {"#751c9b", "#751c9b", "#b1688e", "12 3 3 3"},
                                                           {"#986aff", "#7a45f0", "#96ffa3", "6 2"},
                                                           {"#5b2500", "#5b2500", "#ffda11", "2 5"},
                                                           {"#a1446c", "#a1446c", "#fc005c", "14 3 2 3 2 3"}}};

constexpr std::string_view kChartRules = R"(
text{font-family:Inter,"Helvetica Neue",Helvetica,Arial,"Liberation Sans","DejaVu Sans",sans-serif;fill:#1b2330}
.page{fill:#ffffff}
.title{font-size:17px;font-weight:600}
.soft{font-size:12px;fill:#4c5769}
.axis{font-size:11.5px;fill:#4c5769;font-variant-numeric:tabular-nums}
.small{font-size:10px}
.name{font-size:12.5px;font-weight:600;fill:currentColor}
.row{font-size:12.5px;font-weight:600}
.value{font-size:12px;font-variant-numeric:tabular-nums}
.start{text-anchor:start}.middle{text-anchor:middle}.end{text-anchor:end}
.grid{stroke:#e6eaf0;stroke-width:1}
.zero{stroke:#b9c1ce}
.tick,.base{stroke:#8a94a6;stroke-width:1}
.zone{fill:#5b6b85;fill-opacity:.1}
.inset{fill:#ffffff;stroke:#b9c1ce;stroke-width:1}
.reference{stroke:#1b2330;stroke-opacity:.7;stroke-width:1.3;stroke-dasharray:5 4}
.line{fill:none;stroke:currentColor;stroke-width:1.9;stroke-linejoin:round}
.thin{stroke-width:1.3}
.leader{fill:none;stroke:currentColor;stroke-width:1;stroke-opacity:.6}
.band{fill:currentColor;fill-opacity:.16}
.whisker{stroke:currentColor;stroke-width:2}
.arrow{fill:currentColor}
.halo{paint-order:stroke;stroke:#ffffff;stroke-width:4px;stroke-linejoin:round}
.mark{fill:currentColor;stroke:#ffffff;stroke-width:1;stroke-linejoin:round}
.run{fill:currentColor;fill-opacity:.55}
@media (prefers-color-scheme:dark){
text{fill:#e6eaf2}
.page{fill:#11151c}
.soft,.axis{fill:#aab4c5}
.name{fill:currentColor}
.grid{stroke:#262e3b}
.zero{stroke:#4d586b}
.tick,.base{stroke:#6b7688}
.zone{fill:#aab8d4;fill-opacity:.12}
.inset{fill:#11151c;stroke:#4d586b}
.reference{stroke:#e6eaf2}
.band{fill-opacity:.2}
.mark,.halo{stroke:#11151c}
}
)";

}  // namespace

std::string series_colours() {
  std::string light, dark;
  for (std::size_t i = 0; i < kSeriesStyles; ++i) {
    light += fmt::format(".s{0}{{color:{1}}}.name.s{0}{{color:{2}}}\n", i, kPalette[i].light, kPalette[i].light_name);
    dark += fmt::format(".s{0},.name.s{0}{{color:{1}}}\n", i, kPalette[i].dark);
  }
  return fmt::format("{}@media (prefers-color-scheme:dark){{\n{}}}\n", light, dark);
}

std::string series_properties() {
  std::string light, dark;
  for (std::size_t i = 0; i < kSeriesStyles; ++i) {
    light += fmt::format("--s{0}:{1};--d{0}:{2};", i, kPalette[i].light, kPalette[i].dash.empty() ? " " : kPalette[i].dash);
    dark += fmt::format("--s{}:{};", i, kPalette[i].dark);
  }
  return fmt::format(":root{{{}}}\n@media (prefers-color-scheme:dark){{:root{{{}}}}}\n", light, dark);
}

std::string chart_style() {
  std::string style = std::string(kChartRules) + series_colours();
  for (std::size_t i = 0; i < kSeriesStyles; ++i) {
    if (!kPalette[i].dash.empty()) style += fmt::format(".line.s{}{{stroke-dasharray:{}}}\n", i, kPalette[i].dash);
  }
  return style;
}

std::string style_class(std::string_view classes, std::size_t colour) {
  return fmt::format("{} s{}", classes, colour % kSeriesStyles);
}

std::string marker_path(SvgPoint at, std::size_t series, double radius) {
  std::vector<SvgPoint> corners = shape(series % kSeriesStyles);
  for (SvgPoint& corner : corners) corner = {at.x + radius * corner.x, at.y + radius * corner.y};
  return svg_path(corners, Ends::closed);
}

void draw_markers(Svg& svg, const std::vector<SvgPoint>& at, std::size_t colour, double radius) {
  if (at.empty()) return;
  std::string data;
  for (const SvgPoint& middle : at) data += marker_path(middle, colour, radius);
  svg.element("path", {{"class", style_class("mark", colour)}, {"d", data}});
}

double text_width(std::string_view text, double font_size) {
  double width = 0;
  for (const char c : text) width += width_of(c);
  return width * font_size;
}

std::vector<std::string> wrapped(std::string_view text, double font_size, double width) {
  std::vector<std::string> lines(1);
  std::istringstream words{std::string(text)};
  for (std::string word; words >> word;) {
    for (const std::string& piece : pieces(word, font_size, width)) {
      std::string& line = lines.back();
      const std::string longer = line + (line.empty() ? "" : " ") + piece;
      if (line.empty() || text_width(longer, font_size) <= width) {
        line = longer;
      } else {
        lines.push_back(piece);
      }
    }
  }
  return lines;
}

std::vector<double> spread(const std::vector<double>& wanted, double gap, double low, double high) {
  // Without the gaps the places must only ascend: neighbours that do not are moved to their mean.
  struct Group {
    double sum;
    std::size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<Group> groups;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    groups.push_back({wanted[i] - static_cast<double>(i) * gap, 1});
    while (groups.size() > 1 && groups[groups.size() - 2].mean() > groups.back().mean()) {
      const Group last = groups.back();
      groups.pop_back();
      groups.back().sum += last.sum;
      groups.back().count += last.count;
    }
  }
  const double room = high - gap * (static_cast<double>(wanted.size()) - 1);
  std::vector<double> places;
  for (const Group& group : groups) {
    for (std::size_t i = 0; i < group.count; ++i) {
      const double place = std::max(low, std::min(group.mean(), room));
      places.push_back(place + static_cast<double>(places.size()) * gap);
    }
  }
  return places;
}

}  // namespace cautious::report
