// The page of a line chart, from the top: title, legend unless the names are at the ends of the lines, name of y, plot, name of
// x; and its data for the script of an HTML page.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "report/plot.h"
#include "report/style.h"

namespace cautious::report {
namespace {

constexpr double kPlotHeight = 330, kLineRight = 28, kGap = 12;
constexpr double kTallerForInset = 1.75;  // enough to free a place above the data

constexpr double kLongestEndLabel = 190;
constexpr double kEndPart = 0.03;  // of x: how far from the right end a line may stop
constexpr double kLeader = 16, kLeaderGap = 5;
constexpr double kSwatch = 30, kSwatchGap = 7, kEntryGap = 24, kLegendRow = 19, kLegendLine = 15;

struct LegendEntry {
  std::string name;
  std::size_t colour = 0;
  bool markers = false, line = false;
};

struct PlacedEntry {
  SvgPoint at;  // left end of the swatch, on its middle
  std::vector<std::string> lines;
};

struct PlacedLegend {
  std::vector<PlacedEntry> entries;
  double height = 0;
};

PlacedLegend legend_layout(const std::vector<LegendEntry>& entries, double width) {
  PlacedLegend legend;
  double x = 0, y = 0, row = 0;
  for (const LegendEntry& entry : entries) {
    const auto lines = wrapped(entry.name, kNameSize, width - kSwatch - kSwatchGap);
    double text = 0;
    for (const std::string& line : lines) text = std::max(text, text_width(line, kNameSize));
    const double all = kSwatch + kSwatchGap + text;
    if (x > 0 && x + all > width) {
      x = 0;
      y += row;
      row = 0;
    }
    legend.entries.push_back({{x, y + kLegendRow / 2}, lines});
    x += all + kEntryGap;
    row = std::max(row, kLegendRow + static_cast<double>(lines.size() - 1) * kLegendLine);
  }
  legend.height = y + row;
  return legend;
}

// Where a line ends; nothing if it has no points.
const LineSample* last_sample(const PlotSeries& series) {
  const LineSample* last = nullptr;
  for (const LineRun& run : series.runs) {
    if (!last || run.back().x >= last->x) last = &run.back();
  }
  return last;
}

bool same_style(const LegendEntry& entry, const ChartSeries& series) {
  return entry.name == series.name && entry.colour % kSeriesStyles == series.colour % kSeriesStyles;
}

// One per name and style, in the order of the series; says which have nothing to show.
std::vector<LegendEntry> legend_entries(const LineChart& chart, const ChartPlot& plot) {
  std::vector<LegendEntry> entries;
  std::vector<bool> drawn;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& series = chart.series[i];
    const auto known = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return same_style(e, series); });
    const auto n = static_cast<std::size_t>(known - entries.begin());
    if (known == entries.end()) {
      entries.push_back({.name = series.name, .colour = series.colour, .markers = series.markers});
      drawn.push_back(false);
    }
    if (!plot.series[i].runs.empty()) drawn[n] = true;
    if (series.x.size() > 1) entries[n].line = true;
  }
  for (std::size_t i = 0; i < entries.size() && !plot.empty(); ++i) {
    if (!drawn[i]) entries[i].name += " (no data)";
  }
  return entries;
}

// True if every line runs to the right end and its name is short. `plot` needs its shown extents only.
bool can_label_ends(const LineChart& chart, const ChartPlot& plot) {
  const auto& shown = plot.x.shown;
  ChartExtent ends;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const LineSample* last = last_sample(plot.series[i]);
    if (!last || text_width(chart.series[i].name, kNameSize) > kLongestEndLabel) return false;
    for (std::size_t before = 0; before < i; ++before) {
      if (chart.series[before].name == chart.series[i].name) return false;
    }
    ends.include(last->x);
  }
  const double margin = kEndPart * (shown.high - shown.low);
  return !chart.series.empty() && ends.high - ends.low <= margin && ends.low >= shown.high - 2 * margin;
}

// Width to the right of the plot that the names take.
double end_label_space(const LineChart& chart) {
  double widest = 0;
  for (const ChartSeries& series : chart.series) widest = std::max(widest, text_width(series.name, kNameSize));
  return kLeader + kLeaderGap + widest + 12;
}

