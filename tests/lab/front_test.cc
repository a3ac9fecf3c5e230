// Traced curves of minimisers against closed forms: where they are, which parts are Pareto-optimal, how far points are from
// them.
#include "lab/problem/minimisers.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>
#include <Eigen/Core>

#include <cautious/error.h>

#include "lab/numbers.h"

namespace cautious::lab {
namespace front_test {

using Eigen::Matrix2d;
using Eigen::Vector2d;

constexpr double kPi = std::numbers::pi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kAccuracy = 1e-4;

// A function of the plane with its derivatives.
struct Jet {
  double value;
  Vector2d gradient;
  Matrix2d hessian;
};

Jet product(const Jet& a, const Jet& b) {
  const Matrix2d mixed = a.gradient * b.gradient.transpose();
  return {a.value * b.value, a.value * b.gradient + b.value * a.gradient,
          a.value * b.hessian + b.value * a.hessian + mixed + mixed.transpose()};
}

Problem square_of(const std::function<Jet(Vector2d)>& residual) {
  const auto jet = [=](PointView x) {
    const Jet r = residual({x[0], x[1]});
    return product(r, r);
  };
  Problem made;
  made.start = {1, 1};
  made.value = [=](PointView x) { return jet(x).value; };
  made.gradient = [=](PointView x, std::span<double> g) { as_vector(g) = jet(x).gradient; };
  made.hessian = [=](PointView x, Matrix& h) { h = jet(x).hessian; };
  return made;
}

Jet circle(Vector2d p, Vector2d centre, double radius) {
  return {(p - centre).squaredNorm() - radius * radius, 2 * (p - centre), 2 * Matrix2d::Identity()};
}

Jet line(Vector2d p, Vector2d normal, double b) { return {normal.dot(p) - b, normal, Matrix2d::Zero()}; }

// The least distance to the points curve(t), first <= t <= last, of which `belongs` is true.
double least_distance(drawing::PlanePoint p, const std::function<drawing::PlanePoint(double)>& curve, double first, double last,
                      const std::function<bool(drawing::PlanePoint)>& belongs) {
  double least = kInfinity;
  for (double t = first; t <= last; t += 1e-4) {
    const drawing::PlanePoint q = curve(t);
    if (belongs(q)) least = std::min(least, std::hypot(p.x - q.x, p.y - q.y));
  }
  return least;
}

drawing::PlanePoint on_circle(double angle) { return {3 + std::cos(angle), 3 + std::sin(angle)}; }
drawing::PlanePoint on_parabola(double x) { return {x, 3 + (x - 3) * (x - 3)}; }

bool everywhere(drawing::PlanePoint) { return true; }

TEST(Front, OfTheCircleIsItsLowerLeftQuarter) {
  const FrontTrace trace = trace_minimisers(problem("circle"), 0, 6);
  ASSERT_EQ(trace.curves.size(), 1U);
  EXPECT_EQ(trace.curves[0].front().at.x, trace.curves[0].back().at.x);
  EXPECT_EQ(trace.curves[0].front().at.y, trace.curves[0].back().at.y);
  const auto local = [](drawing::PlanePoint p) { return (p.x - 3) * (p.y - 3) >= 0; };
  const auto global = [](drawing::PlanePoint p) { return p.x <= 3 && p.y <= 3; };
  Random random(1);
  for (int trial = 0; trial < 40; ++trial) {
    const drawing::PlanePoint p{random.uniform(0, 6), random.uniform(0, 6)};
    EXPECT_NEAR(to_minimisers(trace, p), std::abs(std::hypot(p.x - 3, p.y - 3) - 1), kAccuracy);
    EXPECT_NEAR(to_local_front(trace, p), least_distance(p, on_circle, 0, 2 * kPi, local), kAccuracy) << p.x << " " << p.y;
    EXPECT_NEAR(to_global_front(trace, p), least_distance(p, on_circle, 0, 2 * kPi, global), kAccuracy) << p.x << " " << p.y;
  }
}

TEST(Front, OfTheParabolaIsLeftOfTheVertex) {
  const FrontTrace trace = trace_minimisers(problem("parabola"), 0, 6);
  ASSERT_EQ(trace.curves.size(), 1U);
  EXPECT_NEAR(std::min(trace.curves[0].front().at.x, trace.curves[0].back().at.x), 3 - std::sqrt(3), 1e-5);
  EXPECT_NEAR(std::max(trace.curves[0].front().at.x, trace.curves[0].back().at.x), 3 + std::sqrt(3), 1e-5);
  const auto front = [](drawing::PlanePoint p) { return p.x <= 3; };
  Random random(2);
  for (int trial = 0; trial < 40; ++trial) {
    const drawing::PlanePoint p{random.uniform(0, 6), random.uniform(0, 6)};
    const double first = 3 - std::sqrt(3), last = 3 + std::sqrt(3);
    EXPECT_NEAR(to_minimisers(trace, p), least_distance(p, on_parabola, first, last, everywhere), kAccuracy);
    EXPECT_NEAR(to_local_front(trace, p), least_distance(p, on_parabola, first, last, front), kAccuracy) << p.x << " " << p.y;
    EXPECT_NEAR(to_global_front(trace, p), least_distance(p, on_parabola, first, last, front), kAccuracy) << p.x << " " << p.y;
  }
}

// Points of the trace are minimisers, and their labels are those of the quarters but for the very ends, where optimal needs a
// proof.
TEST(Front, LabelsOfTheCircleAreTrue) {
  constexpr double kEnd = 3e-5;
  const FrontTrace trace = trace_minimisers(problem("circle"), 0, 6);
  for (const FrontPoint& point : trace.curves.at(0)) {
    const double x = point.at.x - 3, y = point.at.y - 3;
    EXPECT_NEAR(std::hypot(x, y), 1, 1e-13);
    if (std::abs(x * y) > kEnd) {
      EXPECT_EQ(point.local == Pareto::optimal, x * y > 0) << x << " " << y;
      EXPECT_EQ(point.local == Pareto::beaten, x * y < 0) << x << " " << y;
      EXPECT_EQ(point.global, x < 0 && y < 0) << x << " " << y;
    } else {
      EXPECT_TRUE(point.local != Pareto::optimal || x * y > 0) << x << " " << y;
    }
  }
}

// The second circle stands in the first one's way: of its lower left quarter it beats what is right of and above one of its
// own.
TEST(Front, AnotherCurveBeatsAPartOfIt) {
  const Vector2d big(3, 3), small(1.5, 2.5);
  const FrontTrace trace =
      trace_minimisers(square_of([=](Vector2d p) { return product(circle(p, big, 1), circle(p, small, 0.25)); }), 0, 6);
  ASSERT_EQ(trace.curves.size(), 2U);
  const auto on_small = [=](double angle) {
    return drawing::PlanePoint{1.5 + 0.25 * std::cos(angle), 2.5 + 0.25 * std::sin(angle)};
  };
  // Its lower left quarter beats all with x >= 1.5 and y >= 2.25, so that 3 + sin(angle) < 2.25 is left of the big one's.
  const auto left = [](drawing::PlanePoint p) { return p.x <= 3 && p.y < 2.25; };
  const auto quarter = [](drawing::PlanePoint p) { return p.x <= 1.5 && p.y <= 2.5; };
  Random random(4);
  for (int trial = 0; trial < 40; ++trial) {
    const drawing::PlanePoint p{random.uniform(0, 6), random.uniform(0, 6)};
    const double truth =
        std::min(least_distance(p, on_circle, 0, 2 * kPi, left), least_distance(p, on_small, 0, 2 * kPi, quarter));
    EXPECT_NEAR(to_global_front(trace, p), truth, kAccuracy) << p.x << " " << p.y;
  }
}

// x1 + x2 = 1 in [-1, 2]^2 is optimal between the intercepts; parallels are curves of their own.
TEST(Front, OfLinesIsBetweenTheIntercepts) {
  const Vector2d normal(1, 1);
  const FrontTrace one = trace_minimisers(square_of([=](Vector2d p) { return line(p, normal, 1); }), -1, 2);
  ASSERT_EQ(one.curves.size(), 1U);
  EXPECT_NEAR(to_minimisers(one, {2, -1}), 0, 1e-5);
  EXPECT_NEAR(to_local_front(one, {2, -1}), std::sqrt(2), kAccuracy);
  EXPECT_NEAR(to_global_front(one, {2, -1}), std::sqrt(2), kAccuracy);
  EXPECT_NEAR(to_global_front(one, {0.5, 0.7}), 0.2 / std::sqrt(2), 1e-9);
  const FrontTrace two =
      trace_minimisers(square_of([=](Vector2d p) { return product(line(p, normal, 1), line(p, normal, 1.5)); }), -1, 2);
  ASSERT_EQ(two.curves.size(), 2U);
  EXPECT_NEAR(to_local_front(two, {0.75, 0.75}), 0, 1e-6);
  EXPECT_NEAR(to_global_front(two, {0.75, 0.75}), 0.5 / std::sqrt(2), 1e-6);
}

TEST(Front, AnIsolatedMinimiserIsAPointOfAllFronts) {
  const FrontTrace trace = trace_minimisers(problem("rosenbrock"), -2, 2);
  ASSERT_EQ(trace.curves.size(), 1U);
  ASSERT_EQ(trace.curves[0].size(), 1U);
  for (const auto& distance : {to_minimisers, to_local_front, to_global_front}) {
    EXPECT_NEAR(distance(trace, {1, 3}), 2, 1e-9);
  }
}

// The circle's middle is stationary, but no minimiser.
TEST(Front, OfASquareWithoutMinimisersIsEmpty) {
  const FrontTrace trace = trace_minimisers(problem("circle"), 2.8, 3.2);
  EXPECT_TRUE(trace.curves.empty());
  EXPECT_EQ(to_minimisers(trace, {1, 1}), kInfinity);
  EXPECT_EQ(to_global_front(trace, {1, 1}), kInfinity);
}

// Both axes, which cross in a point that is on neither curve's tangent; a walk must end, and cover them.
TEST(Front, CoversCurvesThatCross) {
  const FrontTrace trace = trace_minimisers(square_of([](Vector2d p) {
                                              return product(line(p, {1, 0}, 0), line(p, {0, 1}, 0));
                                            }),
                                            -1, 1.5);
  for (double t = -1; t <= 1.5; t += 0.01) {
    EXPECT_LT(to_minimisers(trace, {t, 0}), 1e-3) << t;
    EXPECT_LT(to_minimisers(trace, {0, t}), 1e-3) << t;
  }
}

TEST(Front, NeedsTwoVariables) { EXPECT_THROW(trace_minimisers(problem("least-squares"), 0, 1), Error); }

}  // namespace front_test
}  // namespace cautious::lab
