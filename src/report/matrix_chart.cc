// The page of a confusion matrix: names, cells, the share of each row that is right, and what the shades mean.
#include "report/matrix_chart.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <numeric>

#include <fmt/format.h>

#include "report/plot.h"
#include "report/style.h"

namespace cautious::report {
namespace {

constexpr double kMatrixRight = 66;                    // room for the shares behind the rows
constexpr double kLargestCell = 52, kNamesMost = 150;  // width of the names before the rows
constexpr double kNamesGap = 9, kSlope = 0.7071;       // names above the columns lean by 45 degrees
constexpr double kShadeCell = 15, kMatrixLegend = 46;
constexpr std::size_t kLevels = 25;  // of a shade
constexpr double kLightFrom = 0.75;  // shade from which text is written in the colour of the page

// Not in the style sheet of all charts, whose bytes would change with it.
constexpr std::string_view kMatrixStyle = R"(
.cell{fill:currentColor}
.frame{fill:none;stroke:#b9c1ce;stroke-width:1}
.count{font-variant-numeric:tabular-nums;text-anchor:middle}
.count.light{fill:#ffffff}
@media (prefers-color-scheme:dark){.frame{stroke:#4d586b}.count{fill:#e6eaf2}.count.light{fill:#11151c}}
)";

enum class Hue { right, wrong };

// Mistakes are rare: the power makes one in a hundred visible.
double shade_of(double share, Hue hue) { return hue == Hue::right ? share : std::pow(share, 0.42); }

std::string shortened(const std::string& name, double font_size, double width) {
  if (text_width(name, font_size) <= width) return name;
  std::string start;
  for (const char c : name) {
    const bool inside = (c & 0xC0) == 0x80;  // of a character
    if (!inside && text_width(start + c, font_size) + text_width("…", font_size) > width) break;
    start += c;
  }
  return start + "…";
}

struct MatrixPage {
  std::vector<std::string> title;
  double names = 0;          // width of the names of the classes
  double left = 0, top = 0;  // of the cells
  double cell = 0, side = 0, height = 0;
  double gap = 0;          // between cells
  bool small = false;      // the names are
  std::size_t stride = 1;  // every how many classes are named

  double font() const { return small ? kSmallSize : kAxisSize; }
  std::string type(const char* anchor) const { return fmt::format("axis {}{}", small ? "small " : "", anchor); }
};

MatrixPage arrange_matrix(const MatrixChart& chart) {
  MatrixPage page;
  const auto count = static_cast<double>(std::max<std::size_t>(1, chart.classes.size()));
  page.title = wrapped(chart.title, kTitleSize, kPageWidth - 2 * kPageLeft);
  for (const std::string& name : chart.classes) page.names = std::max(page.names, text_width(name, kAxisSize));
  page.names = std::min(page.names, kNamesMost);
  page.left = kPageLeft + kSoftLine + page.names + kNamesGap;
  page.cell = std::min(kLargestCell, (kPageWidth - kMatrixRight - page.left) / count);
  page.side = page.cell * count;
  page.left += (kPageWidth - kMatrixRight - page.left - page.side) / 2;
  page.gap = page.cell >= 14 ? 1.5 : 0;
  page.small = page.cell * kSlope < kAxisSize + 1;
  page.stride = static_cast<std::size_t>(std::ceil((page.font() + 1) / (kSlope * page.cell)));
  page.top = kPageTop + kTitleLine * static_cast<double>(page.title.size()) + kSoftLine + page.names * kSlope + 2 * kNamesGap;
  page.height = page.top + page.side + kMatrixLegend + kPageBottom;
  return page;
}

std::int64_t sum_of(const std::vector<std::int64_t>& row) { return std::accumulate(row.begin(), row.end(), std::int64_t{0}); }

// All cells of a hue and a shade are one path: a hundred classes have ten thousand cells.
void draw_cells(Svg& svg, const MatrixChart& chart, const MatrixPage& page) {
  std::array<std::array<std::string, kLevels + 1>, 2> paths;
  const std::string shape = fmt::format("h{0}v{0}h-{0}z", svg_number(page.cell - page.gap));
  for (std::size_t row = 0; row < chart.counts.size(); ++row) {
    const std::int64_t all = sum_of(chart.counts[row]);
    for (std::size_t column = 0; column < chart.counts[row].size(); ++column) {
      const std::int64_t count = chart.counts[row][column];
      if (count == 0) continue;
      const Hue hue = row == column ? Hue::right : Hue::wrong;
      const double shade = shade_of(static_cast<double>(count) / static_cast<double>(all), hue);
      const auto level = static_cast<std::size_t>(std::max(1.0, std::round(shade * kLevels)));
      paths[static_cast<std::size_t>(hue)][level] +=
          fmt::format("M{} {}{}", svg_number(page.left + page.gap / 2 + page.cell * static_cast<double>(column)),
                      svg_number(page.top + page.gap / 2 + page.cell * static_cast<double>(row)), shape);
    }
  }
  for (std::size_t hue = 0; hue < paths.size(); ++hue) {
    for (std::size_t level = 1; level <= kLevels; ++level) {
      if (paths[hue][level].empty()) continue;
      svg.element("path", {{"class", style_class("cell", hue)},
                           {"fill-opacity", svg_number(static_cast<double>(level) / kLevels)},
                           {"d", paths[hue][level]}});
    }
  }
}

void draw_counts(Svg& svg, const MatrixChart& chart, const MatrixPage& page) {
  constexpr double kLeastSize = 8.5;
  const double size = std::min(kSoftSize, page.cell * 0.42);
  if (size < kLeastSize) return;
  for (std::size_t row = 0; row < chart.counts.size(); ++row) {
    const std::int64_t all = sum_of(chart.counts[row]);
    for (std::size_t column = 0; column < chart.counts[row].size(); ++column) {
      const std::int64_t count = chart.counts[row][column];
      const std::string text = std::to_string(count);
      if (count == 0 || text_width(text, size) > page.cell - 2) continue;
      const double shade =
          shade_of(static_cast<double>(count) / static_cast<double>(all), row == column ? Hue::right : Hue::wrong);
      svg.open("g", {{"font-size", svg_number(size)}});
      svg.text({page.left + page.cell * (static_cast<double>(column) + 0.5),
                page.top + page.cell * (static_cast<double>(row) + 0.5) + size * 0.36},
               shade >= kLightFrom ? "count light" : "count", text);
      svg.close();
    }
  }
}

void draw_turned(Svg& svg, SvgPoint at, int degrees, std::string_view classes, const std::string& text) {
  svg.open("g", {{"transform", fmt::format("translate({} {}) rotate({})", svg_number(at.x), svg_number(at.y), degrees)}});
  svg.text({0, 0}, classes, text);
  svg.close();
}

void draw_names(Svg& svg, const MatrixChart& chart, const MatrixPage& page) {
  for (std::size_t i = 0; i < chart.classes.size(); i += page.stride) {
    const double middle = page.cell * (static_cast<double>(i) + 0.5);
    const std::string name = shortened(chart.classes[i], page.font(), page.names);
    svg.text({page.left - kNamesGap, page.top + middle + page.font() * 0.36}, page.type("end"), name);
    draw_turned(svg, {page.left + middle + page.font() * 0.25, page.top - kNamesGap}, -45, page.type("start"), name);
  }
  const double side = page.left - kNamesGap - page.names - kSoftLine / 2;
  draw_turned(svg, {side, page.top + page.side / 2}, -90, "soft middle", "true class");
  svg.text({page.left + page.side / 2, page.top - page.names * kSlope - 2 * kNamesGap}, "soft middle", "taken for");
}

// The share of each row that is right.
void draw_shares(Svg& svg, const MatrixChart& chart, const MatrixPage& page) {
  for (std::size_t row = 0; row < chart.counts.size(); row += page.stride) {
    const std::int64_t all = sum_of(chart.counts[row]);
    if (all == 0) continue;
    const double share = 100 * static_cast<double>(chart.counts[row][row]) / static_cast<double>(all);
    svg.text({page.left + page.side + kNamesGap, page.top + page.cell * (static_cast<double>(row) + 0.5) + page.font() * 0.36},
             page.type("start"), fmt::format("{:.1f}%", share));
  }
}

void draw_matrix_legend(Svg& svg, const MatrixPage& page) {
  const double top = page.top + page.side + kMatrixLegend - kShadeCell;
  double x = page.left;
  for (const Hue hue : {Hue::right, Hue::wrong}) {
    const bool right = hue == Hue::right;
    const std::string words = right ? "right:" : "wrong:";
    svg.text({x, top + kShadeCell * 0.8}, "soft start", words);
    x += text_width(words, kSoftSize) + 6;
    for (const int percent : right ? std::array{50, 75, 100} : std::array{1, 10, 50}) {
      svg.element("rect", {{"class", style_class("cell", right ? 0 : 1)},
                           {"fill-opacity", svg_number(shade_of(percent / 100.0, hue))},
                           {"x", svg_number(x)},
                           {"y", svg_number(top)},
                           {"width", svg_number(kShadeCell)},
                           {"height", svg_number(kShadeCell)},
                           {"rx", "2"}});
      x += kShadeCell + 5;
      const std::string number = fmt::format("{}%", percent);
      svg.text({x, top + kShadeCell * 0.8}, "axis start", number);
      x += text_width(number, kAxisSize) + 7;
    }
    x += 14;
  }
  svg.text({x, top + kShadeCell * 0.8}, "soft start", "of the row");
}

}  // namespace

std::string to_svg(const MatrixChart& chart) {
  const MatrixPage page = arrange_matrix(chart);
  Svg svg(kPageWidth, page.height, chart.title, chart.description, fmt::format("{}{}", chart_style(), kMatrixStyle));
  svg.element("rect", {{"class", "page"}, {"width", svg_number(kPageWidth)}, {"height", svg_number(page.height)}});
  double y = kPageTop;
  for (const std::string& line : page.title) svg.text({kPageLeft, (y += kTitleLine) - 5}, "title start", line);
  draw_cells(svg, chart, page);
  svg.element("rect", {{"class", "frame"},
                       {"x", svg_number(page.left)},
                       {"y", svg_number(page.top)},
                       {"width", svg_number(page.side)},
                       {"height", svg_number(page.side)}});
  draw_counts(svg, chart, page);
  draw_names(svg, chart, page);
  draw_shares(svg, chart, page);
  draw_matrix_legend(svg, page);
  return svg.finish();
}

}  // namespace cautious::report
