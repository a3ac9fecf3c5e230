// The SVG writer and what figures are made of: escaping, numbers, contours, simplified paths, places of labels.
#include "report/plane_figure.h"

#include <cmath>

#include <gtest/gtest.h>

#include "report/contour.h"
#include "report/label.h"

namespace cautious {
namespace {

TEST(Svg, EscapesAndRoundsNumbers) {
  EXPECT_EQ(svg_escape("a<b & \"c\">\x01"), "a&lt;b &amp; &quot;c&quot;&gt;?");
  EXPECT_EQ(svg_number(1.5), "1.5");
  EXPECT_EQ(svg_number(-0.001), "0");
  EXPECT_EQ(svg_number(100), "100");
  EXPECT_EQ(svg_path({{1, 2}, {3, 2}, {3, 5.126}}, Ends::closed), "M1 2l2 0l0 3.13z");
}

TEST(Svg, PrettyNumbers) {
  EXPECT_EQ(pretty(0), "0.00");
  EXPECT_EQ(pretty(0.414), "0.41");
  EXPECT_EQ(pretty(12.34), "12.3");
  EXPECT_EQ(pretty(4.2e-8), "4×10⁻⁸");
  EXPECT_EQ(pretty(9.7e-8), "1×10⁻⁷");
  EXPECT_EQ(pretty(3e12), "3×10¹²");
}

double area(const std::vector<SvgPoint>& loop) {
  double twice = 0;
  for (std::size_t i = 0; i < loop.size(); ++i) {
    const SvgPoint a = loop[i], b = loop[(i + 1) % loop.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return twice / 2;
}

TEST(Contour, LoopAroundAHillHasTheAreaOfItsDisc) {
  const ContourGrid grid({-2, -2, 2, 2}, 80, [](SvgPoint p) { return 1 - std::hypot(p.x, p.y); });
  const auto loops = grid.above(0);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_NEAR(std::abs(area(loops[0])), 3.14159, 0.01);
  for (const SvgPoint& p : loops[0]) EXPECT_NEAR(std::hypot(p.x, p.y), 1, 1e-3);
}

TEST(Contour, HighGroundAtTheRimIsClosedAndHolesTurnTheOtherWay) {
  const ContourGrid grid({-2, -2, 2, 2}, 40, [](SvgPoint p) { return std::hypot(p.x, p.y); });
  const auto loops = grid.above(1);
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_LT(area(loops[0]) * area(loops[1]), 0);
  EXPECT_TRUE(grid.above(10).empty());
}

TEST(Contour, SaddlesAreCutIntoLoops) {
  const ContourGrid grid({-1, -1, 1, 1}, 1, [](SvgPoint p) { return p.x * p.y; });
  EXPECT_EQ(grid.above(0.5).size(), 2u);
  EXPECT_EQ(grid.above(-0.5).size(), 1u);
}

TEST(Contour, SimplifiedKeepsCornersAndTolerance) {
  std::vector<SvgPoint> path;
  for (int i = 0; i <= 100; ++i) path.push_back({i / 10.0, i % 2 * 0.01});
  path.push_back({10, 5});
  const auto kept = simplified(path, 0.05);
  ASSERT_EQ(kept.size(), 3u);
  EXPECT_EQ(kept[1].x, 10);
}

TEST(Label, StaysInsideAndApart) {
  LabelPlanner planner({0, 0, 200, 100});
  const auto first = planner.place({195, 50}, "Adam", 12, 8), second = planner.place({195, 52}, "AdamW", 12, 8);
  for (const auto& place : {first, second}) {
    EXPECT_GE(place.space.left, 0);
    EXPECT_LE(place.space.right, 200);
  }
  EXPECT_TRUE(first.space.bottom <= second.space.top || second.space.bottom <= first.space.top ||
              first.space.right <= second.space.left || second.space.right <= first.space.left);
}

TEST(PlaneFigure, OneAndTwoPanels) {
  PlanePanel panel;
  panel.id = "a";
  panel.title = "A & B";
  panel.height = [](PlanePoint p) { return p.x; };
  panel.paths = {{Series::disc, "<one>", {{0.1, 0.1}, {0.9, 0.5}}, {"1"}}};
  PlaneFigure figure;
  figure.columns = {{"f", 1}};
  figure.panels = {panel};
  const std::string one = to_svg(figure);
  EXPECT_NE(one.find("A &amp; B"), std::string::npos);
  EXPECT_NE(one.find("&lt;one&gt;"), std::string::npos);
  panel.id = "b";
  figure.panels.push_back(panel);
  EXPECT_NE(to_svg(figure).find("clip-b"), std::string::npos);
  EXPECT_EQ(one.find("clip-b"), std::string::npos);
}

}  // namespace
}  // namespace cautious
