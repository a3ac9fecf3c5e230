#include "report/plane_figure.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "report/chart_plot.h"
#include "report/chart_text.h"
#include "report/plane_marker.h"
#include "report/plane_panel.h"
#include "report/plane_style.h"

namespace cautious::report {
namespace {

constexpr double kPlot = 440, kGap = 76, kLeft = 56, kRight = 24, kInner = 2 * kPlot + kGap;
constexpr double kPlotTop = 108, kHeading = 14, kTable = 58, kBesideTop = 24, kRow = 21, kLine = 17;
constexpr double kBelowAxes = 52, kBelowTable = 34, kBetweenRows = 40, kFoot = 14;

// Where everything stands. The note is beside the last panel if that is alone in its row.
struct Place {
  Rectangle plot;
  SvgPoint table;
};

struct Layout {
  std::vector<std::string> subtitle, note;
  std::vector<Place> panels;
  SvgPoint note_at, size;
};

Layout layout(const PlaneFigure& figure) {
  Layout result;
  result.subtitle = wrapped(figure.subtitle, kPlaneSoftSize, kInner);
  double top = kPlotTop + (figure.subtitle.empty() ? -1.0 : static_cast<double>(result.subtitle.size() - 1)) * kLine;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const bool left = i % 2 == 0, alone = left && i + 1 == figure.panels.size();
    const double x = left ? kLeft : kLeft + kPlot + kGap;
    const double rows = static_cast<double>(figure.panels[i].paths.size()) * kRow;
    const Rectangle plot{x, top, x + kPlot, top + kPlot};
    const SvgPoint table = alone ? SvgPoint{plot.right + kGap, top + kBesideTop} : SvgPoint{x, plot.bottom + kTable};
    result.panels.push_back({plot, table});
    const double bottom = std::max(plot.bottom + kBelowAxes, table.y + 7 + rows + kBelowTable);
    result.size.y = std::max(result.size.y, bottom);
    result.note_at = {table.x, alone ? table.y + 7 + rows + kBelowTable : result.size.y};
    result.note = wrapped(figure.note, kPlaneSoftSize, alone ? kPlot : kInner);
    if (alone) continue;
    result.note_at.x = kLeft;
    if (!left) top = result.size.y + kBetweenRows;
  }
  const double note_end = result.note_at.y + static_cast<double>(result.note.size() - 1) * kLine;
  result.size = {kLeft + kInner + kRight, std::max(result.size.y, note_end) + kFoot};
  return result;
}

void draw_lines(Svg& svg, SvgPoint at, const std::vector<std::string>& lines) {
  for (const std::string& line : lines) {
    svg.text(at, "soft start", line);
    at.y += kLine;
  }
}

void draw_table(Svg& svg, SvgPoint at, const PlaneFigure& figure, const PlanePanel& panel) {
  const double left = at.x, top = at.y;
  const auto line = [&svg, left](double y) { draw_line(svg, "rule", {left, y}, {left + kPlot, y}); };
  for (const PlaneColumn& column : figure.columns) svg.text({left + column.right * kPlot, top}, "head end", column.head);
  double y = top + 7;
  line(y);
  for (const PlanePath& path : panel.paths) {
    y += kRow;
    draw_marker(svg, {left + 7, y - 4}, path.series, "mark key");
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
  const Layout places = layout(figure);
  Svg svg(places.size.x, places.size.y, figure.title, figure.description, kPlaneStyle);
  svg.element("rect", {{"class", "page"}, {"width", svg_number(places.size.x)}, {"height", svg_number(places.size.y)}});
  svg.text({kLeft, 34}, "title start", figure.title);
  draw_lines(svg, {kLeft, 56}, places.subtitle);
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const PlanePanel& panel = figure.panels[i];
    const auto& [plot, table] = places.panels[i];
    svg.text({plot.left, plot.top - kHeading}, "panel start", panel.title);
    svg.text({plot.right, plot.top - kHeading}, "formula end", panel.formula);
    draw_panel(svg, plot, panel);
    draw_table(svg, table, figure, panel);
  }
  draw_lines(svg, places.note_at, places.note);
  return svg.finish();
}

SvgPoint page_size(const PlaneFigure& figure) { return layout(figure).size; }

std::vector<MovingPath> moving_paths(const PlaneFigure& figure) {
  const Layout places = layout(figure);
  std::vector<MovingPath> all;
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    for (MovingPath& path : moving_paths(places.panels[i].plot, figure.panels[i])) all.push_back(std::move(path));
  }
  return all;
}

}  // namespace cautious::report
