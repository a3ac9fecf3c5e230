// Charts: ticks and their labels, what is drawn of a series and where, names, and documents that any XML reader takes.
#include "report/chart.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "report/chart_axis.h"
#include "report/chart_inset.h"
#include "report/chart_legend.h"
#include "report/chart_runs.h"
#include "report/chart_text.h"
#include "svg_reading.h"

namespace cautious::report {
namespace chart_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
using Numbers = std::vector<double>;
using Texts = std::vector<std::string>;

report::ChartSeries series(std::string name, Numbers x, Numbers y) {
  report::ChartSeries s;
  s.name = std::move(name);
  s.x = std::move(x);
  s.y = std::move(y);
  return s;
}

report::LineChart chart_of(std::vector<report::ChartSeries> all) {
  report::LineChart chart;
  chart.title = "Title";
  chart.x_label = "step";
  chart.y_label = "loss";
  chart.description = "What it shows";
  for (std::size_t i = 0; i < all.size(); ++i) all[i].colour = i;
  chart.series = std::move(all);
  return chart;
}

TEST(AxisTicks, AreRoundAndFew) {
  EXPECT_EQ(report::axis_ticks(0, 1, report::Scale::linear, 6), (Numbers{0, 0.2, 0.4, 0.6, 0.8, 1}));
  EXPECT_EQ(report::axis_ticks(0, 1, report::Scale::linear, 5), (Numbers{0, 0.5, 1}));
  EXPECT_EQ(report::axis_ticks(-0.35, 0.31, report::Scale::linear, 7), (Numbers{-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3}));
  EXPECT_EQ(report::axis_ticks(3.21, 3.43, report::Scale::linear, 3), (Numbers{3.3, 3.4}));
  EXPECT_EQ(report::axis_ticks(0, 3000, report::Scale::linear, 8), (Numbers{0, 500, 1000, 1500, 2000, 2500, 3000}));
  for (const double size : {1e-200, 1e-7, 0.3, 47.0, 1e12, 1e200}) {
    for (std::size_t most = 2; most < 12; ++most) {
      const Numbers ticks = report::axis_ticks(-0.7 * size, size, report::Scale::linear, most);
      EXPECT_GE(ticks.size(), 1u);
      EXPECT_LE(ticks.size(), most);
      EXPECT_NE(std::find(ticks.begin(), ticks.end(), 0.0), ticks.end());
    }
  }
}

TEST(AxisTicks, OfALogAxisAreDecades) {
  EXPECT_EQ(report::axis_ticks(1, 3000, report::Scale::log, 8), (Numbers{1, 10, 100, 1000}));
  EXPECT_EQ(report::axis_ticks(1e-5, 0.1, report::Scale::log, 8), (Numbers{1e-5, 1e-4, 1e-3, 1e-2, 1e-1}));
  EXPECT_EQ(report::axis_ticks(1, 1e9, report::Scale::log, 4), (Numbers{1, 1e3, 1e6, 1e9}));
  EXPECT_EQ(report::axis_ticks(1, 60, report::Scale::log, 8), (Numbers{1, 2, 5, 10, 20, 50}));
  EXPECT_EQ(report::axis_ticks(3.1, 3.9, report::Scale::log, 5), (Numbers{3.2, 3.4, 3.6, 3.8}));
}

TEST(AxisTicks, NoneWithoutARange) {
  EXPECT_TRUE(report::axis_ticks(1, 1, report::Scale::linear, 5).empty());
  EXPECT_TRUE(report::axis_ticks(2, 1, report::Scale::linear, 5).empty());
  EXPECT_TRUE(report::axis_ticks(kNan, 1, report::Scale::linear, 5).empty());
  EXPECT_TRUE(report::axis_ticks(0, kInf, report::Scale::linear, 5).empty());
  EXPECT_TRUE(report::axis_ticks(0, 1, report::Scale::log, 5).empty());
  EXPECT_TRUE(report::axis_ticks(0, 1, report::Scale::linear, 0).empty());
  EXPECT_TRUE(report::axis_ticks(1e15, 1e15 + 0.25, report::Scale::linear, 5).empty());
}

TEST(TickLabels, ReadAtAGlance) {
  EXPECT_EQ(tick_labels({0, 0.5, 1}, report::Scale::linear), (Texts{"0.0", "0.5", "1.0"}));
  EXPECT_EQ(tick_labels({-0.02, 0, 0.02}, report::Scale::linear), (Texts{"−0.02", "0.00", "0.02"}));
  EXPECT_EQ(tick_labels({0, 1000, 2000}, report::Scale::linear), (Texts{"0", "1000", "2000"}));
  EXPECT_EQ(tick_labels({0, 5000, 10000}, report::Scale::linear), (Texts{"0", "5k", "10k"}));
  EXPECT_EQ(tick_labels({500000, 1000000}, report::Scale::linear), (Texts{"0.5M", "1.0M"}));
  EXPECT_EQ(tick_labels({0, 2e-5, 4e-5}, report::Scale::linear), (Texts{"0", "2e-5", "4e-5"}));
  EXPECT_EQ(tick_labels({1e-5, 1e-4, 1e-3, 0.01, 1, 1e3, 1e4, 1e6, 1e9}, report::Scale::log),
            (Texts{"1e-5", "1e-4", "0.001", "0.01", "1", "1000", "10k", "1M", "1e9"}));
  EXPECT_EQ(reading(-0.0119, 0.08), "−0.012");
  EXPECT_EQ(reading(3.28412, 0.02), "3.2841");
  EXPECT_EQ(reading(-1e-9, 1), "0.00");
}

TEST(ChartText, BreaksBetweenWordsAndInsideLongOnes) {
  EXPECT_EQ(wrapped("", 10, 100), Texts{""});
  EXPECT_EQ(wrapped("one two three", 10, report::text_width("one two", 10)), (Texts{"one two", "three"}));
  const std::string dashes = "−−−−−−−−−−";  // three bytes each
  std::string joined;
  for (const std::string& line : wrapped(dashes, 10, 25)) {
    EXPECT_LE(report::text_width(line, 10), 25);
    EXPECT_EQ(line.size() % 3, 0u);
    joined += line;
  }
  EXPECT_EQ(joined, dashes);
}

TEST(Runs, BreakAtWhatCannotBeShown) {
  const report::ChartSeries s = series("a", {0, 1, 2, 3, 4, 5}, {1, kNan, 3, -1, 5, 6});
  EXPECT_EQ(visible(s, report::Scale::linear, report::Scale::linear, {0, 5}).size(), 2u);
  const auto log = visible(s, report::Scale::linear, report::Scale::log, {0, 5});
  ASSERT_EQ(log.size(), 3u);
  EXPECT_DOUBLE_EQ(log[1][0].y, std::log10(3));
  EXPECT_EQ(log[2].size(), 2u);
  EXPECT_EQ(visible(s, report::Scale::log, report::Scale::log, {0, 1}).size(), 2u);  // x = 0 left out, and x > 10
  EXPECT_DOUBLE_EQ(extent_of_x(s, report::Scale::log, report::Scale::log).low, std::log10(2));
}

TEST(Runs, AreCutAtTheShownPart) {
  const report::ChartSeries s = series("a", {0, 10, 20}, {0, 100, 0});
  const auto runs = visible(s, report::Scale::linear, report::Scale::linear, {5, 12});
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_EQ(runs[0].size(), 3u);
  EXPECT_EQ(runs[0][0].x, 5);
  EXPECT_EQ(runs[0][0].y, 50);
  EXPECT_FALSE(runs[0][0].given);
  EXPECT_EQ(runs[0][1].y, 100);
  EXPECT_DOUBLE_EQ(runs[0][2].y, 80);
  const auto across = visible(s, report::Scale::linear, report::Scale::linear, {2, 3});
  ASSERT_EQ(across.size(), 1u);
  EXPECT_DOUBLE_EQ(across[0][1].y, 30);
}

TEST(Runs, OutlineKeepsTheExtremesOfNoise) {
  report::LineRun run;
  for (int i = 0; i < 50000; ++i) run.push_back({i / 50000.0, i == 31234 ? 1.0 : i % 2 * 0.5, kNan, kNan, true});
  const report::ChartAxis x{report::Scale::linear, {0, 1}, 0, 600, {}, {}}, y{report::Scale::linear, {0, 1}, 300, 0, {}, {}};
  const auto points = outline(run, &report::LineSample::y, x, y);
  EXPECT_LE(points.size(), 2500u);
  EXPECT_TRUE(std::any_of(points.begin(), points.end(), [](const report::SvgPoint& p) { return p.y == 0; }));
}

TEST(Legend, SpreadKeepsOrderGapAndBounds) {
  EXPECT_EQ(spread({10, 50, 90}, 15, 0, 100), (Numbers{10, 50, 90}));
  EXPECT_EQ(spread({50, 50, 50}, 10, 0, 100), (Numbers{40, 50, 60}));
  EXPECT_EQ(spread({98, 99}, 10, 0, 100), (Numbers{90, 100}));
  EXPECT_EQ(spread({0, 1}, 10, 0, 100), (Numbers{0, 10}));
}

TEST(LineChart, NamesEverySeriesOnceAndEscapesThem) {
  const report::LineChart chart = chart_of({series("a<b> & \"c\"", {0, 1}, {1, 2}), series("second", {0, 1}, {2, 3})});
  const std::string ends = to_svg(chart);
  expect_well_formed(ends);
  EXPECT_EQ(count(ends, ">a&lt;b&gt; &amp; &quot;c&quot;</text>"), 1u);
  EXPECT_EQ(count(ends, ">second</text>"), 1u);
  EXPECT_EQ(count(ends, "class=\"leader"), 2u);
  EXPECT_NE(ends.find("<desc id=\"description\">What it shows</desc>"), std::string::npos);
  EXPECT_NE(ends.find("prefers-color-scheme:dark"), std::string::npos);
  report::LineChart stopped = chart;
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
  expect_well_formed(to_svg(report::LineChart{}));
  const std::string one_gone = to_svg(chart_of({series("gone", {}, {}), series("here", {0, 1}, {1, 2})}));
  EXPECT_EQ(count(one_gone, ">gone (no data)</text>"), 1u);
}

TEST(LineChart, DrawsBandsMarkersAndSinglePoints) {
  report::LineChart chart = chart_of({series("a", {1, 2, 3, 4, 5}, {1, 2, kNan, 4, kNan})});
  chart.series[0].low = {0, 1, 1, -1, 1};
  chart.series[0].high = {2, 3, 3, 5, 3};
  chart.x_scale = chart.y_scale = report::Scale::log;
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

TEST(FreeCorner, HidesNeitherLineNorBand) {
  const auto falls = [](double x) { return std::exp(-x); };
  const auto rises = [](double x) { return 1 - std::exp(-x); };
  const auto grows = [](double x) { return std::exp(x - 30); };
  for (const std::function<double(double)>& f :
       {std::function<double(double)>(falls), std::function<double(double)>(rises), std::function<double(double)>(grows)}) {
    report::LineChart chart = chart_of({series("a", {}, {})});
    report::ChartSeries& s = chart.series[0];
    for (int i = 0; i <= 3000; ++i) {
      s.x.push_back(i / 100.0);
      s.y.push_back(f(i / 100.0));
      s.low.push_back(0.9 * s.y.back());
      s.high.push_back(1.1 * s.y.back());
    }
    report::ChartPlot plot = make_plot(chart, {});
    place(plot, {0, 0, 600, 300});
    const auto space = free_corner(plot);
    ASSERT_TRUE(space);
    for (std::size_t i = 0; i < s.x.size(); ++i) {
      const double x = plot.x.at(s.x[i]), top = plot.y.at(s.high[i]), bottom = plot.y.at(s.low[i]);
      EXPECT_FALSE(x > space->left && x < space->right && bottom > space->top && top < space->bottom) << i;
    }
  }
}

TEST(FreeCorner, IsNotInsideABand) {
  report::LineChart chart = chart_of({series("a", {0, 1}, {0, 0})});
  chart.series[0].low = {0, 0};
  chart.series[0].high = {1, 1};
  report::ChartPlot plot = make_plot(chart, {});
  place(plot, {0, 0, 600, 300});
  EXPECT_FALSE(free_corner(plot));
}

TEST(LineChart, InsetFindsOrMakesRoom) {
  report::LineChart chart = chart_of({series("falls", {}, {})});
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
      for (const report::Scale scale : {report::Scale::linear, report::Scale::log}) {
        report::LineChart chart = chart_of({series("hard", x, y), series(std::string(300, 'n'), y, x)});
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

}  // namespace chart_test
}  // namespace cautious::report
