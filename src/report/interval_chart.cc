// The page of an interval chart: per row the name, the point with its whiskers above the single runs, and the numbers. On a
// narrow page name and numbers are above the interval, which has the whole width.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/plot.h"
#include "report/style.h"

namespace cautious::report {
namespace {

constexpr double kRowsRight = 24, kMostForNames = 230, kColumnGap = 18, kAbovePlot = 26;
constexpr double kRow = 40, kNameLine = 16, kEmptyRows = 90;
constexpr double kValueMarker = 5, kCap = 4.5, kRun = 2.7, kRunsBelow = 11, kArrow = 9;
constexpr double kStackedGap = 8, kStackedInterval = 30;
constexpr double kStackedInset = 12;  // of the plot, with the margin enough for half a label of its axis
constexpr double kFlat = 4;           // reaches of the points: where all intervals together are longer, the axis is cut

struct IntervalLayout {
  double width, left, right;
  std::size_t ticks;
  bool stacked;
};
constexpr IntervalLayout kWide{kPageWidth, kPageLeft, kRowsRight, 6, false}, kNarrow{350, 12, 12, 4, true};

double on_axis(double value) { return scaled(value, Scale::linear); }

bool has_interval(const IntervalEntry& entry) { return !std::isnan(on_axis(entry.low)) && !std::isnan(on_axis(entry.high)); }

bool has_data(const IntervalEntry& entry) {
  return !std::isnan(on_axis(entry.value)) ||
         std::any_of(entry.points.begin(), entry.points.end(), [](double p) { return !std::isnan(on_axis(p)); });
}

// Of values, single runs and the reference.
ChartExtent extent_of_points(const IntervalChart& chart) {
  ChartExtent extent;
  for (const IntervalEntry& entry : chart.entries) {
    extent.include(on_axis(entry.value));
    for (const double point : entry.points) extent.include(on_axis(point));
  }
  if (!extent.empty() && chart.reference) extent.include(on_axis(*chart.reference));
  return extent;
}

// How far from the points an interval may be drawn: as far as they are apart, or, where there are no single runs to see, as far
// as an interval in the middle of all is long.
double reach_of(const IntervalChart& chart, const ChartExtent& points) {
  std::vector<double> lengths;
  bool runs = false;
  for (const IntervalEntry& entry : chart.entries) {
    if (has_data(entry) && has_interval(entry)) lengths.push_back(std::abs(entry.high - entry.low));
    runs = runs || !entry.points.empty();
  }
  if (runs || lengths.empty()) return points.high - points.low;
  const auto middle = lengths.begin() + static_cast<std::ptrdiff_t>(lengths.size() / 2);
  std::nth_element(lengths.begin(), middle, lengths.end());
  return std::max(points.high - points.low, *middle);
}

// What the axis shows: everything, unless intervals, as of two seeds, are so long that the points would all be in one place.
ChartExtent shown_of(const IntervalChart& chart) {
  const ChartExtent points = extent_of_points(chart);
  ChartExtent all = points;
  for (const IntervalEntry& entry : chart.entries) {
    if (!has_data(entry) || !has_interval(entry)) continue;
    all.include(entry.low);
    all.include(entry.high);
  }
  if (points.empty()) return all;
  const double reach = reach_of(chart, points);
  if (reach <= 0 || all.high - all.low <= kFlat * reach) return all;
  return {std::max(all.low, points.low - reach), std::min(all.high, points.high + reach)};
}

bool leaves(const IntervalChart& chart, const ChartExtent& shown) {
  return std::ranges::any_of(chart.entries, [&](const IntervalEntry& entry) {
    return has_data(entry) && has_interval(entry) &&
           (std::min(entry.low, entry.high) < shown.low || std::max(entry.low, entry.high) > shown.high);
  });
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
  double texts = 0;  // height of the name and the numbers where they are above the interval
};

struct IntervalPage {
  IntervalLayout layout;
  std::vector<std::string> title, x_label;
  std::vector<Row> rows;
  ChartPlot plot;
  bool empty = false;
  double height = 0;

