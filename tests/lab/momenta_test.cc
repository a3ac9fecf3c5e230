// From which lambda/gamma on H of Muon + CWD can rise: by hand, by definition, by search, and along large flows.
#include "lab/dynamics/momenta.h"

#include <cmath>

#include <gtest/gtest.h>

#include "lab/dynamics/dynamics.h"
#include "lab/linear.h"

namespace cautious::lab {
namespace momenta_test {

// |m|_* / N(m) by the singular value decomposition.
double ratio_of(const Matrix& m) {
  const auto [u, values, v] = svd(m);
  const Eigen::ArrayXXd product = (u * v.transpose()).array() * m.array();
  const double against = -product.min(0).sum();
  return against > 0 ? values.sum() / against : INFINITY;
}

Matrix full(const RankOne& m, double extra) {
  const Eigen::Index n = m.p.size();
  return m.o * (m.p * m.p.transpose() + extra * Eigen::MatrixXd::Identity(n, n));
}

RankOne random_rank_one(Random& random, Eigen::Index n) {
  const Eigen::MatrixXd a = Eigen::MatrixXd::NullaryExpr(n, n, [&] { return random.normal(); });
  const Eigen::VectorXd p = Eigen::VectorXd::NullaryExpr(n, [&] { return random.normal(); });
  return {.o = orthogonal_factor(a), .p = p.normalized()};
}

// O m = [3/8 -1/8; 3/8 3/8].
TEST(Momenta, ARotationBy30DegreesHasOneEighthAgainst) {
  const RankOne m = turned_momentum();
  const Eigen::MatrixXd product = m.o.cwiseProduct(m.o * m.p * m.p.transpose());
  EXPECT_NEAR(product(0, 1), -0.125, 1e-15);
  EXPECT_NEAR(product.sum(), 1, 1e-15);
  EXPECT_NEAR(opposition(m), 1.25, 1e-15);
  EXPECT_NEAR(threshold_of(opposition(m)), 8, 1e-13);
}

TEST(Momenta, OppositionIsThatOfTheDefinition) {
  Random random(1);
  for (Eigen::Index n = 2; n <= 7; ++n) {
    for (int trial = 0; trial < 10; ++trial) {
      const RankOne m = random_rank_one(random, n);
      if (opposition(m) < 1.01) continue;
      EXPECT_NEAR(ratio_of(full(m, 1e-9)) / threshold_of(opposition(m)), 1, 1e-5) << n;
    }
  }
}

// For n a power of 4 the bound is attained; nothing is below it, of whatever rank.
TEST(Momenta, TwoOverRootNMinusOneIsTheLeast) {
  for (const std::int64_t n : {4, 16, 64}) {
    const RankOne flat = flat_momentum(n);
    EXPECT_LT((flat.o.transpose() * flat.o - Eigen::MatrixXd::Identity(n, n)).norm(), 1e-12);
    EXPECT_NEAR(opposition(flat), std::sqrt(static_cast<double>(n)), 1e-12);
  }
  Random random(2);
  for (std::int64_t n = 2; n <= 6; ++n) {
    for (int trial = 0; trial < 200; ++trial) {
      const auto rank = 1 + trial % n;
      const Matrix m = Eigen::MatrixXd::NullaryExpr(n, rank, [&] { return random.normal(); }) *
                           Eigen::MatrixXd::NullaryExpr(rank, n, [&] { return random.normal(); }) +
                       1e-6 * Eigen::MatrixXd::NullaryExpr(n, n, [&] { return random.normal(); });
      EXPECT_GE(ratio_of(m), least_threshold(n) * (1 - 1e-9)) << n;
    }
  }
}

TEST(Momenta, TheSearchFindsTheKnownThresholds) {
  Random random(3);
  EXPECT_NEAR(threshold_of(opposition(climb_from_random(random, 2, 4))), 8, 1e-3);
  EXPECT_NEAR(threshold_of(opposition(climb_from_random(random, 3, 12))), 3, 1e-3);
  EXPECT_NEAR(threshold_of(opposition(climb_from_random(random, 4, 12))), 2, 1e-3);
}

TEST(Momenta, TheRateChangesSignAtTheThreshold) {
  for (const RankOne& m : {turned_momentum(), flat_momentum(4), flat_momentum(16)}) {
    const double threshold = threshold_of(opposition(m));
    for (const double gamma : {0.5, 2.0}) {
      EXPECT_NEAR(worst_rate(m, 0.9 * threshold * gamma, gamma), -0.1 * gamma, 1e-6);
      EXPECT_NEAR(worst_rate(m, 1.1 * threshold * gamma, gamma), 0.1 * gamma, 1e-6);
    }
  }
}

// The page's example: m = [3 1; 7 3], dH/dt = (lambda - 12 gamma) / sqrt(2) for tiny x whose mask is on at the second entry
// alone.
TEST(Momenta, TheExampleByHand) {
  const Problem problem = nearest_matrix(Matrix::Zero(2, 2));
  const Point z = {1e-9, -1e-9, 1e-9, 1e-9, 3, 1, 7, 3}, side = {1, 1, 1, 1, 1};
  for (const double lambda : {1.0, 13.0}) {
    const System muon{.flow = Flow::lion_k, .lambda = lambda, .k = {.k = Convex::nuclear}, .rows = 2, .cols = 2};
    EXPECT_NEAR(lyapunov_rate(muon, problem, 1, z, side), (lambda - 12) / std::sqrt(2.0), 1e-5);
  }
}

TEST(Momenta, LargeFlowsRiseAndSmallOnesDoNot) {
  const auto muon = [](std::int64_t n) {
    return System{.flow = Flow::lion_k, .gamma = 0.7, .k = {.k = Convex::nuclear}, .rows = n, .cols = n};
  };
  System large = muon(64), small = muon(8);
  large.lambda = small.lambda = 1;
  Random random(4);
  const Matrix c = near_rank_one(random, 64, 0.03);
  const LargeFlow rising = large_flow(large, c, 0.3, 12), finer = large_flow(large, c, 0.3, 24);
  EXPECT_NEAR(rising.first, ratio_of(c), 1e-6);
  EXPECT_LT(rising.first, 1 / 0.7);
  EXPECT_GT(rising.rise, 100 * kRises);
  EXPECT_NEAR(finer.of_h / rising.of_h, 1, 0.1);
  EXPECT_GT(rising.against, 0.4);
  const Matrix mild = near_rank_one(random, 8, 0.03);
  ASSERT_GT(ratio_of(mild), 1 / 0.7);
  EXPECT_EQ(large_flow(small, mild, 0.3, 12).rise, 0);
}

// The solver that locates every switch sees the same H.
TEST(Momenta, FixedStepsAgreeWithTheSolver) {
  Matrix c(2, 2);
  c << 3, 1, 7, 3;
  const Problem problem = nearest_matrix(c);
  const System muon{.flow = Flow::lion_k, .lambda = 60, .k = {.k = Convex::nuclear}, .rows = 2, .cols = 2};
  FlowOptions options = usual_options(0.1);
  options.t_begin = 1e-6;
  options.may_slide = false;
  const Watched watched = watch(muon, problem, problem.start, options);
  ASSERT_GT(watched.rise, 0.001);
  EXPECT_NEAR(large_flow(muon, c, 0.1, 400).rise / watched.rise, 1, 0.02);
}

}  // namespace momenta_test
}  // namespace cautious::lab
