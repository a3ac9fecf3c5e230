// The page of an interval chart: per row the name, the point with its whiskers above the single runs, and the numbers.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/plot.h"
#include "report/style.h"

namespace cautious::report {
namespace {

constexpr double kRowsRight = 24, kMostForNames = 230, kColumnGap = 18, kAbovePlot = 26;
constexpr double kRow = 40, kNameLine = 16, kEmptyRows = 90;
constexpr double kValueMarker = 5, kCap = 4.5, kRun = 2.7, kRunsBelow = 11;

double on_axis(double value) { return scaled(value, Scale::linear); }

bool has_interval(const IntervalEntry& entry) { return !std::isnan(on_axis(entry.low)) && !std::isnan(on_axis(entry.high)); }

bool has_data(const IntervalEntry& entry) {
  return !std::isnan(on_axis(entry.value)) ||
         std::any_of(entry.points.begin(), entry.points.end(), [](double p) { return !std::isnan(on_axis(p)); });
}

ChartExtent extent_of(const IntervalChart& chart) {
  ChartExtent extent;
  for (const IntervalEntry& entry : chart.entries) {
    if (!has_data(entry)) continue;
    extent.include(on_axis(entry.value));
    for (const double point : entry.points) extent.include(on_axis(point));
    if (!has_interval(entry)) continue;
    extent.include(entry.low);
    extent.include(entry.high);
  }
  if (!extent.empty() && chart.reference) extent.include(on_axis(*chart.reference));
  return extent;
}

std::string numbers_of(const IntervalEntry& entry, double span) {
  if (!has_data(entry)) return "no data";
  if (std::isnan(on_axis(entry.value))) return "";
  const std::string value = reading(entry.value, span);
  if (!has_interval(entry)) return value;
  const auto [low, high] = std::minmax(entry.low, entry.high);
  return fmt::format("{} [{}, {}]", value, reading(low, span), reading(high, span));
}

struct Row {
  std::vector<std::string> name;
  std::string numbers;
  double top = 0, height = kRow;
};

struct IntervalPage {
  std::vector<std::string> title, x_label;
  std::vector<Row> rows;
  ChartPlot plot;
  bool empty = false;
  double height = 0;
};

IntervalPage arrange_rows(const IntervalChart& chart) {
  IntervalPage page;
  const ChartExtent data = extent_of(chart);
  page.empty = data.empty();
  page.title = wrapped(chart.title, kTitleSize, kPageWidth - kPageLeft - kRowsRight);
  page.x_label = wrapped(chart.x_label, kSoftSize, kPageWidth - kPageLeft - kRowsRight);
  double top = kPageTop + kTitleLine * static_cast<double>(page.title.size()) +
               (chart.reference && !page.empty ? kAbovePlot : kAbovePlot / 2);
  const double first = top;
  double names = 0, texts = 0;
  for (const IntervalEntry& entry : chart.entries) {
    Row row{wrapped(entry.name, kNameSize, kMostForNames), page.empty ? "" : numbers_of(entry, data.high - data.low), top,
            kRow};
    for (const std::string& line : row.name) names = std::max(names, text_width(line, kNameSize));
    texts = std::max(texts, text_width(row.numbers, kSoftSize));
    row.height = std::max(kRow, kNameLine * static_cast<double>(row.name.size()) + 10);
    top += row.height;
    page.rows.push_back(std::move(row));
  }
  if (page.rows.empty()) top += kEmptyRows;
  page.plot.area = {kPageLeft + names + kColumnGap, first, kPageWidth - kRowsRight - texts - kColumnGap, top};
  if (!page.empty) page.plot.x = make_axis(Scale::linear, widened(data, Scale::linear, 0.06), 6);
  page.plot.x.from = page.plot.area.left;
  page.plot.x.to = page.plot.area.right;
  page.height = top + kBelowPlot + kSoftLine * static_cast<double>(page.x_label.size()) + kPageBottom;
  return page;
}

void draw_row(Svg& svg, const ChartAxis& x, const IntervalEntry& entry, double middle) {
  const double above = entry.points.empty() ? middle : middle - kRunsBelow / 2;
  if (has_interval(entry)) {
    const std::string style = style_class("whisker", entry.colour);
    const double low = x.at(std::min(entry.low, entry.high)), high = x.at(std::max(entry.low, entry.high));
    draw_line(svg, style, {low, above}, {high, above});
    for (const double end : {low, high}) draw_line(svg, style, {end, above - kCap}, {end, above + kCap});
  }
  if (!std::isnan(on_axis(entry.value))) draw_markers(svg, {{x.at(entry.value), above}}, entry.colour, kValueMarker);
  for (const double point : entry.points) {
    if (std::isnan(on_axis(point))) continue;
    svg.element("circle", {{"class", style_class("run", entry.colour)},
                           {"cx", svg_number(x.at(point))},
                           {"cy", svg_number(above + kRunsBelow)},
                           {"r", svg_number(kRun)}});
  }
}

void draw_reference(Svg& svg, const IntervalPage& page, double reference) {
  const Rectangle& area = page.plot.area;
  const double x = page.plot.x.at(reference), span = page.plot.x.shown.high - page.plot.x.shown.low;
  draw_line(svg, "reference", {x, area.top - 4}, {x, area.bottom});
  svg.text({x, area.top - 9}, "axis middle", reference == 0 ? "0" : reading(reference, span));
}

void draw_rows(Svg& svg, const IntervalChart& chart, const IntervalPage& page) {
  for (std::size_t i = 0; i < page.rows.size(); ++i) {
    const Row& row = page.rows[i];
    const double middle = row.top + row.height / 2;
    if (i > 0) draw_line(svg, "grid", {kPageLeft, row.top}, {kPageWidth - kRowsRight, row.top});
    double line = middle - kNameLine * static_cast<double>(row.name.size() - 1) / 2 + kNameSize * 0.36;
    for (const std::string& text : row.name) {
      svg.text({kPageLeft, line}, "row start", text);
      line += kNameLine;
    }
    svg.text({kPageWidth - kRowsRight, middle + kSoftSize * 0.36}, "value end", row.numbers);
    if (has_data(chart.entries[i])) draw_row(svg, page.plot.x, chart.entries[i], middle);
  }
}

}  // namespace

std::string to_svg(const IntervalChart& chart) {
  const IntervalPage page = arrange_rows(chart);
  Svg svg(kPageWidth, page.height, chart.title, chart.description, chart_style());
  svg.element("rect", {{"class", "page"}, {"width", svg_number(kPageWidth)}, {"height", svg_number(page.height)}});
  double y = kPageTop;
  for (const std::string& line : page.title) svg.text({kPageLeft, (y += kTitleLine) - 5}, "title start", line);
  draw_axes(svg, page.plot, page.empty);
  if (!page.empty && chart.reference && !std::isnan(on_axis(*chart.reference))) draw_reference(svg, page, *chart.reference);
  draw_rows(svg, chart, page);
  y = page.plot.area.bottom + kBelowPlot;
  for (const std::string& line : page.x_label) {
    const double half = text_width(line, kSoftSize) / 2, middle = (page.plot.area.left + page.plot.area.right) / 2;
    svg.text({std::max(std::min(middle, kPageWidth - kRowsRight - half), kPageLeft + half), (y += kSoftLine) - 4},
             "soft middle", line);
  }
  return svg.finish();
}

}  // namespace cautious::report
