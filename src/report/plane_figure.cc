#include "report/plane_figure.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "report/plane_panel.h"
#include "report/plane_style.h"

namespace cautious {
namespace {

constexpr double kPlot = 440, kGap = 76, kLeft = 56, kRight = 24;
constexpr double kPlotTop = 108, kTable = 58, kRow = 21, kBelowTable = 48;

void draw_table(Svg& svg, double left, double top, const PlaneFigure& figure, const PlanePanel& panel) {
  const auto line = [&](double y) {
    svg.element("line", {{"class", "rule"},
                         {"x1", svg_number(left)},
                         {"y1", svg_number(y)},
                         {"x2", svg_number(left + kPlot)},
                         {"y2", svg_number(y)}});
  };
  for (const PlaneColumn& column : figure.columns) svg.text({left + column.right * kPlot, top}, "head end", column.head);
  double y = top + 7;
  line(y);
  for (const PlanePath& path : panel.paths) {
    y += kRow;
    draw_marker(svg, {left + 7, y - 4}, path.series);
    svg.text({left + 20, y}, "cell start", path.name);
    for (std::size_t i = 0; i < figure.columns.size(); ++i) {
      svg.text({left + figure.columns[i].right * kPlot, y}, "cell end", path.cells.at(i));
    }
  }
  line(y + 8);
}

std::string superscript(int number) {
  constexpr std::array<std::string_view, 10> digits{"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
  std::string result = number < 0 ? "⁻" : "";
  for (const char c : std::to_string(std::abs(number))) result += digits[static_cast<std::size_t>(c - '0')];
  return result;
}

}  // namespace

std::string pretty(double value) {
  if (value == 0 || std::abs(value) >= 1e5 || std::abs(value) >= 9.95e-3) {
    if (value == 0 || std::abs(value) < 1e5) return fmt::format("{:.{}f}", value, std::abs(value) >= 9.995 ? 1 : 2);
  }
  const int power = static_cast<int>(std::floor(std::log10(std::abs(value))));
  const double digit = std::round(value / std::pow(10, power));
  return std::abs(digit) == 10 ? fmt::format("{}×10{}", digit / 10, superscript(power + 1))
                               : fmt::format("{}×10{}", digit, superscript(power));
}

std::string to_svg(const PlaneFigure& figure) {
  std::size_t panels = figure.panels.size(), rows = 0;
  for (const PlanePanel& panel : figure.panels) rows = std::max(rows, panel.paths.size());
  const double table = kPlotTop + kPlot + kTable;
  const double height = table + 7 + static_cast<double>(rows) * kRow + kBelowTable;
  const double width = kLeft + static_cast<double>(panels) * (kPlot + kGap) - kGap + kRight;
  Svg svg(width, height, figure.title, figure.description, kPlaneStyle);
  svg.element("rect", {{"class", "page"}, {"width", svg_number(width)}, {"height", svg_number(height)}});
  svg.text({kLeft, 34}, "title start", figure.title);
  svg.text({kLeft, 56}, "soft start", figure.subtitle);
  double left = kLeft;
  for (const PlanePanel& panel : figure.panels) {
    svg.text({left, kPlotTop - 14}, "panel start", panel.title);
    svg.text({left + kPlot, kPlotTop - 14}, "formula end", panel.formula);
    draw_panel(svg, {left, kPlotTop, left + kPlot, kPlotTop + kPlot}, panel);
    draw_table(svg, left, table, figure, panel);
    left += kPlot + kGap;
  }
  svg.text({kLeft, height - 14}, "soft start", figure.note);
  return svg.finish();
}

}  // namespace cautious
