// Interval charts: rows, whiskers, single runs, the reference line and the numbers beside them.
#include <cmath>
#include <limits>
#include <string>

#include <gtest/gtest.h>

#include "report/chart.h"

namespace cautious::report {
namespace interval_chart_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t n = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++n;
  return n;
}

// Of the attribute in the first element of that class.
double attribute(const std::string& svg, const std::string& style_class, const std::string& name) {
  const std::size_t element = svg.find("class=\"" + style_class + "\"");
  if (element == std::string::npos) return kNan;
  const std::string start = " " + name + "=\"";
  return std::stod(svg.substr(svg.find(start, element) + start.size()));
}

report::IntervalChart two_arms() {
  report::IntervalChart chart;
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
  report::IntervalChart chart = two_arms();
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
  report::IntervalChart chart = two_arms();
  for (report::IntervalEntry& entry : chart.entries) {
    entry.value = INFINITY;
    entry.points.clear();
  }
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, ">no data</text>"), 1u);
  EXPECT_EQ(count(svg, ">second</text>"), 1u);
  chart.entries.clear();
  EXPECT_EQ(count(to_svg(chart), ">no data</text>"), 1u);
}

TEST(IntervalChart, OneValueStillHasAnAxis) {
  report::IntervalChart chart;
  chart.entries = {{"only", 9, 3.25, kNan, kNan, {3.25}}};
  const std::string svg = to_svg(chart);
  EXPECT_EQ(count(svg, "class=\"mark s1\""), 1u);
  EXPECT_GE(count(svg, "class=\"tick\""), 2u);
  EXPECT_EQ(count(svg, "nan"), 0u);
}

}  // namespace interval_chart_test
}  // namespace cautious::report