  double right() const { return layout.width - layout.right; }
};

void measure_row(Row& row, bool stacked) {
  const double name = kNameLine * static_cast<double>(row.name.size());
  if (stacked) row.texts = kStackedGap + name + kSoftLine;
  row.height = stacked ? row.texts + kStackedInterval : std::max(kRow, name + 10);
}

IntervalPage arrange_rows(const IntervalChart& chart, const IntervalLayout& layout) {
  IntervalPage page{.layout = layout, .title = {}, .x_label = {}, .rows = {}, .plot = {}};
  const ChartExtent shown = shown_of(chart);
  page.empty = shown.empty();
  const double inner = page.right() - layout.left;
  const bool cut = !page.empty && leaves(chart, shown);
  page.title = wrapped(chart.title, kTitleSize, inner);
  page.x_label = wrapped(cut ? chart.x_label + "; arrows: the interval goes on" : chart.x_label, kSoftSize, inner);
  double top = kPageTop + kTitleLine * static_cast<double>(page.title.size()) +
               (chart.reference && !page.empty ? kAbovePlot : kAbovePlot / 2);
  const double first = top;
  double names = 0, texts = 0;
  for (const IntervalEntry& entry : chart.entries) {
    Row row{wrapped(entry.name, kNameSize, layout.stacked ? inner : kMostForNames),
            page.empty ? "" : numbers_of(entry, shown.high - shown.low), top};
    for (const std::string& line : row.name) names = std::max(names, text_width(line, kNameSize));
    texts = std::max(texts, text_width(row.numbers, kSoftSize));
    measure_row(row, layout.stacked);
    top += row.height;
    page.rows.push_back(std::move(row));
  }
  if (page.rows.empty()) top += kEmptyRows;
  page.plot.area = layout.stacked ? Rectangle{layout.left + kStackedInset, first, page.right() - kStackedInset, top}
                                  : Rectangle{layout.left + names + kColumnGap, first, page.right() - texts - kColumnGap, top};
  if (!page.empty) page.plot.x = make_axis(Scale::linear, widened(shown, Scale::linear, 0.06), layout.ticks);
  page.plot.x.from = page.plot.area.left;
  page.plot.x.to = page.plot.area.right;
  page.height = top + kBelowPlot + kSoftLine * static_cast<double>(page.x_label.size()) + kPageBottom;
  return page;
}

// A cap, or an arrow at the edge of the plot where the interval goes on. `side`: -1 at the left end, 1 at the right.
void draw_end(Svg& svg, const std::string& colour, SvgPoint at, bool outside, double side) {
  if (!outside) {
    draw_line(svg, "whisker " + colour, {at.x, at.y - kCap}, {at.x, at.y + kCap});
    return;
  }
  const double back = at.x - side * kArrow;
  svg.element("path",
              {{"class", "arrow " + colour}, {"d", svg_path({at, {back, at.y - kCap}, {back, at.y + kCap}}, Ends::closed)}});
}

void draw_whisker(Svg& svg, const ChartPlot& plot, const IntervalEntry& entry, double y) {
  const std::string colour = style_class("", entry.colour).substr(1);
  const auto [low, high] = std::minmax(entry.low, entry.high);
  const ChartExtent& shown = plot.x.shown;
  const SvgPoint left{plot.x.at(std::max(low, shown.low)), y}, right{plot.x.at(std::min(high, shown.high)), y};
  draw_line(svg, "whisker " + colour, left, right);
  draw_end(svg, colour, left, low < shown.low, -1);
  draw_end(svg, colour, right, high > shown.high, 1);
}

void draw_row(Svg& svg, const ChartPlot& plot, const IntervalEntry& entry, double middle) {
  const double above = entry.points.empty() ? middle : middle - kRunsBelow / 2;
  if (has_interval(entry)) draw_whisker(svg, plot, entry, above);
  if (!std::isnan(on_axis(entry.value))) draw_markers(svg, {{plot.x.at(entry.value), above}}, entry.colour, kValueMarker);
  for (const double point : entry.points) {
    if (std::isnan(on_axis(point))) continue;
    svg.element("circle", {{"class", style_class("run", entry.colour)},
                           {"cx", svg_number(plot.x.at(point))},
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

void draw_texts(Svg& svg, const IntervalPage& page, const Row& row) {
  const double middle = row.top + row.height / 2, left = page.layout.left;
  const bool stacked = page.layout.stacked;
  double line = stacked ? row.top + kStackedGap + kNameSize
                        : middle - kNameLine * static_cast<double>(row.name.size() - 1) / 2 + kNameSize * 0.36;
  for (const std::string& text : row.name) {
    svg.text({left, line}, stacked ? "row start halo" : "row start", text);
    line += kNameLine;
  }
  if (stacked) {
    svg.text({left, line}, "value start halo", row.numbers);
  } else {
    svg.text({page.right(), middle + kSoftSize * 0.36}, "value end", row.numbers);
  }
}

void draw_rows(Svg& svg, const IntervalChart& chart, const IntervalPage& page) {
  for (std::size_t i = 0; i < page.rows.size(); ++i) {
    const Row& row = page.rows[i];
    if (i > 0) draw_line(svg, "grid", {page.layout.left, row.top}, {page.right(), row.top});
    draw_texts(svg, page, row);
    if (has_data(chart.entries[i])) draw_row(svg, page.plot, chart.entries[i], row.top + (row.texts + row.height) / 2);
  }
}

std::string drawn(const IntervalChart& chart, const IntervalLayout& layout) {
  const IntervalPage page = arrange_rows(chart, layout);
  Svg svg(layout.width, page.height, chart.title, chart.description, chart_style());
  svg.element("rect", {{"class", "page"}, {"width", svg_number(layout.width)}, {"height", svg_number(page.height)}});
  double y = kPageTop;
  for (const std::string& line : page.title) svg.text({layout.left, (y += kTitleLine) - 5}, "title start", line);
  draw_axes(svg, page.plot, page.empty);
  if (!page.empty && chart.reference && !std::isnan(on_axis(*chart.reference))) draw_reference(svg, page, *chart.reference);
  draw_rows(svg, chart, page);
  y = page.plot.area.bottom + kBelowPlot;
  for (const std::string& line : page.x_label) {
    const double half = text_width(line, kSoftSize) / 2, middle = (page.plot.area.left + page.plot.area.right) / 2;
    svg.text({std::max(std::min(middle, page.right() - half), layout.left + half), (y += kSoftLine) - 4}, "soft middle", line);
  }
  return svg.finish();
}

}  // namespace

std::string to_svg(const IntervalChart& chart) { return drawn(chart, kWide); }
std::string narrow_svg(const IntervalChart& chart) { return drawn(chart, kNarrow); }

}  // namespace cautious::report
