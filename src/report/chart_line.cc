// The page of a line chart, from the top: title, legend unless the names stand at the lines, name of y, plot, name of x.
#include <algorithm>
#include <cmath>

#include "report/chart.h"
#include "report/chart_inset.h"
#include "report/chart_legend.h"
#include "report/chart_plot.h"
#include "report/chart_style.h"
#include "report/chart_text.h"

namespace cautious::report {
namespace {

constexpr double kWidth = 760, kPlotHeight = 330, kLeft = 24, kRight = 28;
constexpr double kTop = 16, kTitleLine = 22, kGap = 12, kSoftLine = 18, kBelowPlot = 26, kBottom = 14;
constexpr double kTallerForInset = 1.75;  // so much that its place above the data is free

double least_x(const LineChart& chart) {
  ChartExtent all;
  for (const ChartSeries& series : chart.series) all.include(extent_of_x(series, chart.x_scale, chart.y_scale).low);
  return all.low;
}

// A range from zero on a log axis begins with the data; an empty one is as good as none.
ChartExtent range_of(const LineChart& chart, const std::optional<std::pair<double, double>>& range) {
  if (!range) return {};
  const auto [low, high] = std::minmax(range->first, range->second);
  const double first = scaled(low, chart.x_scale), last = scaled(high, chart.x_scale);
  const ChartExtent shown{std::isnan(first) ? least_x(chart) : first, last};
  return shown.low < shown.high ? shown : ChartExtent{};
}

struct Page {
  bool label_ends = false;
  std::vector<std::string> title, y_label, x_label;
  std::vector<LegendEntry> legend;
  double legend_top = 0, y_label_top = 0, x_label_top = 0, height = 0;
};

Page arrange(const LineChart& chart, ChartPlot& plot, double plot_height) {
  constexpr double kInner = kWidth - kLeft - kRight;
  Page page;
  page.label_ends = can_label_ends(chart, plot);
  page.title = wrapped(chart.title, kTitleSize, kInner);
  page.y_label = wrapped(chart.y_label, kSoftSize, kInner);
  page.x_label = wrapped(chart.x_label, kSoftSize, kInner);
  if (!page.label_ends) page.legend = legend_entries(chart, plot);
  page.legend_top = kTop + kTitleLine * static_cast<double>(page.title.size()) + kGap / 2;
  page.y_label_top = page.legend_top + legend_height(page.legend, kInner) + (page.legend.empty() ? 0 : kGap);
  const double top = page.y_label_top + kSoftLine * static_cast<double>(page.y_label.size()) + kGap / 2;
  const double right = kWidth - (page.label_ends ? end_label_space(chart) : kRight);
  place(plot, {kLeft, top, right, top + plot_height});
  place(plot, {kLeft + label_space(plot), top, right, top + plot_height});
  page.x_label_top = plot.area.bottom + kBelowPlot;
  page.height = page.x_label_top + kSoftLine * static_cast<double>(page.x_label.size()) + kBottom;
  return page;
}

void draw_text(Svg& svg, SvgPoint left_top, const std::vector<std::string>& lines, std::string_view classes, double line) {
  for (const std::string& text : lines) {
    left_top.y += line;
    svg.text({left_top.x, left_top.y - line * 0.25}, classes, text);
  }
}

}  // namespace

std::string to_svg(const LineChart& chart) {
  ChartPlot plot = make_plot(chart, range_of(chart, chart.x_range));
  const ChartExtent part = range_of(chart, chart.inset);
  ChartPlot inset;
  if (!part.empty()) inset = make_plot(chart, part);
  const bool has_inset = !part.empty() && !inset.empty() && !plot.empty();
  Page page = arrange(chart, plot, kPlotHeight);
  std::optional<Rectangle> space = has_inset ? free_corner(plot) : std::nullopt;
  if (has_inset && !space) {
    plot.y.shown.high += (kTallerForInset - 1) * (plot.y.shown.high - plot.y.shown.low);
    page = arrange(chart, plot, kPlotHeight * kTallerForInset);
    space = free_corner(plot);
  }
  Svg svg(kWidth, page.height, chart.title, chart.description, kChartStyle);
  svg.element("rect", {{"class", "page"}, {"width", svg_number(kWidth)}, {"height", svg_number(page.height)}});
  draw_text(svg, {kLeft, kTop}, page.title, "title start", kTitleLine);
  draw_legend(svg, page.legend, {kLeft, page.legend_top}, kWidth - kLeft - kRight);
  draw_text(svg, {kLeft, page.y_label_top}, page.y_label, "soft start", kSoftLine);
  draw_text(svg, {plot.area.right, page.x_label_top}, page.x_label, "soft end", kSoftLine);
  if (space) draw_inset_zone(svg, plot, part);
  draw_axes(svg, plot, plot.empty());
  draw_series(svg, plot);
  if (page.label_ends) draw_end_labels(svg, chart, plot);
  if (space) draw_inset(svg, inset, *space);
  return svg.finish();
}

}  // namespace cautious::report
