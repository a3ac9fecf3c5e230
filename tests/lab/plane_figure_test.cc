// What figures of paths are made of (contours, places of labels, paths that move), and figures of the plane.
#include <cmath>
#include <optional>
#include <set>

#include <nlohmann/json.hpp>

#include "lab/drawing/contour.h"
#include "lab/drawing/scene.h"
#include "report/chart.h"
#include "report/page.h"
#include "svg_reading.h"

namespace cautious::lab::drawing {
namespace plane_figure_test {

double area(const std::vector<report::SvgPoint>& loop) {
  double twice = 0;
  for (std::size_t i = 0; i < loop.size(); ++i) {
    const report::SvgPoint a = loop[i], b = loop[(i + 1) % loop.size()];
    twice += a.x * b.y - b.x * a.y;
  }
  return twice / 2;
}

TEST(Contour, LoopAroundAHillHasTheAreaOfItsDisc) {
  const ContourGrid grid({-2, -2, 2, 2}, 80, [](report::SvgPoint p) { return 1 - std::hypot(p.x, p.y); });
  const auto loops = grid.above(0);
  ASSERT_EQ(loops.size(), 1u);
  EXPECT_NEAR(std::abs(area(loops[0])), 3.14159, 0.01);
  for (const report::SvgPoint& p : loops[0]) EXPECT_NEAR(std::hypot(p.x, p.y), 1, 1e-3);
}

TEST(Contour, HighGroundAtTheRimIsClosedAndHolesTurnTheOtherWay) {
  const ContourGrid grid({-2, -2, 2, 2}, 40, [](report::SvgPoint p) { return std::hypot(p.x, p.y); });
  const auto loops = grid.above(1);
  ASSERT_EQ(loops.size(), 2u);
  EXPECT_LT(area(loops[0]) * area(loops[1]), 0);
  EXPECT_TRUE(grid.above(10).empty());
}

TEST(Contour, SaddlesAreCutIntoLoops) {
  const ContourGrid grid({-1, -1, 1, 1}, 1, [](report::SvgPoint p) { return p.x * p.y; });
  EXPECT_EQ(grid.above(0.5).size(), 2u);
  EXPECT_EQ(grid.above(-0.5).size(), 1u);
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

TEST(MovingPath, StepsAreEquallySpacedFromStartToEnd) {
  for (const std::size_t points : {1u, 2u, 399u, 400u, 401u, 4001u, 100'000u}) {
    const std::vector<std::size_t> steps = moving_steps(points);
    ASSERT_EQ(steps.size(), std::min<std::size_t>(points, 400));
    EXPECT_EQ(steps.front(), 0u);
    EXPECT_EQ(steps.back(), points - 1);
    for (std::size_t i = 1; i < steps.size(); ++i) {
      const double even = static_cast<double>((points - 1) * i) / static_cast<double>(steps.size() - 1);
      EXPECT_LE(std::abs(static_cast<double>(steps[i]) - even), 0.5);
    }
  }
}

TEST(MovingPath, AFigureBringsItsPathsToThePage) {
  SurfaceFigure surface;
  surface.title = "S";
  surface.height = [](PlanePoint p) { return p.x; };
  surface.paths = {{14, "</script>", {{0, 0}, {0.5, 0.5}, {1, 1}}, {}}};
  report::HtmlPage page("T");
  page.figure({"s", surface, ""});
  page.figure({"lines", report::LineChart{}, ""});
  page.figure({"intervals", report::IntervalChart{}, ""});
  const std::string text = page.finish(), start = "<script type=\"application/json\" class=\"paths\">";
  ASSERT_EQ(count(text, start), 1u);
  EXPECT_EQ(count(text, "<script type=\"application/json\" class=\"chart\">"), 1u);
  const std::size_t at = text.find(start) + start.size();
  const auto data = nlohmann::json::parse(text.substr(at, text.find("</script>", at) - at));
  const report::SvgPoint size = page_size(surface);
  EXPECT_NEAR(data["width"].get<double>(), size.x, 0.01);
  EXPECT_NEAR(data["height"].get<double>(), size.y, 0.01);
  ASSERT_EQ(data["paths"].size(), 1u);
  const auto& path = data["paths"][0];
  EXPECT_EQ(path["name"], "</script>");
  EXPECT_EQ(path["series"], 2);
  EXPECT_EQ(path["steps"], 2);
  const std::vector<MovingPath> moving = moving_paths(surface);
  ASSERT_EQ(path["points"].size(), 6u);
  EXPECT_NEAR(path["points"][4].get<double>(), moving[0].points[2].x, 0.01);
  EXPECT_NEAR(path["points"][5].get<double>(), moving[0].points[2].y, 0.01);
}

PlanePanel panel_of(std::string id, std::size_t paths) {
  PlanePanel panel;
  panel.id = std::move(id);
  panel.title = "A & B";
  panel.height = [](PlanePoint p) { return p.x; };
  for (std::size_t i = 0; i < paths; ++i) {
    panel.paths.push_back({i, "<one>", {{0.1, 0.1}, {0.9, 0.1 * static_cast<double>(i)}}, {"1"}});
  }
  return panel;
}

TEST(PlaneFigure, PrettyNumbers) {
  EXPECT_EQ(pretty(0), "0.00");
  EXPECT_EQ(pretty(0.414), "0.41");
  EXPECT_EQ(pretty(12.34), "12.3");
  EXPECT_EQ(pretty(4.2e-8), "4×10⁻⁸");
  EXPECT_EQ(pretty(9.7e-8), "1×10⁻⁷");
  EXPECT_EQ(pretty(3e12), "3×10¹²");
}

TEST(PlaneFigure, OneToThreePanels) {
  PlaneFigure figure;
  figure.title = "T";
  figure.note = "a note";
  figure.columns = {{"f", 1}};
  std::optional<double> width;
  for (const char* id : {"a", "b", "c"}) {
    figure.panels.push_back(panel_of(id, 8));
    const std::string svg = to_svg(figure);
    expect_well_formed(svg);
    EXPECT_NE(svg.find("A &amp; B"), std::string::npos);
    EXPECT_EQ(count(svg, "&lt;one&gt;"), 16 * figure.panels.size()) << "beside the end and in the table";
    EXPECT_EQ(count(svg, "<clipPath"), figure.panels.size());
    const report::SvgPoint size = page_size(figure);
    EXPECT_NE(svg.find("viewBox=\"0 0 " + report::svg_number(size.x) + " " + report::svg_number(size.y) + "\""),
              std::string::npos);
    EXPECT_NEAR(size.x, width.value_or(size.x), 0.1 * size.x) << "the type is about as large in all";
    width = size.x;
  }
}

TEST(PlaneFigure, EverySeriesHasItsColourAndMarker) {
  PlaneFigure figure;
  figure.columns = {{"f", 1}};
  figure.panels = {panel_of("a", 8)};
  const std::string svg = to_svg(figure);
  std::vector<std::size_t> corners;
  std::set<std::string> outlines;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::string series = "s" + std::to_string(i);
    EXPECT_EQ(count(svg, "class=\"path " + series + "\""), 1u);
    const auto marks = shapes(svg, "mark " + series);
    ASSERT_EQ(marks.size(), 1u);
    std::string outline;  // in whole points from its middle
    for (const report::SvgPoint& p : marks[0].points) {
      const report::SvgPoint at = middle(marks[0]);
      outline += std::to_string(std::lround(p.x - at.x)) + "," + std::to_string(std::lround(p.y - at.y)) + " ";
    }
    outlines.insert(outline);
    corners.push_back(marks[0].points.size());
  }
  EXPECT_EQ(outlines.size(), 8u);
  EXPECT_EQ(corners, (std::vector<std::size_t>{24, 4, 4, 3, 3, 12, 12, 5}));
}

TEST(PlaneFigure, MovingPathsEndAtTheMarkersAndStayInside) {
  PlaneFigure figure;
  figure.columns = {{"f", 1}};
  figure.panels = {panel_of("a", 2), panel_of("b", 2), panel_of("c", 2)};
  PlanePath& far = figure.panels[1].paths[1];
  far.points = {{0.5, 0.5}, {0.6, 40}, {NAN, INFINITY}};
  for (int i = 0; i < 1000; ++i) figure.panels[2].paths[0].points.push_back({0.2 + 0.0005 * i, 0.3});
  const std::string svg = to_svg(figure);
  expect_well_formed(svg);
  const std::vector<MovingPath> moving = moving_paths(figure);
  ASSERT_EQ(moving.size(), 6u);
  for (std::size_t i = 0; i < moving.size(); ++i) {
    const report::SvgPoint mark = middle(shapes(svg, "mark s" + std::to_string(moving[i].series))[i / 2]);
    EXPECT_NEAR(mark.x, moving[i].points.back().x, 0.05);
    EXPECT_NEAR(mark.y, moving[i].points.back().y, 0.05);
  }
  EXPECT_EQ(moving[3].steps, 2u);
  EXPECT_EQ(moving[3].points[1].y, moving[3].points[2].y) << "lost: it stays where it was last, at the rim";
  EXPECT_LT(moving[3].points[1].y, moving[3].points[0].y);
  EXPECT_EQ(moving[4].steps, 1001u);
  EXPECT_EQ(moving[4].points.size(), 400u);
}

TEST(PlaneFigure, SinglePointsAreRingsAndHeightsMayBeNone) {
  PlaneFigure figure;
  figure.columns = {{"f", 1}};
  figure.panels = {panel_of("a", 1)};
  figure.panels[0].curves = {{CurveStyle::band, "one", {{0.5, 0.5}}}, {CurveStyle::thin, "none", {}}};
  EXPECT_EQ(count(to_svg(figure), "class=\"band ring\""), 1u);
  figure.panels[0].height = [](PlanePoint p) { return p.x < 0.3 ? NAN : p.x < 0.6 ? INFINITY : p.y; };
  expect_well_formed(to_svg(figure));
  figure.panels[0].height = [](PlanePoint) { return 1.0; };
  EXPECT_EQ(count(to_svg(figure), "class=\"hill\""), 0u);
  figure.panels[0].paths.clear();
  expect_well_formed(to_svg(figure));
  EXPECT_TRUE(moving_paths(figure).empty());
}

}  // namespace plane_figure_test
}  // namespace cautious::lab::drawing
