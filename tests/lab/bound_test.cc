// Theorem 1 in the laboratory: its constants against numbers worked out by hand, the problems and the noise against what the
// theorem assumes of them, the runs against naive Adam + CWD, and the inequality itself.
#include "lab/bound/bound.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <type_traits>

#include <gtest/gtest.h>

#include <cautious/error.h>

namespace cautious::lab {
namespace bound_test {

// C = sqrt(0.5 / 0.125) = 2, G = 4 (above 1 / (1 - beta1) = 2), lambda R = 1, G / eps + lambda R = 9, G + eps = 4.5.
constexpr BoundSetting kSetting{.eta = 0.25, .beta1 = 0.5, .beta2 = 0.875, .eps = 0.5, .weight_decay = 0.5, .batch = 4};
constexpr BoundConstants kConstants{.smoothness = 3, .radius = 2, .gradient = 4, .deviation = 6, .gap = 7, .dimension = 2};

TEST(BoundTheory, FactorsByHand) {
  const BoundFactors k = bound_factors(kConstants, kSetting);
  EXPECT_DOUBLE_EQ(largest_update(kSetting), 2);
  EXPECT_DOUBLE_EQ(k.k1, 4.5 * 7);
  EXPECT_DOUBLE_EQ(k.k2, 4 * 2 * 4.5 * 9);                                    // beta1 / (1 - beta1) = 1
  EXPECT_DOUBLE_EQ(k.k3, 3 * 2 * (2 + 1) * 4.5 * 9 + 3 * 2 * (4 + 1) * 4.5);  // 729 + 135
  EXPECT_DOUBLE_EQ(k.k4, 2 * 4.5 / std::sqrt(1.5) * 9);
  // 31.5 / (0.25 * 10) + 324 / 10 + 864 * 0.25 + k4 * 6 / 2
  const BoundTerms terms = bound_terms(kConstants, kSetting, 10);
  EXPECT_DOUBLE_EQ(terms.sum(), 12.6 + 32.4 + 216 + 3 * k.k4);
  EXPECT_DOUBLE_EQ(terms.k1 / terms.scale, 7 / 2.5);
  EXPECT_DOUBLE_EQ(terms.lag, 729 * 0.25);
}

TEST(BoundTheory, TheProofRaisesTheGradientBound) {
  BoundConstants small = kConstants, raised = kConstants;
  small.gradient = 0.5;
  raised.gradient = 2;  // 1 / (1 - beta1)
  EXPECT_DOUBLE_EQ(bound_terms(small, kSetting, 7).sum(), bound_terms(raised, kSetting, 7).sum());
}

TEST(BoundTheory, SharperBoundByHand) {
  // T = 1: spread 1/2; momentum error 0.25 * 1 * 3 * 2 * 3 + sqrt(2) * 3 / 2, curvature 3 * 2 * 5.
  EXPECT_DOUBLE_EQ(sharper_bound(kConstants, kSetting, 1), 4.5 * (7 / 0.25 + 9 * (4.5 + 1.5 * std::sqrt(2)) + 0.25 * 30));
}

class EveryBoundProblem : public testing::TestWithParam<std::size_t> {
 protected:
  const BoundProblem& problem = bound_problems()[GetParam()];
  Point random_point(Random& random, double size) const {
    Point x(problem.dimension());
    for (double& value : x) value = random.uniform(-size, size);
    return x;
  }
  Point gradient(const Point& x) const {
    Point g(x.size());
    problem.gradient(x, g);
    return g;
  }
};

INSTANTIATE_TEST_SUITE_P(Bound, EveryBoundProblem, testing::Range(std::size_t{0}, std::size_t{3}),
                         [](const auto& param) { return bound_problems()[param.param].name; });

TEST_P(EveryBoundProblem, GradientIsTheSlope) {
  constexpr double h = 1e-6;
  Random random(1);
  for (int k = 0; k < 200; ++k) {
    const Point x = random_point(random, 4), g = gradient(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      Point up = x, down = x;
      up[i] += h;
      down[i] -= h;
      EXPECT_NEAR(g[i], (problem.value(up) - problem.value(down)) / (2 * h), 1e-8);
    }
  }
}

TEST_P(EveryBoundProblem, ConstantsAreValidAndNearlyAttained) {
  Random random(2);
  double steepest = 0, sharpest = 0;
  for (int k = 0; k < 20'000; ++k) {
    const Point x = random_point(random, k % 2 == 0 ? 4 : 40);
    Point y = x;
    const double size = std::pow(10, random.uniform(-4, 1));
    for (double& value : y) value += random.uniform(-size, size);
    const Point gx = gradient(x), gy = gradient(y);
    EXPECT_GE(problem.value(x), 0);
    steepest = std::max(steepest, as_vector(PointView(gx)).lpNorm<Eigen::Infinity>());
    sharpest = std::max(sharpest, (as_vector(PointView(gx)) - as_vector(PointView(gy))).norm() /
                                      (as_vector(PointView(x)) - as_vector(PointView(y))).norm());
  }
  EXPECT_LE(steepest, problem.slope);
  EXPECT_GT(steepest, 0.9 * problem.slope);
  EXPECT_LE(sharpest, problem.smoothness * (1 + 1e-9));
  EXPECT_GT(sharpest, 0.6 * problem.smoothness);
  EXPECT_NEAR(problem.value(problem.minimiser), 0, 1e-15);
  EXPECT_EQ(problem.dimension(), problem.minimiser.size());
}

TEST_P(EveryBoundProblem, RunIsAdamWithCautiousDecay) {
  const BoundSetting setting{.eta = 0.05, .beta1 = 0.8, .beta2 = 0.9, .eps = 1e-3, .weight_decay = 0.7, .batch = 3};
  BoundRun run(problem, problem.noise, setting, problem.start, 5);
  Point x = problem.start, m(x.size()), v(x.size());
  for (int t = 1; t <= 300; ++t) {
    run.step();
    double measure = 0;
    const Point slope = gradient(x);
    for (std::size_t i = 0; i < x.size(); ++i) {
      ASSERT_NEAR(run.point()[i], x[i], 1e-12);
      measure += slope[i] * slope[i] + (slope[i] * x[i] > 0 ? 0.7 * slope[i] * x[i] : 0);
      const double g = run.sample()[i];
      ASSERT_LE(std::abs(g - run.slope()[i]), problem.noise.size * (1 + 1e-12));
      m[i] = 0.8 * m[i] + 0.2 * g;
      v[i] = 0.9 * v[i] + 0.1 * g * g;
      ASSERT_NEAR(run.momentum()[i], m[i], 1e-12);
      ASSERT_NEAR(run.square()[i], v[i], 1e-12);
      const double u = m[i] / (1 - std::pow(0.8, t)) / (std::sqrt(v[i] / (1 - std::pow(0.9, t))) + 1e-3);
      x[i] -= 0.05 * (u + (m[i] * x[i] >= 0 ? 0.7 * x[i] : 0));
      ASSERT_NEAR(run.next()[i], x[i], 1e-12);
    }
    ASSERT_NEAR(run.stationarity(), measure, 1e-12);
  }
}

static_assert(!std::is_copy_constructible_v<BoundRun> && !std::is_move_constructible_v<BoundRun>);

// The proof in runs.cc against runs with every kind of noise, step size and momentum.
TEST_P(EveryBoundProblem, ProvedRadiusHolds) {
  const std::vector<std::size_t> steps{400};
  double closest = 0;
  for (const double beta1 : {0.0, 0.5, 0.9}) {
    for (const double eta : {0.01, 0.1, 1.0}) {
      for (const int rarity : {1, 3}) {
        BoundNoise noise = problem.noise;
        noise.rarity = rarity;
        const BoundSetting setting{.eta = eta, .beta1 = beta1, .beta2 = std::max(beta1, 0.5)};
        const double proved = provable_radius(problem, noise, setting, problem.start);
        const double seen = left_side(problem, noise, setting, problem.start, steps, 4, 3).radius;
        EXPECT_EQ(std::isnan(proved), !problem.coercive);
        if (!problem.coercive) continue;
        EXPECT_LE(seen, proved);
        closest = std::max(closest, seen / proved);
      }
    }
  }
  EXPECT_GE(closest, problem.coercive ? 0.5 : 0);
}

TEST(BoundNoise, OneSampleHasTwoValuesWithTheirProbabilities) {
  for (const int rarity : {1, 2, 3}) {
    const BoundNoise noise{.size = 0.6, .rarity = rarity};
    const double p = std::pow(2, -rarity);
    Random random(7);
    int high = 0;
    constexpr int kDraws = 100'000;
    for (int k = 0; k < kDraws; ++k) {
      const double value = batch_noise(random, noise, 1);
      if (value > 0) {
        ++high;
        ASSERT_DOUBLE_EQ(value, 0.6);
      } else {
        ASSERT_NEAR(value, -0.6 * p / (1 - p), 1e-15);
      }
    }
    EXPECT_NEAR(high / double{kDraws}, p, 5 * std::sqrt(p * (1 - p) / kDraws));
    EXPECT_NEAR(noise.variance(), p * 0.36 + (1 - p) * std::pow(0.6 * p / (1 - p), 2), 1e-15);
  }
}

// Batches below, at and above one word of random bits.
TEST(BoundNoise, BatchMeanIsUnbiasedWithVarianceSigmaSquaredOverN) {
  for (const std::size_t batch : {2, 63, 64, 200}) {
    for (const int rarity : {1, 2}) {
      const BoundNoise noise{.size = 0.5, .rarity = rarity};
      Random random(11);
      constexpr int kDraws = 40'000;
      double sum = 0, squares = 0, largest = 0;
      for (int k = 0; k < kDraws; ++k) {
        const double value = batch_noise(random, noise, batch);
        sum += value;
        squares += value * value;
        largest = std::max(largest, std::abs(value));
      }
      const double variance = noise.variance() / static_cast<double>(batch);
      EXPECT_NEAR(sum / kDraws, 0, 5 * std::sqrt(variance / kDraws));
      EXPECT_NEAR(squares / kDraws / variance, 1, 0.05);
      EXPECT_LE(largest, 0.5);
    }
  }
}

TEST(BoundEstimate, StudentInterval) {
  const std::vector<double> values{1, 2, 3, 4};
  const Estimate e = estimate(values);
  EXPECT_DOUBLE_EQ(e.mean, 2.5);
  EXPECT_NEAR(e.high - e.mean, 3.182446305 * std::sqrt(5.0 / 3 / 4), 1e-8);  // quantile of 3 degrees of freedom
  EXPECT_DOUBLE_EQ(e.high - e.mean, e.mean - e.low);
}

TEST(BoundEstimate, SlopeOfAPowerIsItsExponent) {
  std::vector<double> x, exact, noisy;
  Random random(3);
  int covered = 0;
  for (double t = 32; t <= 4096; t *= 2) {
    x.push_back(t);
    exact.push_back(3 / std::sqrt(t));
  }
  const Estimate line = log_log_slope(x, exact);
  EXPECT_NEAR(line.mean, -0.5, 1e-12);
  EXPECT_NEAR(line.high - line.low, 0, 1e-10);
  for (int k = 0; k < 1000; ++k) {
    noisy.clear();
    for (const double t : x) noisy.push_back(3 / std::sqrt(t) * std::exp(0.1 * random.normal()));
    const Estimate slope = log_log_slope(x, noisy);
    if (slope.low <= -0.5 && -0.5 <= slope.high) ++covered;
  }
  EXPECT_NEAR(covered / 1000.0, 0.95, 0.03);
}

TEST(BoundLeftSide, MeansOverStepsAreThoseOfTheRuns) {
  const BoundProblem& problem = bound_problems()[1];
  const BoundSetting setting{};
  const std::vector<std::size_t> steps{1, 3, 10};
  const LeftSide left = left_side(problem, problem.noise, setting, problem.start, steps, 3, 0);
  std::vector<double> thirds;
  for (const std::uint64_t seed : {0, 1, 2}) {
    BoundRun run(problem, problem.noise, setting, problem.start, seed);
    double sum = 0;
    for (int t = 0; t < 3; ++t) {
      run.step();
      sum += run.stationarity();
    }
    thirds.push_back(sum / 3);
  }
  ASSERT_EQ(left.mean_stationarity.size(), 3u);
  EXPECT_DOUBLE_EQ(left.mean_stationarity[1].mean, estimate(thirds).mean);
  EXPECT_EQ(left.mean_stationarity[0].low, left.mean_stationarity[0].high);  // x1 is the same in every run
}

TEST(BoundTheorem, HoldsInRandomSettings) {
  const BoundTally tally = random_settings(150, 4, 17);
  EXPECT_EQ(tally.count, 150u * 9);
  EXPECT_EQ(tally.paper_violated, 0u) << tally.paper_where;
  EXPECT_EQ(tally.sharper_violated, 0u) << tally.sharper_where;
  EXPECT_GT(tally.paper, 0.1);  // some settings come near it
}

TEST(BoundTheorem, LeftSideFallsAtTheRate) {
  const BoundCase usual = usual_case(bound_problems()[0], {.eps = 1}, 4, 1);
  EXPECT_NEAR(slope_of(along_rate(usual, {64, 128, 256, 512, 1024}, true)).mean, -0.5, 0.05);
}

TEST(BoundTheorem, NoiseMakesCautiousDecayPullTowardsTheOrigin) {
  const auto part = [](double weight_decay, std::size_t batch) {
    const BoundSetting setting{.eta = 0.005, .eps = 0.01, .weight_decay = weight_decay, .batch = batch};
    return part_of_minimiser(bound_problems()[0], setting, 40'000, 2);
  };
  EXPECT_NEAR(part(0, 1), 1, 0.01);
  EXPECT_LT(part(0.1, 1), 0.98);
  EXPECT_NEAR(part(0.1, 1024), 1, 0.01);
}

TEST(BoundOptions, SeedsAreChecked) {
  EXPECT_THROW(run_bound({.seeds = 1}, {}), Error);
  EXPECT_THROW(run_bound({.seeds = 10'001}, {}), Error);
}

TEST(BoundExperiment, SaysWhatItFound) {
  double done = 0;
  const Experiment experiment = run_bound({.seeds = 2, .seed = 1}, [&](double part, std::string_view) {
    EXPECT_GE(part, done);
    done = part;
  });
  EXPECT_EQ(done, 1);
  EXPECT_EQ(experiment.name, "bound");
  std::set<std::string> names;
  std::size_t figures = 0, failed = 0;
  for (const Section& section : experiment.sections) {
    EXPECT_EQ(section.command, "cautious lab bound --seeds 2 --seed 1");
    for (const Claim& claim : section.claims) {
      EXPECT_FALSE(claim.evidence.empty()) << claim.text;
      EXPECT_EQ(claim.outcome == Outcome::noted, claim.source.empty()) << claim.text;
      if (claim.outcome == Outcome::fails) ++failed;
      EXPECT_EQ(claim.outcome == Outcome::fails, !claim.by_hand.empty()) << claim.text;
      if (claim.outcome == Outcome::holds) {
        EXPECT_TRUE(std::any_of(claim.mutations.begin(), claim.mutations.end(), [](const Mutation& m) { return m.noticed; }))
            << claim.text;
      }
    }
    for (const report::Table& table : section.tables) {
      EXPECT_TRUE(names.insert(table.name).second) << table.name;
      for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.head.size()) << table.name;
    }
    for (const report::Figure& figure : section.figures) {
      EXPECT_TRUE(names.insert(figure.name).second) << figure.name;
      EXPECT_FALSE(figure.caption.empty());
      ++figures;
    }
  }
  EXPECT_EQ(figures, 4u);
  const auto& claims = experiment.sections.front().claims;
  EXPECT_EQ(claims[0].outcome, Outcome::holds);  // the theorem
  EXPECT_EQ(claims[1].outcome, Outcome::fails);  // one step of its proof
  EXPECT_EQ(failed, 3u);                         // and two remarks
}

}  // namespace bound_test
}  // namespace cautious::lab
