// What is said about limits: the front's linear programs on points solved by hand, and gradients that vanish or do not.
#include <cmath>

#include <gtest/gtest.h>

#include "lab/dynamics/convergence.h"
#include "lab/dynamics/dynamics.h"

namespace cautious::lab {
namespace convergence_test {

// A point of the circle about (3, 3).
Stationary on_circle(double degrees) {
  const double angle = degrees * std::acos(-1.0) / 180;
  Stationary at;
  at.x = {3 + std::cos(angle), 3 + std::sin(angle)};
  at.tangent = Eigen::Vector2d(-std::sin(angle), std::cos(angle));
  return at;
}

// The arc from 180 to 270 degrees is the near front, that from 0 to 90 the far one; on the rest both coordinates can shrink.
TEST(FrontEnds, OnTheCircleTheAlternativesAreTheArcs) {
  for (const double degrees : {190.0, 225.0, 260.0, 10.0, 45.0, 80.0}) {
    EXPECT_LT(strict_shrinkage(on_circle(degrees)), kStrictly) << degrees;
    EXPECT_GT(normal_in_orthant(on_circle(degrees)), kStrictly) << degrees;
  }
  for (const double degrees : {100.0, 135.0, 170.0, 280.0, 315.0, 350.0}) {
    EXPECT_GT(strict_shrinkage(on_circle(degrees)), kStrictly) << degrees;
    EXPECT_LT(normal_in_orthant(on_circle(degrees)), kStrictly) << degrees;
  }
  EXPECT_LT(strict_shrinkage(on_circle(270)), kStrictly);  // the end of the front: one coordinate can
  EXPECT_NEAR(strict_shrinkage(on_circle(315)), std::sqrt(0.5), 1e-9);
}

// x1 + x2 - x3 = 1 at (1, 1, 1) and where a coordinate is 0.
TEST(FrontEnds, CoordinatesAtZeroStayThere) {
  Stationary at;
  at.tangent = Matrix(3, 2);
  at.tangent << 1 / std::sqrt(2.0), 1 / std::sqrt(6.0), -1 / std::sqrt(2.0), 1 / std::sqrt(6.0), 0, 2 / std::sqrt(6.0);
  at.x = {1, 1, 1};
  EXPECT_GT(strict_shrinkage(at), 0.1);  // (-1, -1, -2)
  at.x = {1, 1e-6, 1e-6};
  EXPECT_GT(strict_shrinkage(at), 0.1);
  EXPECT_LT(strict_shrinkage(at, 1e-3), kStrictly);  // x1 alone cannot move
  EXPECT_GT(normal_in_orthant(at, 1e-3), kStrictly);
  EXPECT_TRUE(is_transversal(at, 1e-3));
  at.x = {2, 1e-6, 1};
  EXPECT_GT(strict_shrinkage(at, 1e-3), 0.1);  // (-1, 0, -1)
  EXPECT_LT(normal_in_orthant(at, 1e-3), kStrictly);
  at.tangent.row(1).setZero();  // the second coordinate cannot move at all
  EXPECT_FALSE(is_transversal(at, 1e-3));
}

TEST(Fading, WhatNoLongerFallsStays) {
  EXPECT_EQ((Fading{.left = 0.009, .before = 0.5}).fade(), Fade::vanished);
  EXPECT_EQ((Fading{.left = 0.49, .before = 0.5}).fade(), Fade::stays);
  EXPECT_EQ((Fading{.left = 0.2, .before = 0.5}).fade(), Fade::undecided);
  EXPECT_EQ((Fading{.left = 0.2}).fade(), Fade::undecided);  // not followed on
  EXPECT_EQ((Fading{.left = 0.49, .before = 0.5, .cut = true}).fade(), Fade::undecided);
}

// f = (x - 1)^2 / 2 with lambda = 1: decoupled decay ends at 1/2 with |g| + |m| = 1, CWD at the minimiser.
TEST(Fading, DecoupledDecayStaysAndCwdVanishes) {
  Problem problem;
  problem.start = {3};
  problem.value = [](PointView x) { return std::pow(x[0] - 1, 2) / 2; };
  problem.gradient = [](PointView x, std::span<double> g) { g[0] = x[0] - 1; };
  problem.hessian = [](PointView, Matrix& h) { h = Matrix::Identity(1, 1); };
  const FlowOptions options = usual_options(3);
  const auto fade = [&](FlowDecay decay) {
    const System system{.flow = Flow::sgdm, .decay = decay, .lambda = 1};
    return follow_on(system, problem, watch(system, problem, problem.start, options).trajectory, options);
  };
  const Fading plain = fade(FlowDecay::decoupled), cautious = fade(FlowDecay::cautious);
  EXPECT_EQ(plain.fade(), Fade::stays);
  EXPECT_NEAR(plain.left, 0.5, 0.01);  // over |g| = 2 at the start
  EXPECT_EQ(cautious.fade(), Fade::vanished);
  EXPECT_GT(cautious.before, kVanished);  // followed on
}

TEST(Fading, TheControlIsNeverCalledVanishedWrongly) {
  const FadeControl control = fade_control(5, 8, 12);
  EXPECT_EQ(control.count.trajectories, 8u);
  EXPECT_EQ(control.wrongly, 0u);
  EXPECT_GE(control.count.stays, 6u);
}

TEST(Limits, DirectionsAreSeenFromBothStarts) {
  EXPECT_TRUE(toward_balance({.lr = 0.1, .from_205 = 224, .from_250 = 226}));
  EXPECT_FALSE(toward_balance({.lr = 0.1, .from_205 = 224, .from_250 = 251}));
  EXPECT_TRUE(from_balance({.lr = 0.1, .from_205 = 190, .from_250 = 260}));
  EXPECT_FALSE(from_balance({.lr = 0.1, .from_205 = 206, .from_250 = 260}));
}

}  // namespace convergence_test
}  // namespace cautious::lab
