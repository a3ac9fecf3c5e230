// What charts are made of: the SVG writer, ticks and their labels, text, what is seen of a series, free places.
#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "chart_series.h"
#include "report/plot.h"
#include "report/style.h"

namespace cautious::report {
namespace chart_parts_test {

using Texts = std::vector<std::string>;

TEST(Svg, EscapesAndRoundsNumbers) {
  EXPECT_EQ(svg_escape("a<b & \"c\">\x01"), "a&lt;b &amp; &quot;c&quot;&gt;?");
  EXPECT_EQ(svg_number(1.5), "1.5");
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(svg_number(100), "100");
  EXPECT_EQ(svg_path({{1, 2}, {3, 2}, {3, 5.126}}, Ends::closed), "M1 2l2 0l0 3.13z");
  EXPECT_EQ(script_string("</a>\"\n\xc3\xa9\xff"), "\"\\u003c/a>\\\"\\n\\u00e9\\ufffd\"");
}

TEST(Svg, SimplifiedKeepsCornersAndTolerance) {
  std::vector<SvgPoint> path;
  for (int i = 0; i <= 100; ++i) path.push_back({i / 10.0, i % 2 * 0.01});
  path.push_back({10, 5});
  const auto kept = simplified(path, 0.05);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[1].x, 10);
}

TEST(AxisTicks, AreRoundAndFew) {
  EXPECT_EQ(axis_ticks(0, 1, Scale::linear, 6), (Numbers{0, 0.2, 0.4, 0.6, 0.8, 1}));
  EXPECT_EQ(axis_ticks(0, 1, Scale::linear, 5), (Numbers{0, 0.5, 1}));
  EXPECT_EQ(axis_ticks(-0.35, 0.31, Scale::linear, 7), (Numbers{-0.3, -0.2, -0.1, 0, 0.1, 0.2, 0.3}));
  EXPECT_EQ(axis_ticks(3.21, 3.43, Scale::linear, 3), (Numbers{3.3, 3.4}));
  EXPECT_EQ(axis_ticks(0, 3000, Scale::linear, 8), (Numbers{0, 500, 1000, 1500, 2000, 2500, 3000}));
  for (const double size : {1e-200, 1e-7, 0.3, 47.0, 1e12, 1e200}) {
    for (std::size_t most = 2; most < 12; ++most) {
      const Numbers ticks = axis_ticks(-0.7 * size, size, Scale::linear, most);
      EXPECT_GE(ticks.size(), 1u);
      EXPECT_LE(ticks.size(), most);
      EXPECT_NE(std::find(ticks.begin(), ticks.end(), 0.0), ticks.end());
    }
  }
}

TEST(AxisTicks, OfALogAxisAreDecades) {
  EXPECT_EQ(axis_ticks(1, 3000, Scale::log, 8), (Numbers{1, 10, 100, 1000}));
  EXPECT_EQ(axis_ticks(1e-5, 0.1, Scale::log, 8), (Numbers{1e-5, 1e-4, 1e-3, 1e-2, 1e-1}));
  EXPECT_EQ(axis_ticks(1, 1e9, Scale::log, 4), (Numbers{1, 1e3, 1e6, 1e9}));
  EXPECT_EQ(axis_ticks(1, 60, Scale::log, 8), (Numbers{1, 2, 5, 10, 20, 50}));
  EXPECT_EQ(axis_ticks(3.1, 3.9, Scale::log, 5), (Numbers{3.2, 3.4, 3.6, 3.8}));
}

TEST(AxisTicks, NoneWithoutARange) {
  EXPECT_TRUE(axis_ticks(1, 1, Scale::linear, 5).empty());
  EXPECT_TRUE(axis_ticks(2, 1, Scale::linear, 5).empty());
  EXPECT_TRUE(axis_ticks(kNan, 1, Scale::linear, 5).empty());
  EXPECT_TRUE(axis_ticks(0, kInf, Scale::linear, 5).empty());
  EXPECT_TRUE(axis_ticks(0, 1, Scale::log, 5).empty());
  EXPECT_TRUE(axis_ticks(0, 1, Scale::linear, 0).empty());
  EXPECT_TRUE(axis_ticks(1e15, 1e15 + 0.25, Scale::linear, 5).empty());
}

TEST(TickLabels, ReadAtAGlance) {
  EXPECT_EQ(tick_labels({0, 0.5, 1}, Scale::linear), (Texts{"0.0", "0.5", "1.0"}));
  EXPECT_EQ(tick_labels({-0.02, 0, 0.02}, Scale::linear), (Texts{"−0.02", "0.00", "0.02"}));
  EXPECT_EQ(tick_labels({0, 1000, 2000}, Scale::linear), (Texts{"0", "1000", "2000"}));
  EXPECT_EQ(tick_labels({0, 5000, 10000}, Scale::linear), (Texts{"0", "5k", "10k"}));
  EXPECT_EQ(tick_labels({500000, 1000000}, Scale::linear), (Texts{"0.5M", "1.0M"}));
  EXPECT_EQ(tick_labels({0, 2e-5, 4e-5}, Scale::linear), (Texts{"0", "2e-5", "4e-5"}));
  EXPECT_EQ(tick_labels({1e-5, 1e-4, 1e-3, 0.01, 1, 1e3, 1e4, 1e6, 1e9}, Scale::log),
            (Texts{"1e-5", "1e-4", "0.001", "0.01", "1", "1000", "10k", "1M", "1e9"}));
  EXPECT_EQ(reading(-0.0119, 0.08), "−0.012");
  EXPECT_EQ(reading(3.28412, 0.02), "3.2841");
  EXPECT_EQ(reading(-1e-9, 1), "0.00");
  EXPECT_EQ(reading(3.28412, 0), "3.28");
  EXPECT_EQ(reading(3.28412, 1e-300), "3.284120000000");
}

TEST(ChartText, BreaksBetweenWordsAndInsideLongOnes) {
  EXPECT_EQ(wrapped("", 10, 100), Texts{""});
  EXPECT_EQ(wrapped("one two three", 10, text_width("one two", 10)), (Texts{"one two", "three"}));
  const std::string dashes = "−−−−−−−−−−";  // three bytes each
  std::string joined;
  for (const std::string& line : wrapped(dashes, 10, 25)) {
    EXPECT_LE(text_width(line, 10), 25);
    EXPECT_EQ(line.size() % 3, 0u);
    joined += line;
  }
  EXPECT_EQ(joined, dashes);
}

TEST(Runs, BreakAtWhatCannotBeShown) {
  const ChartSeries s = series("a", {0, 1, 2, 3, 4, 5}, {1, kNan, 3, -1, 5, 6});
  EXPECT_EQ(visible(s, Scale::linear, Scale::linear, {0, 5}).size(), 2u);
  const auto log = visible(s, Scale::linear, Scale::log, {0, 5});
  ASSERT_EQ(log.size(), 3u);
  EXPECT_DOUBLE_EQ(log[1][0].y, std::log10(3));
  EXPECT_EQ(log[2].size(), 2u);
  EXPECT_EQ(visible(s, Scale::log, Scale::log, {0, 1}).size(), 2u);  // x = 0 left out, and x > 10
  EXPECT_DOUBLE_EQ(extent_of_x(s, Scale::log, Scale::log).low, std::log10(2));
}

TEST(Runs, AreCutAtTheShownPart) {
  const ChartSeries s = series("a", {0, 10, 20}, {0, 100, 0});
  const auto runs = visible(s, Scale::linear, Scale::linear, {5, 12});
  ASSERT_EQ(runs.size(), 1u);
  ASSERT_EQ(runs[0].size(), 3u);
  EXPECT_EQ(runs[0][0].x, 5);
  EXPECT_EQ(runs[0][0].y, 50);
  EXPECT_FALSE(runs[0][0].given);
  EXPECT_EQ(runs[0][1].y, 100);
  EXPECT_DOUBLE_EQ(runs[0][2].y, 80);
  const auto across = visible(s, Scale::linear, Scale::linear, {2, 3});
  ASSERT_EQ(across.size(), 1u);
  EXPECT_DOUBLE_EQ(across[0][1].y, 30);
}

TEST(Runs, OutlineKeepsTheExtremesOfNoise) {
  LineRun run;
  for (int i = 0; i < 50000; ++i) run.push_back({i / 50000.0, i == 31234 ? 1.0 : i % 2 * 0.5, kNan, kNan, true});
  const ChartAxis x{Scale::linear, {0, 1}, 0, 600, {}, {}}, y{Scale::linear, {0, 1}, 300, 0, {}, {}};
  const auto points = outline(run, &LineSample::y, x, y);
  EXPECT_LE(points.size(), 2500u);
  EXPECT_TRUE(std::any_of(points.begin(), points.end(), [](const SvgPoint& p) { return p.y == 0; }));
}

TEST(ChartText, SpreadKeepsOrderGapAndBounds) {
  EXPECT_EQ(spread({10, 50, 90}, 15, 0, 100), (Numbers{10, 50, 90}));
  EXPECT_EQ(spread({50, 50, 50}, 10, 0, 100), (Numbers{40, 50, 60}));
  EXPECT_EQ(spread({98, 99}, 10, 0, 100), (Numbers{90, 100}));
  EXPECT_EQ(spread({0, 1}, 10, 0, 100), (Numbers{0, 10}));
}

LineChart chart_of(ChartSeries one) {
  LineChart chart;
  chart.series = {std::move(one)};
  return chart;
}

TEST(FreeCorner, HidesNeitherLineNorBand) {
  const auto falls = [](double x) { return std::exp(-x); };
  const auto rises = [](double x) { return 1 - std::exp(-x); };
  const auto grows = [](double x) { return std::exp(x - 30); };
  for (const std::function<double(double)>& f :
       {std::function<double(double)>(falls), std::function<double(double)>(rises), std::function<double(double)>(grows)}) {
    LineChart chart = chart_of(series("a", {}, {}));
    ChartSeries& s = chart.series[0];
    for (int i = 0; i <= 3000; ++i) {
      s.x.push_back(i / 100.0);
      s.y.push_back(f(i / 100.0));
      s.low.push_back(0.9 * s.y.back());
      s.high.push_back(1.1 * s.y.back());
    }
    ChartPlot plot = make_plot(chart, {});
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
  LineChart chart = chart_of(series("a", {0, 1}, {0, 0}));
  chart.series[0].low = {0, 0};
  chart.series[0].high = {1, 1};
  ChartPlot plot = make_plot(chart, {});
  place(plot, {0, 0, 600, 300});
  EXPECT_FALSE(free_corner(plot));
}

}  // namespace chart_parts_test
}  // namespace cautious::report
