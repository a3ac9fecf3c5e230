// The integrator of differential inclusions on relays and linear systems with solutions in closed form.
#include "lab/dynamics/inclusion.h"

#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <Eigen/Core>

#include <cautious/error.h>

#include "inclusion_fixture.h"
#include "lab/dynamics/sliding.h"

namespace cautious::lab {
namespace inclusion_test {

using Eigen::MatrixXd;
using Eigen::Vector2d;
using Eigen::VectorXd;

Inclusion scalar_relay(double a, double b) {
  return relay(VectorXd::Constant(1, a), MatrixXd::Constant(1, 1, b), MatrixXd::Ones(1, 1));
}

// Without switches: z' = a z.
Inclusion linear(const MatrixXd& a) {
  Inclusion made = relay(VectorXd::Zero(a.rows()), MatrixXd(a.rows(), 0), MatrixXd(0, a.rows()));
  made.field = [a](double, PointView z, PointView, std::span<double> dz) { as_vector(dz) = a * as_vector(z); };
  return made;
}

const FlowPoint* first_sliding(const Trajectory& trajectory) {
  for (const FlowPoint& point : trajectory.points) {
    if (slides(point)) return &point;
  }
  return nullptr;
}

TEST(Inclusion, RelayReachesItsSurfaceInKnownTimeAndSlides) {
  // x' = 0.3 - sgn(x): at 0 after 1/0.7, held there by the side 0.3.
  const Trajectory found = flow(scalar_relay(0.3, -1), {1}, {.t_end = 3});
  const FlowPoint* slid = first_sliding(found);
  ASSERT_NE(slid, nullptr);
  EXPECT_NEAR(slid->t, 1 / 0.7, 1e-12);
  EXPECT_NEAR(slid->side[0], 0.3, 1e-12);
  EXPECT_EQ(found.events, 1u);
  EXPECT_NEAR(found.points.back().z[0], 0, 1e-13);
  EXPECT_TRUE(found.points.back().sliding[0]);
}

TEST(Inclusion, CrossesWhereTheOtherSideLeadsOn) {
  // x' = -1.3 - sgn(x): -2.3 above 0, -0.3 below.
  const Trajectory found = flow(scalar_relay(-1.3, -1), {1}, {.t_end = 3});
  ASSERT_EQ(found.events, 1u);
  EXPECT_EQ(first_sliding(found), nullptr);
  EXPECT_NEAR(found.points.back().z[0], -0.3 * (3 - 1 / 2.3), 1e-12);
  std::size_t at_event = 0;
  for (const FlowPoint& point : found.points) {
    if (std::abs(point.t - 1 / 2.3) > 1e-13) continue;
    EXPECT_EQ(point.side[0], at_event++ == 0 ? 1 : -1);
  }
  EXPECT_EQ(at_event, 2u) << "an event appears before and after";
}

TEST(Inclusion, LeavesASurfaceThatRepels) {
  const Trajectory found = flow(scalar_relay(0.1, 1), {0}, {.t_end = 1});
  EXPECT_EQ(first_sliding(found), nullptr);
  EXPECT_NEAR(found.points.back().z[0], 1.1, 1e-12);
}

TEST(Inclusion, PlanarRelaysSlideOnOneSurfaceThenOnBoth) {
  // Above both: z' = (-1, -1.4). On z2 = 0: side -0.4, z1' = -0.58. On both: the sides solve C side = -a.
  MatrixXd c(2, 2);
  c << -1, -0.3, -0.2, -1;
  const double inverse = 1 / (c(0, 0) * c(1, 1) - c(0, 1) * c(1, 0));
  const Vector2d a(0.3, -0.2);
  const Trajectory found = flow(relay(a, c, MatrixXd::Identity(2, 2)), {1, 0.5}, {.t_end = 3});
  const double first = 0.5 / 1.4, second = first + (1 - first) / 0.58;
  std::size_t ones = 0, both = 0;
  for (const FlowPoint& point : found.points) {
    if (!point.sliding[1]) continue;
    const bool is_both = point.sliding[0];
    ++(is_both ? both : ones);
    EXPECT_NEAR(point.z[0], is_both ? 0 : 1 - first - 0.58 * (point.t - first), 1e-11) << point.t;
    EXPECT_NEAR(point.z[1], 0, 1e-12);
    EXPECT_GE(point.t, (is_both ? second : first) - 1e-11);
    const Vector2d sides(inverse * (c(0, 1) * a[1] - c(1, 1) * a[0]), inverse * (c(1, 0) * a[0] - c(0, 0) * a[1]));
    EXPECT_NEAR(point.side[1], is_both ? sides[1] : -0.4, 1e-11);
    if (is_both) {
      EXPECT_NEAR(point.side[0], sides[0], 1e-11);
    }
  }
  EXPECT_GE(ones, 2u);
  EXPECT_GE(both, 2u);
  EXPECT_EQ(found.points.back().t, 3);
}

TEST(Inclusion, TwoSurfacesMetAtOnceAreLeftOnOne) {
  // Through the corner from (1, 1): a side of switch 1 can hold it, switch 2 is crossed.
  MatrixXd c(2, 2);
  c << -1, 0, 0, -1;
  const Trajectory found = flow(relay(Vector2d(-1, -3) / 2, c, MatrixXd::Identity(2, 2)), {0.6, 1}, {.t_end = 2});
  const FlowPoint& end = found.points.back();
  EXPECT_NEAR(end.z[0], 0, 1e-12);
  EXPECT_NEAR(end.z[1], -0.5 * (2 - 1 / 2.5), 1e-11);
  EXPECT_NEAR(end.side[0], -0.5, 1e-12);
  EXPECT_EQ(end.side[1], -1);
}

// z1' = 1, z2' = z1 - side: z2 = 0 holds while |z1| <= 1 and is left as (z1 - 1)^2 / 2.
TEST(Inclusion, SlidingEndsWhereTheSideReachesItsBound) {
  Inclusion ramp = relay(Vector2d::Zero(), MatrixXd::Zero(2, 1), MatrixXd::Identity(2, 2).row(1));
  ramp.field = [](double, PointView z, PointView side, std::span<double> dz) {
    dz[0] = 1;
    dz[1] = z[0] - side[0];
  };
  const Trajectory found = flow(ramp, {0, 0}, {.t_end = 2});
  std::size_t slid = 0;
  for (const FlowPoint& point : found.points) {
    if (slides(point)) {
      ++slid;
      EXPECT_NEAR(point.side[0], point.t, 1e-6);
      EXPECT_LE(point.t, 1 + 1e-6);
    } else if (point.t > 1 + 1e-6) {
      EXPECT_NEAR(point.z[1], std::pow(point.t - 1, 2) / 2, 1e-9);
    }
  }
  EXPECT_GE(slid, 3u);
  EXPECT_EQ(found.events, 1u);
  EXPECT_NEAR(found.points.back().z[1], 0.5, 1e-9);
}

// q = cos(t) + 0.995 is below 0 for 0.2 of each turn of 6.28; the field does not care, the sides must.
TEST(Inclusion, LocatesShortVisitsToTheOtherSide) {
  const double dip = std::acos(-0.995);
  MatrixXd turn(2, 2);
  turn << 0, -1, 1, 0;
  Inclusion rotation = relay(Vector2d::Zero(), MatrixXd::Zero(2, 1), MatrixXd::Identity(2, 2).row(0));
  rotation.field = [turn](double, PointView z, PointView, std::span<double> dz) { as_vector(dz) = turn * as_vector(z); };
  rotation.indicator = rotation.drive = [](PointView z, std::span<double> q) { q[0] = z[0] + 0.995; };
  const Trajectory found = flow(rotation, {1, 0}, {.t_end = 20, .relative = 1e-10, .absolute = 1e-12});
  std::vector<double> times;
  for (std::size_t k = 1; k < found.points.size(); ++k) {
    if (found.points[k].side != found.points[k - 1].side) times.push_back(found.points[k].t);
  }
  ASSERT_EQ(times.size(), 6u);
  for (std::size_t k = 0; k < 6; ++k) {
    const double turns = 2 * M_PI * static_cast<double>(k / 2);
    EXPECT_NEAR(times[k], turns + (k % 2 == 0 ? dip : 2 * M_PI - dip), 1e-7);
  }
}

TEST(Inclusion, SmoothSystemsFollowTheMatrixExponential) {
  MatrixXd a(3, 3);
  a << -0.5, 2, 0, -2, -0.5, 0.3, 0.1, 0, -1;
  const double t_end = 6, step = 0.1;
  VectorXd exact(3);
  exact << 1, -1, 2;
  for (int i = 0; i < 60; ++i) {  // exp(step a) by its series
    VectorXd term = exact;
    for (int k = 1; k <= 20; ++k) {
      term = a * term * (step / k);
      exact += term;
    }
  }
  double last = std::numeric_limits<double>::infinity();
  for (const double tolerance : {1e-4, 1e-6, 1e-8, 1e-10}) {
    const Trajectory found = flow(linear(a), {1, -1, 2}, {.t_end = t_end, .relative = tolerance, .absolute = tolerance});
    const double error = (as_vector(PointView(found.points.back().z)) - exact).norm();
    EXPECT_LT(error, 20 * tolerance);
    EXPECT_LT(error, last / 20) << "a hundredth of the tolerance";
    EXPECT_EQ(found.points.back().t, t_end);
    EXPECT_EQ(found.events, 0u);
    EXPECT_EQ(found.points.size(), found.steps + 1);
    last = error;
  }
}

TEST(Inclusion, StopsWhereItIsTold) {
  const Trajectory before = flow(scalar_relay(0.3, -1), {1}, {.t_end = 3, .may_slide = false});
  EXPECT_EQ(before.end, FlowEnd::slide);
  EXPECT_NEAR(before.points.back().t, 1 / 0.7, 1e-12);
  EXPECT_FALSE(slides(before.points.back()));

  // m' = x - m, x' = -m - sgn(m): swings about 0.
  const Inclusion swinging = cautious_flow(Kind::sgdm, line(0), 0.5);
  const Trajectory few = flow(swinging, {3, 1, 0, 0}, {.t_end = 20, .most_events = 7});
  EXPECT_EQ(few.end, FlowEnd::events);
  EXPECT_EQ(few.events, 7u);
  EXPECT_LT(few.points.back().t, 20);

  const Trajectory late = flow(scalar_relay(0.3, -1), {1}, {.t_begin = 5, .t_end = 5.5});
  EXPECT_EQ(late.points.front().t, 5);
  EXPECT_EQ(late.points.back().t, 5.5);
  EXPECT_NEAR(late.points.back().z[0], 1 - 0.35, 1e-12);
  EXPECT_EQ(late.end, FlowEnd::time);
}

TEST(Inclusion, FindsTheFirstOfManyEvents) {
  EventSearch search;
  const auto first = [&](auto one, auto other) {
    return search.first(
        [&](double t, std::vector<double>& values, std::vector<double>& slacks) {
          values = {one(t), other(t)};
          slacks = {0, 0};
        },
        0, 1, [] {});
  };
  // The second is below 0 from 0.05 to 0.22 only: above it where the steps are looked at, below it where the first falls.
  const auto falls = [](double t) { return 0.2 - t; };
  const auto visits = [](double t) { return (t - 0.05) * (t - 0.22); };
  const auto early = first(falls, visits);
  ASSERT_TRUE(early);
  EXPECT_EQ(early->which, 1u);
  EXPECT_NEAR(early->t, 0.05, 1e-13);
  // Between two looks.
  const auto dip = first([](double) { return 1.0; }, [](double t) { return (t - 0.6) * (t - 0.6) - 1e-4; });
  ASSERT_TRUE(dip);
  EXPECT_NEAR(dip->t, 0.59, 1e-13);
  EXPECT_FALSE(first([](double) { return 1.0; }, [](double t) { return (t - 0.6) * (t - 0.6) + 1e-4; }));
  // From 0 up and down again, as after an event; and from 0 down at once.
  const auto hump = first([](double) { return 1.0; }, [](double t) { return t * (1e-3 - t); });
  ASSERT_TRUE(hump);
  EXPECT_NEAR(hump->t, 1e-3, 1e-13);
  const auto at_once = first([](double) { return 1.0; }, [](double t) { return -t; });
  ASSERT_TRUE(at_once);
  EXPECT_EQ(at_once->t, 0);
}

TEST(Inclusion, SaysWhereItCannotGoOn) {
  Inclusion blow_up = scalar_relay(0, 0);
  blow_up.field = [](double, PointView z, PointView, std::span<double> dz) { dz[0] = z[0] * z[0]; };  // z = 1 / (1 - t)
  EXPECT_THROW(flow(blow_up, {1}, {.t_end = 2}), Error);
}

TEST(Inclusion, RefusesStartsThatAreNone) {
  EXPECT_THROW(flow(scalar_relay(0, -1), {1, 2}, {}), Error);
  EXPECT_THROW(flow(scalar_relay(0, -1), {NAN}, {}), Error);
}

}  // namespace inclusion_test
}  // namespace cautious::lab
