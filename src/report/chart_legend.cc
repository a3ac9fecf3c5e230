#include "report/chart_legend.h"

#include <algorithm>
#include <cmath>

#include "report/chart_style.h"
#include "report/chart_text.h"

namespace cautious::report {
namespace {

constexpr double kLongestEndLabel = 190;
constexpr double kEndPart = 0.03;  // of x: how far from the right end a line may stop
constexpr double kLeader = 16, kLeaderGap = 5;
constexpr double kSwatch = 30, kSwatchGap = 7, kEntryGap = 24, kRow = 19, kLine = 15;

struct PlacedEntry {
  SvgPoint at;  // left end of the swatch, on its middle
  std::vector<std::string> lines;
};

struct PlacedLegend {
  std::vector<PlacedEntry> entries;
  double height = 0;
};

PlacedLegend layout(const std::vector<LegendEntry>& entries, double width) {
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
    legend.entries.push_back({{x, y + kRow / 2}, lines});
    x += all + kEntryGap;
    row = std::max(row, kRow + static_cast<double>(lines.size() - 1) * kLine);
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

}  // namespace

std::vector<LegendEntry> legend_entries(const LineChart& chart, const ChartPlot& plot) {
  std::vector<LegendEntry> entries;
  std::vector<bool> drawn;
  for (std::size_t i = 0; i < chart.series.size(); ++i) {
    const ChartSeries& series = chart.series[i];
    const auto known = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return same_style(e, series); });
    const auto n = static_cast<std::size_t>(known - entries.begin());
    if (known == entries.end()) {
      entries.push_back({series.name, series.colour, series.markers});
      drawn.push_back(false);
    }
    if (!plot.series[i].runs.empty()) drawn[n] = true;
  }
  for (std::size_t i = 0; i < entries.size() && !plot.empty(); ++i) {
    if (!drawn[i]) entries[i].name += " (no data)";
  }
  return entries;
}

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

double legend_height(const std::vector<LegendEntry>& entries, double width) { return layout(entries, width).height; }

void draw_legend(Svg& svg, const std::vector<LegendEntry>& entries, SvgPoint left_top, double width) {
  const PlacedLegend legend = layout(entries, width);
  for (std::size_t i = 0; i < entries.size(); ++i) {
    const LegendEntry& entry = entries[i];
    SvgPoint at{left_top.x + legend.entries[i].at.x, left_top.y + legend.entries[i].at.y};
    draw_line(svg, style_class("line", entry.colour), at, {at.x + kSwatch, at.y});
    if (entry.markers) draw_markers(svg, {{at.x + kSwatch / 2, at.y}}, entry.colour, 4);
    at = {at.x + kSwatch + kSwatchGap, at.y + kNameSize * 0.36};
    for (const std::string& line : legend.entries[i].lines) {
      svg.text(at, style_class("name start", entry.colour), line);
      at.y += kLine;
    }
  }
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
