// Line charts and interval charts: names, what is drawn and where, missing and hard data, and documents that any XML reader
// takes.
#include "report/chart.h"

#include <cmath>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chart_series.h"
#include "report/style.h"
#include "svg_reading.h"

namespace cautious::report {
namespace chart_test {

LineChart chart_of(std::vector<ChartSeries> all) {
  LineChart chart;
  chart.title = "Title";
  chart.x_label = "step";
  chart.y_label = "loss";
  chart.description = "What it shows";
  for (std::size_t i = 0; i < all.size(); ++i) all[i].colour = i;
  chart.series = std::move(all);
  return chart;
}

TEST(LineChart, NamesEverySeriesOnceAndEscapesThem) {
  const LineChart chart = chart_of({series("a<b> & \"c\"", {0, 1}, {1, 2}), series("second", {0, 1}, {2, 3})});
  const std::string ends = to_svg(chart);
  expect_well_formed(ends);
  EXPECT_EQ(count(ends, ">a&lt;b&gt; &amp; &quot;c&quot;</text>"), 1u);
  EXPECT_EQ(count(ends, ">second</text>"), 1u);
  EXPECT_EQ(count(ends, "class=\"leader"), 2u);
  EXPECT_NE(ends.find("<desc id=\"description\">What it shows</desc>"), std::string::npos);
  EXPECT_NE(ends.find("prefers-color-scheme:dark"), std::string::npos);
  LineChart stopped = chart;
  stopped.series[0].x[1] = 0.2;
  const std::string legend = to_svg(stopped);
  expect_well_formed(legend);
  EXPECT_EQ(count(legend, ">second</text>"), 1u);
  EXPECT_EQ(count(legend, "class=\"leader"), 0u);
}

TEST(LineChart, WithoutDataSaysSo) {
  for (const Numbers& y : {Numbers{}, Numbers{kNan, kNan}, Numbers{kInf, -kInf}}) {
    const std::string svg = to_svg(chart_of({series("gone", Numbers(y.size(), 1), y)}));
    expect_well_formed(svg);
    EXPECT_EQ(count(svg, ">no data</text>"), 1u);
    EXPECT_EQ(count(svg, ">gone</text>"), 1u);
  }
  expect_well_formed(to_svg(LineChart{}));
  const std::string one_gone = to_svg(chart_of({series("gone", {}, {}), series("here", {0, 1}, {1, 2})}));
  EXPECT_EQ(count(one_gone, ">gone (no data)</text>"), 1u);
}

TEST(LineChart, LegendOfSinglePointsHasNoLine) {
  LineChart chart = chart_of({series("line", {0, 1, 2}, {1, 2, 3}), series("point", {1}, {1})});
  chart.series[1].markers = true;
  chart.series[1].colour = 1;
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, ">point</text>"), 1u);
  EXPECT_EQ(count(svg, "class=\"line s0\""), 2u);  // in the plot and in the legend
  EXPECT_EQ(count(svg, "class=\"line s1\""), 0u);
}

TEST(LineChart, DrawsBandsMarkersAndSinglePoints) {
  LineChart chart = chart_of({series("a", {1, 2, 3, 4, 5}, {1, 2, kNan, 4, kNan})});
  chart.series[0].low = {0, 1, 1, -1, 1};
  chart.series[0].high = {2, 3, 3, 5, 3};
  chart.x_scale = chart.y_scale = Scale::log;
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"band s0\""), 1u);
  EXPECT_EQ(count(svg, "class=\"whisker s0\""), 1u);
  EXPECT_EQ(count(svg, "<circle class=\"mark s0\""), 1u);
  chart.series[0].markers = true;
  const std::string marked = to_svg(chart);
  EXPECT_EQ(count(marked, "<circle"), 0u);
  chart.series[0].low.pop_back();
  EXPECT_EQ(count(to_svg(chart), "class=\"band"), 0u);
}

TEST(LineChart, InsetFindsOrMakesRoom) {
  LineChart chart = chart_of({series("falls", {}, {})});
  for (int i = 0; i <= 3000; ++i) {
    chart.series[0].x.push_back(i);
    chart.series[0].y.push_back(std::exp(-i / 100.0));
  }
  chart.inset = {{0, 50}};
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"inset\""), 1u);
  EXPECT_EQ(count(svg, "class=\"line thin s0\""), 1u);
  for (int i = 0; i <= 3000; ++i) chart.series[0].y[static_cast<std::size_t>(i)] = std::sin(i / 20.0);
  EXPECT_EQ(count(to_svg(chart), "class=\"inset\""), 1u);
  chart.inset = {{5000, 6000}};
  EXPECT_EQ(count(to_svg(chart), "class=\"inset\""), 0u);
}

