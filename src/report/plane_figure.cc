#include "report/plane_figure.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <sstream>

#include <fmt/format.h>

#include "report/plane_panel.h"
#include "report/plane_style.h"

namespace cautious {
namespace {

constexpr double kPlot = 440, kGap = 76, kLeft = 56, kRight = 24;
constexpr double kPlotTop = 108, kTable = 58, kRow = 21, kBelowTable = 48, kLine = 17;

// Lines of at most `width` points in the size of the style class "soft".
std::vector<std::string> wrapped(const std::string& text, double width) {
  constexpr double kPerByte = 7;
  std::vector<std::string> lines(1);
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (!lines.back().empty() && static_cast<double>(lines.back().size() + 1 + word.size()) * kPerByte > width)
      lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

void draw_lines(Svg& svg, SvgPoint at, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    svg.text(at, "soft start", line);
    at.y += kLine;
  }
}

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
  std::size_t rows = 0;
  for (const PlanePanel& panel : figure.panels) rows = std::max(rows, panel.paths.size());
  const double inner = static_cast<double>(figure.panels.size()) * (kPlot + kGap) - kGap;
  const auto subtitle = wrapped(figure.subtitle, inner), note = wrapped(figure.note, inner);
  const double plot = kPlotTop + static_cast<double>(subtitle.size() - 1) * kLine;
  const double table = plot + kPlot + kTable;
  const double below = table + 7 + static_cast<double>(rows) * kRow + kBelowTable - 14;
  const double width = kLeft + inner + kRight, height = below + static_cast<double>(note.size() - 1) * kLine + 14;
  Svg svg(width, height, figure.title, figure.description, kPlaneStyle);
  svg.element("rect", {{"class", "page"}, {"width", svg_number(width)}, {"height", svg_number(height)}});
  svg.text({kLeft, 34}, "title start", figure.title);
  draw_lines(svg, {kLeft, 56}, subtitle);
  double left = kLeft;
  for (const PlanePanel& panel : figure.panels) {
    svg.text({left, plot - 14}, "panel start", panel.title);
    svg.text({left + kPlot, plot - 14}, "formula end", panel.formula);
    draw_panel(svg, {left, plot, left + kPlot, plot + kPlot}, panel);
    draw_table(svg, left, table, figure, panel);
    left += kPlot + kGap;
  }
  draw_lines(svg, {kLeft, below}, note);
  return svg.finish();
}

}  // namespace cautious