void draw_end_labels(Svg& svg, const LineChart& chart, const ChartPlot& plot) {
  struct End {
    std::size_t series;
    SvgPoint at;
  };
  std::vector<End> ends;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const LineSample* last = last_sample(plot.series[i]);
    ends.push_back({i, {plot.x.at(last->x), plot.y.at(last->y)}});
  }
  std::stable_sort(ends.begin(), ends.end(), [](const End& a, const End& b) { return a.at.y < b.at.y; });
  std::vector<double> wanted;
  for (const End& end : ends) wanted.push_back(end.at.y);
  const std::vector<double> places = spread(wanted, kNameSize * 1.3, plot.area.top, plot.area.bottom - 4);
  const double left = plot.area.right + kLeader;
  for (std::size_t i = 0; i < ends.size(); ++i) {
    const ChartSeries& series = chart.series[ends[i].series];
    const SvgPoint from{ends[i].at.x + (series.markers ? 6 : 2), ends[i].at.y};
    draw_line(svg, style_class("leader", series.colour), from, {left, places[i]});
    svg.text({left + kLeaderGap, places[i] + kNameSize * 0.36}, style_class("name start", series.colour), series.name);
  }
}

double legend_height(const std::vector<LegendEntry>& entries, double width) { return legend_layout(entries, width).height; }

void draw_legend(Svg& svg, const std::vector<LegendEntry>& entries, SvgPoint left_top, double width) {
  const PlacedLegend legend = legend_layout(entries, width);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LegendEntry& entry = entries[i];
    SvgPoint at{left_top.x + legend.entries[i].at.x, left_top.y + legend.entries[i].at.y};
    if (entry.line || !entry.markers) draw_line(svg, style_class("line", entry.colour), at, {at.x + kSwatch, at.y});
    if (entry.markers) draw_markers(svg, {{at.x + kSwatch / 2, at.y}}, entry.colour, 4);
    at = {at.x + kSwatch + kSwatchGap, at.y + kNameSize * 0.36};
    for (const std::string& line : legend.entries[i].lines) {
      svg.text(at, style_class("name start", entry.colour), line);
      at.y += kLegendLine;
    }
  }
}

double least_x(const LineChart& chart) {
  ChartExtent all;
  for (const ChartSeries& series : chart.series) all.include(extent_of_x(series, chart.x_scale, chart.y_scale).low);
  return all.low;
}

// A range from zero on a log axis begins with the data; an empty one counts as none.
ChartExtent range_of(const LineChart& chart, const std::optional<std::pair<double, double>>& range) {
  if (!range) return {};
  const auto [low, high] = std::minmax(range->first, range->second);
  const double first = scaled(low, chart.x_scale), last = scaled(high, chart.x_scale);
  const ChartExtent shown{std::isnan(first) ? least_x(chart) : first, last};
  return shown.low < shown.high ? shown : ChartExtent{};
}

struct LinePage {
  bool label_ends = false;
  std::vector<std::string> title, y_label, x_label;
  std::vector<LegendEntry> legend;
  double legend_top = 0, y_label_top = 0, x_label_top = 0, height = 0;
};

LinePage arrange_lines(const LineChart& chart, ChartPlot& plot, double plot_height) {
  constexpr double kInner = kPageWidth - kPageLeft - kLineRight;
  LinePage page;
  page.label_ends = can_label_ends(chart, plot);
  page.title = wrapped(chart.title, kTitleSize, kInner);
  page.y_label = wrapped(chart.y_label, kSoftSize, kInner);
  page.x_label = wrapped(chart.x_label, kSoftSize, kInner);
  if (!page.label_ends) page.legend = legend_entries(chart, plot);
  page.legend_top = kPageTop + kTitleLine * static_cast<double>(page.title.size()) + kGap / 2;
  page.y_label_top = page.legend_top + legend_height(page.legend, kInner) + (page.legend.empty() ? 0 : kGap);
  const double top = page.y_label_top + kSoftLine * static_cast<double>(page.y_label.size()) + kGap / 2;
  const double right = kPageWidth - (page.label_ends ? end_label_space(chart) : kLineRight);
  place(plot, {kPageLeft, top, right, top + plot_height});
  place(plot, {kPageLeft + label_space(plot), top, right, top + plot_height});
  page.x_label_top = plot.area.bottom + kBelowPlot;
  page.height = page.x_label_top + kSoftLine * static_cast<double>(page.x_label.size()) + kPageBottom;
  return page;
}

void draw_text(Svg& svg, SvgPoint left_top, const std::vector<std::string>& lines, std::string_view classes, double line) {
  for (const std::string& text : lines) {
    left_top.y += line;
    svg.text({left_top.x, left_top.y - line * 0.25}, classes, text);
  }
}