TEST(LineChart, HardDataStaysFiniteAndBytesStayTheSame) {
  const std::vector<Numbers> values{
      {1, 1, 1, 1},           {0, 0, 0, 0},           {-1e300, 1e300, 0, 1},         {1e308, 1, 2, 3},
      {1e-320, 1e-310, 1, 2}, {kInf, 1, kNan, -kInf}, {1e15, 1e15 + 0.5, 1e15, 1e15}};
  for (const Numbers& x : values) {
    for (const Numbers& y : values) {
      for (const Scale scale : {Scale::linear, Scale::log}) {
        LineChart chart = chart_of({series("hard", x, y), series(std::string(300, 'n'), y, x)});
        chart.x_scale = chart.y_scale = scale;
        chart.series[1].markers = true;
        chart.series[0].low = chart.series[0].high = x;
        chart.inset = {{0, 1}};
        const std::string svg = to_svg(chart);
        expect_well_formed(svg);
        EXPECT_EQ(svg, to_svg(chart));
      }
    }
  }
}

// Of the attribute in the first element of that class.
double attribute(const std::string& svg, const std::string& style_class, const std::string& name) {
  const std::size_t element = svg.find("class=\"" + style_class + "\"");
  if (element == std::string::npos) return kNan;
  const std::string start = " " + name + "=\"";
  return std::stod(svg.substr(svg.find(start, element) + start.size()));
}

IntervalChart two_arms() {
  IntervalChart chart;
  chart.title = "Difference";
  chart.x_label = "loss";
  chart.entries = {{"first & best", 0, -0.02, -0.03, -0.01, {-0.025, -0.02, -0.015}}, {"second", 1, 0.01, 0.02, 0.0, {}}};
  chart.reference = 0;
  return chart;
}

TEST(IntervalChart, DrawsEveryPartAtItsPlace) {
  const std::string svg = to_svg(two_arms());
  EXPECT_EQ(count(svg, ">first &amp; best</text>"), 1u);
  EXPECT_EQ(count(svg, "class=\"whisker s0\""), 3u);
  EXPECT_EQ(count(svg, "class=\"run s0\""), 3u);
  EXPECT_EQ(count(svg, "class=\"mark s1\""), 1u);
  EXPECT_NE(svg.find(">−0.0200 [−0.0300, −0.0100]</text>"), std::string::npos);
  EXPECT_NE(svg.find(">0.0100 [0.0000, 0.0200]</text>"), std::string::npos);
  const double low = attribute(svg, "whisker s0", "x1"), high = attribute(svg, "whisker s0", "x2");
  const double zero = attribute(svg, "reference", "x1");
  EXPECT_NEAR((high - low) / 0.02, (zero - high) / 0.01, 2);  // one scale: pixels per unit
  EXPECT_NEAR(attribute(svg, "whisker s1", "x1"), zero, 0.01);
  EXPECT_NEAR(attribute(svg, "run s0", "cx"), low + (high - low) / 4, 0.02);
  EXPECT_GT(attribute(svg, "run s0", "cy"), attribute(svg, "whisker s0", "y1") + 5);  // the whiskers hide no run
  EXPECT_EQ(svg, to_svg(two_arms()));
}

TEST(IntervalChart, LeavesOutWhatIsMissing) {
  IntervalChart chart = two_arms();
  chart.entries[0].low = kNan;
  chart.entries[0].points[1] = kNan;
  chart.entries[1].value = kNan;
  chart.reference.reset();
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, "class=\"whisker"), 0u);
  EXPECT_EQ(count(svg, "class=\"run s0\""), 2u);
  EXPECT_EQ(count(svg, "class=\"reference\""), 0u);
  EXPECT_EQ(count(svg, ">no data</text>"), 1u);
  EXPECT_EQ(count(svg, "nan"), 0u);
}

TEST(IntervalChart, WithoutDataSaysSoOnce) {
  IntervalChart chart = two_arms();
  for (IntervalEntry& entry : chart.entries) {
    entry.value = INFINITY;
    entry.points.clear();
  }
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, ">no data</text>"), 1u);
  EXPECT_EQ(count(svg, ">second</text>"), 1u);
  chart.entries.clear();
  EXPECT_EQ(count(to_svg(chart), ">no data</text>"), 1u);
}

