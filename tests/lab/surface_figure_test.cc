// A surface and the paths on it: the projection, what hides what, places of markers and moving paths, heights that are none.
#include <cmath>
#include <limits>
#include <numbers>

#include "lab/drawing/surface_block.h"
#include "svg_reading.h"

namespace cautious::lab::drawing {
namespace surface_figure_test {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr report::Rectangle kArea{100, 50, 700, 450};

double radians(double degrees) { return degrees * std::numbers::pi / 180; }

// A bump in the middle of the unit square that is nearly nothing at its rim.
double bump(PlanePoint p) { return std::exp(-40 * ((p.x - 0.5) * (p.x - 0.5) + (p.y - 0.4) * (p.y - 0.4))); }

SurfaceFigure figure_of(std::function<double(PlanePoint)> height) {
  SurfaceFigure figure;
  figure.title = "A & B";
  figure.description = "none";
  figure.height = std::move(height);
  figure.height_label = "f";
  return figure;
}

PlanePath line(std::size_t series, PlanePoint from, PlanePoint to, int steps) {
  PlanePath path{series, "<one>", {}, {}};
  for (int i = 0; i <= steps; ++i) {
    path.points.push_back({std::lerp(from.x, to.x, 1.0 * i / steps), std::lerp(from.y, to.y, 1.0 * i / steps)});
  }
  return path;
}

TEST(SurfaceView, AxesPointWhereTheReaderStands) {
  const auto offset = [](const SurfaceView& view, BlockPoint to) {
    const report::SvgPoint a = view.page({0, 0, 0}), b = view.page(to);
    return report::SvgPoint{b.x - a.x, b.y - a.y};
  };
  const SurfaceView from_x(kArea, 0, 0), from_y(kArea, 90, 0), above(kArea, 0, 90);
  EXPECT_NEAR(offset(from_x, {1, 0, 0}).x, 0, 1e-9);
  EXPECT_NEAR(offset(from_x, {1, 0, 0}).y, 0, 1e-9);
  EXPECT_GT(offset(from_x, {0, 1, 0}).x, 100);
  EXPECT_LT(offset(from_x, {0, 0, kTall}).y, -100);
  EXPECT_LT(offset(from_y, {1, 0, 0}).x, -100);
  EXPECT_NEAR(offset(above, {0, 0, kTall}).y, 0, 1e-9);
  EXPECT_GT(offset(above, {1, 0, 0}).y, 100);
}

// Page and nearness together are a rotation: they keep the lengths and the right angles of the block.
TEST(SurfaceView, IsARotationSeenFromAfar) {
  for (const double azimuth : {-135.0, -20.0, 0.0, 32.0, 90.0, 200.0}) {
    for (const double elevation : {5.0, 46.0, 90.0}) {
      const SurfaceView view(kArea, azimuth, elevation);
      const report::SvgPoint zero = view.page({0, 0, 0});
      std::vector<std::vector<double>> axes;
      for (const BlockPoint axis : {BlockPoint{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}) {
        const report::SvgPoint p = view.page(axis);
        axes.push_back({p.x - zero.x, p.y - zero.y, view.nearness(axis)});
      }
      // Lengths on the page are in units of the scale: that of all three axes together is sqrt 2.
      double squares = 0;
      for (const auto& axis : axes) squares += axis[0] * axis[0] + axis[1] * axis[1];
      const double scale = std::sqrt(squares / 2);
      for (std::size_t i = 0; i < 3; ++i) {
        for (std::size_t k = 0; k < 3; ++k) {
          const double product =
              (axes[i][0] * axes[k][0] + axes[i][1] * axes[k][1]) / (scale * scale) + axes[i][2] * axes[k][2];
          EXPECT_NEAR(product, i == k ? 1 : 0, 1e-9) << azimuth << " " << elevation;
        }
      }
    }
  }
}

TEST(SurfaceView, TheBlockFillsTheArea) {
  for (const double azimuth : {-120.0, 10.0, 32.0}) {
    const SurfaceView view(kArea, azimuth, 40);
    double left = kInf, right = -kInf, top = kInf, bottom = -kInf;
    for (int corner = 0; corner < 8; ++corner) {
      const report::SvgPoint p = view.page({1.0 * (corner & 1), 1.0 * (corner >> 1 & 1), kTall * (corner >> 2)});
      left = std::min(left, p.x);
      right = std::max(right, p.x);
      top = std::min(top, p.y);
      bottom = std::max(bottom, p.y);
    }
    EXPECT_GE(left, kArea.left - 1e-9);
    EXPECT_LE(right, kArea.right + 1e-9);
    EXPECT_NEAR(left - kArea.left, kArea.right - right, 1e-9);
    EXPECT_NEAR(top - kArea.top, kArea.bottom - bottom, 1e-9);
    EXPECT_TRUE(std::abs(left - kArea.left) < 1e-9 || std::abs(top - kArea.top) < 1e-9);
  }
}

TEST(SurfaceGrid, BetweenItsLinesAndAlongTheBox) {
  SurfaceFigure figure = figure_of([](PlanePoint p) { return 2 * p.x + p.y + p.x * p.y; });
  figure.low = -1;
  figure.high = 2;
  figure.box = PlaneBox{0.777, ""};
  const SurfaceGrid grid(figure);
  EXPECT_DOUBLE_EQ(grid.bottom(), -2);
  EXPECT_DOUBLE_EQ(grid.top(), 10);
  for (const double u : {0.0, 0.013, 0.5, 0.7777, 1.0}) {
    for (const double v : {0.0, 0.3, 0.99, 1.0}) {  // bilinear, so exact between the lines too
      const double x = 3 * u - 1, y = 3 * v - 1;
      EXPECT_NEAR(grid.w(u, v), kTall * (2 * x + y + x * y + 2) / 12, 1e-12);
    }
  }
  int on_edges = 0;
  for (std::size_t i = 0; i <= grid.cells(); ++i) on_edges += std::abs(std::abs(3 * grid.corner(i, 0).u - 1) - 0.777) < 1e-12;
  EXPECT_EQ(on_edges, 2);
}

// A wall along y in the middle: what is behind it is hidden as far as the wall's shadow, seen from the reader, reaches.
TEST(SurfaceView, AWallHidesItsShadow) {
  const auto wall = [](PlanePoint p) { return std::exp(-std::pow((p.x - 0.5) / 0.02, 2)); };
  const SurfaceGrid grid(figure_of(wall));
  for (const double elevation : {20.0, 45.0, 60.0, 75.0}) {
    const SurfaceView front(kArea, 0, elevation), back(kArea, 180, elevation);
    const double shadow = kTall / std::tan(radians(elevation));
    for (double away = 0.08; away < 0.5; away += 0.01) {
      if (std::abs(away - shadow) < 0.06) continue;  // the wall is not quite thin
      EXPECT_EQ(front.hidden(grid, {0.5 - away, 0.5, 0}), away < shadow) << elevation << " " << away;
      EXPECT_FALSE(front.hidden(grid, {0.5 + away, 0.5, 0}));
      EXPECT_EQ(back.hidden(grid, {0.5 + away, 0.5, 0}), away < shadow);
    }
    EXPECT_FALSE(front.hidden(grid, {0.5, 0.5, kTall}));
  }
}

bool inside(const SvgShape& shape, report::SvgPoint p) {
  bool odd = false;
  for (std::size_t i = 0; i < shape.points.size(); ++i) {
    const report::SvgPoint a = shape.points[i], b = shape.points[(i + 1) % shape.points.size()];
    if ((a.y > p.y) != (b.y > p.y) && p.x < a.x + (p.y - a.y) / (b.y - a.y) * (b.x - a.x)) odd = !odd;
  }
  return odd;
}

// What is drawn last over a place of the page is what a ray from the reader meets first. Oracle: the ray on the function
// itself.
TEST(SurfaceFigure, TheNearestIsDrawnLast) {
  for (const double azimuth : {20.0, 92.0, 215.0, 272.0}) {
    SurfaceFigure figure = figure_of(bump);
    figure.azimuth = azimuth;
    figure.elevation = 25;
    std::vector<SvgShape> skin;
    for (SvgShape& shape : shapes(to_svg(figure))) {
      if (shape.classes[0] == 'g' && std::isdigit(shape.classes[1])) skin.push_back(std::move(shape));
    }
    ASSERT_GT(skin.size(), 500u);
    int compared = 0, behind = 0;
    for (int i = 1; i < 400; ++i) {
      const PlanePoint p{std::fmod(i * 0.754877666, 1), std::fmod(i * 0.569840291, 1)};  // evenly over the square
      const double across = std::cos(radians(azimuth)), along = std::sin(radians(azimuth)), rise = std::tan(radians(25));
      PlanePoint seen = p;
      for (double far = 1.5; far > 0; far -= 5e-4) {
        const PlanePoint q{p.x + far * across, p.y + far * along};
        if (q.x < 0 || q.x > 1 || q.y < 0 || q.y > 1 || bump(q) * kTall < bump(p) * kTall + far * rise) continue;
        seen = q;
        break;
      }
      // Where the ray only grazes the surface, the drawn one with its flat pieces may lie on its other side.
      const double step = 0.01;
      const double ahead = bump({seen.x + step * across, seen.y + step * along});
      const double back = bump({seen.x - step * across, seen.y - step * along});
      if (std::abs(kTall * (ahead - back) / (2 * step) - rise) < 0.15) continue;
      behind += std::hypot(seen.x - p.x, seen.y - p.y) > 0.1;
      PlanePath at{0, "", {p}, {}};
      figure.paths = {at};
      const report::SvgPoint page = moving_paths(figure)[0].points[0];
      const SvgShape* top = nullptr;
      for (const SvgShape& shape : skin) {
        if (inside(shape, page)) top = &shape;
      }
      if (top == nullptr) continue;  // on the rim
      ++compared;
      const double level = std::stoi(top->classes.substr(1)) / kMeshShades + 0.5;
      EXPECT_NEAR(level, bump(seen) * kMeshLevels, 2.6) << p.x << " " << p.y << " " << azimuth;
    }
    EXPECT_GT(compared, 370);
    EXPECT_GT(behind, 10);
  }
}

TEST(SurfaceFigure, MovingPathsEndAtTheMarkers) {
  SurfaceFigure figure = figure_of(bump);
  for (std::size_t i = 0; i < 8; ++i) {
    figure.paths.push_back(line(i, {0.1, 0.9}, {0.2 + 0.1 * static_cast<double>(i), 0.3}, 50 + 700 * static_cast<int>(i)));
  }
  const std::string svg = to_svg(figure);
  const std::vector<MovingPath> moving = moving_paths(figure);
  ASSERT_EQ(moving.size(), 8u);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_EQ(moving[i].series, i);
    EXPECT_EQ(moving[i].steps, 50 + 700 * i);
    EXPECT_EQ(moving[i].points.size(), std::min<std::size_t>(400, 51 + 700 * i));
    std::vector<SvgShape> marks = shapes(svg, "mark s" + std::to_string(i));
    for (SvgShape& mark : shapes(svg, "mark behind s" + std::to_string(i))) marks.push_back(std::move(mark));
    ASSERT_EQ(marks.size(), 1u);
    EXPECT_NEAR(middle(marks[0]).x, moving[i].points.back().x, 0.05);
    EXPECT_NEAR(middle(marks[0]).y, moving[i].points.back().y, 0.05);
    EXPECT_EQ(shapes(svg, "mark key s" + std::to_string(i)).size(), 1u);
  }
  const report::SvgPoint size = page_size(figure);
  EXPECT_NE(svg.find("viewBox=\"0 0 " + report::svg_number(size.x) + " " + report::svg_number(size.y) + "\""),
            std::string::npos);
}

TEST(SurfaceFigure, HiddenPartsOfAPathAreFaint) {
  SurfaceFigure figure = figure_of(bump);
  figure.azimuth = 0;
  figure.elevation = 15;
  figure.paths = {line(2, {0.2, 0.05}, {0.2, 0.95}, 200)};  // behind the bump in its middle
  const std::string svg = to_svg(figure);
  EXPECT_EQ(shapes(svg, "path behind s2").size() + shapes(svg, "path s2 behind").size(), 1u);
  EXPECT_EQ(shapes(svg, "path s2").size(), 2u);
  figure.azimuth = 180;
  EXPECT_EQ(shapes(to_svg(figure), "path s2").size(), 1u);
}

TEST(SurfaceFigure, TheBoxHasItsOwnColour) {
  const auto in_box = [](const SurfaceFigure& figure) {
    std::size_t green = 0, all = 0;
    for (const SvgShape& shape : shapes(to_svg(figure))) {
      if (!std::isdigit(shape.classes[1])) continue;
      ++all;
      green += shape.classes[0] == 'b';
    }
    return static_cast<double>(green) / static_cast<double>(all);
  };
  SurfaceFigure figure = figure_of(bump);
  EXPECT_EQ(in_box(figure), 0);
  figure.box = PlaneBox{0.5, "box"};
  EXPECT_GT(in_box(figure), 0.1);
  EXPECT_LT(in_box(figure), 0.5);
  figure.box = PlaneBox{7, "box"};
  EXPECT_EQ(in_box(figure), 1);
  figure.low = 8;
  figure.high = 9;
  EXPECT_EQ(in_box(figure), 0);
}

TEST(SurfaceFigure, SmallEnoughForAPage) {
  SurfaceFigure figure = figure_of([](PlanePoint p) {
    const double off = (p.x - 3) * (p.x - 3) + (p.y - 3) * (p.y - 3) - 1;
    return std::log1p(off * off);
  });
  figure.high = 5.7;
  figure.box = PlaneBox{2, "|x|, |y| ≤ 1/λ"};
  for (std::size_t i = 0; i < 8; ++i) figure.paths.push_back(line(i, {1, 5}, {0.5 * static_cast<double>(i), 0.5}, 4000));
  const std::string svg = to_svg(figure);
  expect_well_formed(svg);
  EXPECT_LT(svg.size(), 600'000u);
  EXPECT_NE(svg.find("A &amp; B"), std::string::npos);
  EXPECT_EQ(count(svg, "&lt;one&gt;</text>"), 8u);
}

TEST(SurfaceFigure, ExtremeInput) {
  const std::vector<std::function<double(PlanePoint)>> heights{
      [](PlanePoint) { return 3.0; },
      [](PlanePoint) { return kNan; },
      [](PlanePoint) { return -kInf; },
      [](PlanePoint p) { return p.x < 0.5 ? kInf : p.y; },
      [](PlanePoint p) { return p.x * p.y < 0.2 ? kNan : p.y; },
      [](PlanePoint p) { return p.x < 0.5 ? 1.7e308 : -1.7e308; },
      [](PlanePoint p) { return 1e-300 * p.x; },
  };
  for (std::size_t i = 0; i < heights.size(); ++i) {
    SCOPED_TRACE(i);
    SurfaceFigure figure = figure_of(heights[i]);
    figure.box = PlaneBox{0.3, "box"};
    figure.curves = {{CurveStyle::thin, "one", {{0.5, 0.5}}},
                     {CurveStyle::band, "none", {}},
                     {CurveStyle::dotted, "far", {{-9, 0}, {9, 1}}}};
    figure.paths = {{0, "resting", {{0.4, 0.4}}, {}},
                    {9, "lost", {{0.4, 0.4}, {kNan, 1}, {kInf, kInf}}, {}},
                    {2, "leaving", {{0.4, 0.4}, {1e300, -1e300}}, {}},
                    {3, "never there", {{kNan, kNan}}, {}}};
    for (const double azimuth : {0.0, 90.0, 180.0, -135.0}) {
      for (const double elevation : {1.0, 90.0}) {
        figure.azimuth = azimuth;
        figure.elevation = elevation;
        expect_well_formed(to_svg(figure));
        const report::SvgPoint size = page_size(figure);
        for (const MovingPath& path : moving_paths(figure)) {
          EXPECT_EQ(path.points.size(), path.steps + 1);
          for (const report::SvgPoint& p : path.points) {
            EXPECT_TRUE(p.x > 0 && p.x < size.x && p.y > 0 && p.y < size.y);
          }
        }
      }
    }
    const std::vector<MovingPath> moving = moving_paths(figure);
    EXPECT_EQ(moving[1].points[2].x, moving[1].points[0].x) << "stays where it was last seen";
  }
}

}  // namespace surface_figure_test
}  // namespace cautious::lab::drawing