constexpr std::size_t kMostPagePoints = 600;

bool has_place(double value, Scale scale) { return std::isfinite(value) && (scale == Scale::linear || value > 0); }

// Places of the samples that stay: those in the shown part of x, evenly thinned, with the first and the last.
std::vector<std::size_t> kept(const ChartSeries& series, const LineChart& chart) {
  std::vector<std::size_t> inside;
  for (std::size_t i = 0; i < series.x.size(); ++i) {
    const double x = series.x[i];
    if (!has_place(x, chart.x_scale)) continue;
    if (!chart.x_range || (x >= chart.x_range->first && x <= chart.x_range->second)) inside.push_back(i);
  }
  if (inside.size() <= kMostPagePoints) return inside;
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < kMostPagePoints; ++i) result.push_back(inside[i * (inside.size() - 1) / (kMostPagePoints - 1)]);
  return result;
}

std::string json_numbers(const std::vector<double>& values, const std::vector<std::size_t>& places, Scale scale) {
  std::string text = "[";
  for (const std::size_t place : places) {
    if (text.size() > 1) text += ',';
    text += has_place(values[place], scale) ? fmt::format("{:.7g}", values[place]) : "null";
  }
  return text + "]";
}

std::string series_json(const ChartSeries& series, const LineChart& chart) {
  const std::vector<std::size_t> places = kept(series, chart);
  std::string text = fmt::format("{{\"name\":{},\"colour\":{},\"markers\":{},\"x\":{},\"y\":{}", script_string(series.name),
                                 series.colour % kSeriesStyles, series.markers, json_numbers(series.x, places, chart.x_scale),
                                 json_numbers(series.y, places, chart.y_scale));
  if (!series.low.empty() && !series.high.empty()) {
    text += fmt::format(",\"low\":{},\"high\":{}", json_numbers(series.low, places, chart.y_scale),
                        json_numbers(series.high, places, chart.y_scale));
  }
  return text + "}";
}

}  // namespace

std::string to_svg(const LineChart& chart) {
  ChartPlot plot = make_plot(chart, range_of(chart, chart.x_range));
  const ChartExtent part = range_of(chart, chart.inset);
  ChartPlot inset;
  if (!part.empty()) inset = make_plot(chart, part);
  const bool has_inset = !part.empty() && !inset.empty() && !plot.empty();
  LinePage page = arrange_lines(chart, plot, kPlotHeight);
  std::optional<Rectangle> space = has_inset ? free_corner(plot) : std::nullopt;
  if (has_inset && !space) {
    plot.y.shown.high += (kTallerForInset - 1) * (plot.y.shown.high - plot.y.shown.low);
    page = arrange_lines(chart, plot, kPlotHeight * kTallerForInset);
    space = free_corner(plot);
  }
  Svg svg(kPageWidth, page.height, chart.title, chart.description, chart_style());
  svg.element("rect", {{"class", "page"}, {"width", svg_number(kPageWidth)}, {"height", svg_number(page.height)}});
  draw_text(svg, {kPageLeft, kPageTop}, page.title, "title start", kTitleLine);
  draw_legend(svg, page.legend, {kPageLeft, page.legend_top}, kPageWidth - kPageLeft - kLineRight);
  draw_text(svg, {kPageLeft, page.y_label_top}, page.y_label, "soft start", kSoftLine);
  draw_text(svg, {plot.area.right, page.x_label_top}, page.x_label, "soft end", kSoftLine);
  if (space) draw_inset_zone(svg, plot, part);
  draw_axes(svg, plot, plot.empty());
  draw_series(svg, plot);
  if (page.label_ends) draw_end_labels(svg, chart, plot);
  if (space) draw_inset(svg, inset, *space);
  return svg.finish();
}

std::string page_json(const LineChart& chart) {
  std::string series;
  for (const ChartSeries& one : chart.series) series += (series.empty() ? "" : ",\n") + series_json(one, chart);
  return fmt::format("{{\"title\":{},\"x_label\":{},\"y_label\":{},\"x_log\":{},\"y_log\":{},\"series\":[{}]}}",
                     script_string(chart.title), script_string(chart.x_label), script_string(chart.y_label),
                     chart.x_scale == Scale::log, chart.y_scale == Scale::log, series);
}

}  // namespace cautious::report