// Two seeds, 95%: an interval is 12.7 times as long as they are apart.
TEST(IntervalChart, LongIntervalsEndInArrows) {
  IntervalChart chart;
  chart.x_label = "loss";
  chart.entries = {{"a", 0, 2.0, 1.87, 2.13, {1.99, 2.01}}, {"b", 1, 2.02, 2.0, 2.04, {2.01, 2.03}}};
  const std::string svg = to_svg(chart);
  expect_well_formed(svg);
  EXPECT_EQ(count(svg, "class=\"arrow s0\""), 2u);
  EXPECT_EQ(count(svg, "class=\"arrow s1\""), 0u);
  EXPECT_EQ(count(svg, "class=\"whisker s0\""), 1u);  // no caps
  EXPECT_EQ(count(svg, "class=\"whisker s1\""), 3u);
  EXPECT_NE(svg.find(">2.000 [1.870, 2.130]</text>"), std::string::npos) << "the numbers are whole";
  EXPECT_NE(svg.find(">loss; arrows: the interval goes on</text>"), std::string::npos);
  const double low = attribute(svg, "whisker s0", "x1"), high = attribute(svg, "whisker s0", "x2");
  EXPECT_GT(attribute(svg, "whisker s1", "x2") - attribute(svg, "whisker s1", "x1"), 0.2 * (high - low));
  chart.entries[0] = {"a", 0, 2.0, 1.97, 2.03, {1.99, 2.01}};
  EXPECT_EQ(count(to_svg(chart), "class=\"arrow"), 0u);
  EXPECT_EQ(count(to_svg(chart), "goes on"), 0u);
}

// Without single runs there is nothing to see but the intervals: one that is as long as the others is whole.
TEST(IntervalChart, WithoutRunsOnlyOutliersEndInArrows) {
  IntervalChart chart = two_arms();
  chart.entries = {{"a", 0, 0.001, -0.1, 0.1, {}}, {"b", 1, -0.001, -0.12, 0.12, {}}};
  EXPECT_EQ(count(to_svg(chart), "class=\"arrow"), 0u);
  chart.entries.push_back({"c", 2, 0.0, -5, 5, {}});
  EXPECT_EQ(count(to_svg(chart), "class=\"arrow s2\""), 2u);
  EXPECT_EQ(count(to_svg(chart), "class=\"arrow s0\""), 0u);
}

// On a telephone, 366 pixels for it: type of 11.5 is 12 pixels high there, in the wide one 5.5.
TEST(IntervalChart, NarrowHasTheNamesAboveTheIntervals) {
  IntervalChart chart = two_arms();
  chart.entries[0].name = "cwd (weight_decay=2.5, lr=0.005) - plain (weight_decay=1, lr=0.005)";
  const std::string svg = narrow_svg(chart);
  expect_well_formed(svg);
  EXPECT_NE(svg.find("viewBox=\"0 0 350 "), std::string::npos);
  EXPECT_GT(count(svg, "class=\"row start halo\""), 2u) << "the long name has several lines";
  const auto height = [&](const std::string& style_class) {  // of the first text; its class comes after its place
    return std::stod(svg.substr(svg.rfind(" y=\"", svg.find("class=\"" + style_class + "\"")) + 4));
  };
  EXPECT_LT(height("row start halo"), height("value start halo") - 10);
  EXPECT_LT(height("value start halo") + 5, attribute(svg, "whisker s0", "y1"));
  EXPECT_GT(attribute(svg, "base", "x2") - attribute(svg, "base", "x1"), 300);
  EXPECT_LT(attribute(svg, "base", "x2") + text_width("−0.010", kAxisSize) / 2, 350);
  EXPECT_NE(svg.find(">−0.0200 [−0.0300, −0.0100]</text>"), std::string::npos);
}

TEST(IntervalChart, OneValueStillHasAnAxis) {
  IntervalChart chart;
  chart.entries = {{"only", 13, 3.25, kNan, kNan, {3.25}}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, "class=\"mark s1\""), 1u);
  EXPECT_GE(count(svg, "class=\"tick\""), 2u);
  EXPECT_EQ(count(svg, "nan"), 0u);
}

}  // namespace chart_test
}  // namespace cautious::report
