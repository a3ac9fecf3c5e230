// The lemmas of appendix E, each as a property over random and adversarial cases, and the step of the proof of Theorem 1 that
// does not hold together with the one that replaces it.
#include "lab/bound/bound.h"

#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

namespace cautious::lab {
namespace lemmas_test {

BoundSetting with(double beta1, double beta2) { return {.beta1 = beta1, .beta2 = beta2}; }

// u after the last of the gradients, straight from the definition, eps = 0.
double update_of(const std::vector<double>& gradients, double beta1, double beta2) {
  double m = 0, v = 0, c1 = 0, c2 = 0;  // c: sums of the weights
  for (const double g : gradients) {
    m = beta1 * m + g;
    v = beta2 * v + g * g;
    c1 = beta1 * c1 + 1;
    c2 = beta2 * c2 + 1;
  }
  return v > 0 ? m / c1 / std::sqrt(v / c2) : 0;
}

TEST(BoundedUpdate, HoldsForRandomGradients) {
  Random random(1);
  for (int k = 0; k < 5000; ++k) {
    const double beta2 = random.uniform(0, 0.999), beta1 = random.uniform(0, beta2);
    const std::size_t t = 1 + random.below(60);
    std::vector<double> gradients(t);
    for (double& g : gradients)
      g = random.below(4) == 0 ? 0 : std::pow(10, random.uniform(-3, 3)) * (random.below(5) == 0 ? -1 : 1);
    const double u = std::abs(update_of(gradients, beta1, beta2));
    EXPECT_LE(u, attainable_update(with(beta1, beta2), t) * (1 + 1e-12));
    EXPECT_LE(attainable_update(with(beta1, beta2), t), largest_update(with(beta1, beta2)) * (1 + 1e-12));
  }
}

TEST(BoundedUpdate, AdversarialGradientsReachTheLeastUpperBound) {
  for (const auto& [beta1, beta2] : {std::pair{0.9, 0.999}, {0.9, 0.95}, {0.5, 0.9}, {0.3, 0.3}}) {
    for (const std::size_t t : {1, 2, 10, 100}) {
      std::vector<double> gradients;
      for (std::size_t k = 1; k <= t; ++k) gradients.push_back(std::pow(beta1 / beta2, t - k));
      const double u = update_of(gradients, beta1, beta2);
      EXPECT_NEAR(u, attainable_update(with(beta1, beta2), t), 1e-12 * u);
      EXPECT_NEAR(u, adversarial_update(beta1, beta2, t), 1e-9 * u);  // a difference of two x
    }
  }
  // The limit (1 - b1) sqrt(b2 / ((1 - b2) (b2 - b1^2))): C itself only if beta1 = beta2.
  EXPECT_NEAR(attainable_update(with(0.9, 0.999), 100'000), 0.1 * std::sqrt(0.999 / (0.001 * 0.189)), 1e-9);
  EXPECT_NEAR(attainable_update(with(0.9, 0.9), 1000) / largest_update(with(0.9, 0.9)), 1, 1e-12);
}

TEST(BoundedUpdate, FailsIfBeta1IsLarger) {
  EXPECT_LT(largest_update(with(0.9, 0.5)), 0.5);
  EXPECT_NEAR(adversarial_update(0.9, 0.5, 1), 1, 1e-12);
  EXPECT_GT(adversarial_update(0.9, 0.5, 50), 1e4);
}

TEST(Indicator, HoldsForAllSigns) {
  for (const double m : {-2.0, -0.5, 0.0, 0.5, 2.0}) {
    for (const double g : {-2.0, -0.5, 0.0, 0.5, 2.0}) {
      for (const double x : {-3.0, -0.1, 0.0, 0.1, 3.0}) {
        const double left = std::abs(((m * x >= 0 ? 1 : 0) - (g * x >= 0 ? 1 : 0)) * x);
        EXPECT_EQ(indicator_left(m, g, x), left);
        EXPECT_EQ(indicator_right(m, g, x), (m * g <= 0 ? 1 : 0) * std::abs(x));
        EXPECT_LE(left, indicator_right(m, g, x));
      }
    }
  }
}

// All 2^t sequences of signs: equality for one coordinate, so the fact cannot be improved for it.
TEST(Martingale, IsAnEqualityForIndependentNoise) {
  constexpr int kSteps = 10;
  constexpr double kSize = 0.4, kBeta = 0.7;
  double sum = 0, squares = 0;
  for (int path = 0; path < 1 << kSteps; ++path) {
    double total = 0;
    for (int k = 0; k < kSteps; ++k) total = kBeta * total + ((path >> k & 1) != 0 ? kSize : -kSize);
    sum += total * total;
  }
  for (int k = 0; k < kSteps; ++k) squares += std::pow(kBeta, 2 * k);
  EXPECT_NEAR(sum / (1 << kSteps), BoundNoise{.size = kSize}.variance() * squares, 1e-12);
}

// The identity behind the momentum lemma and the inequality behind that of the decay, step by step on runs.
TEST(MomentumError, IdentityAndSignInequalityHoldOnEveryPath) {
  for (const BoundProblem& problem : bound_problems()) {
    const BoundSetting setting{.eta = 0.1};
    BoundRun run(problem, problem.noise, setting, problem.start, 9);
    const std::size_t d = problem.dimension();
    Point first, drift(d), noise(d), last;
    for (int t = 1; t <= 200; ++t) {
      run.step();
      if (t == 1) first.assign(run.slope().begin(), run.slope().end());
      for (std::size_t i = 0; i < d; ++i) {
        const double f = run.slope()[i], m = run.momentum()[i];
        drift[i] = t == 1 ? 0 : 0.9 * (drift[i] + last[i] - f);
        noise[i] = 0.9 * noise[i] + run.sample()[i] - f;
        EXPECT_NEAR(m - f, -std::pow(0.9, t) * first[i] + drift[i] + 0.1 * noise[i], 1e-12);
        EXPECT_LE(m * f <= 0 ? std::abs(f) : 0, std::abs(f - m));
      }
      last.assign(run.slope().begin(), run.slope().end());
    }
  }
}

class EveryLemmaProblem : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Lemmas, EveryLemmaProblem, testing::Range(std::size_t{0}, std::size_t{3}),
                         [](const auto& param) { return bound_problems()[param.param].name; });

TEST_P(EveryLemmaProblem, LemmasHoldInRandomSettings) {
  Random random(21);
  for (int k = 0; k < 12; ++k) {
    BoundSetting setting;
    setting.beta2 = random.uniform(0, 0.99);
    setting.beta1 = random.uniform(0, setting.beta2);
    setting.eps = std::pow(10, random.uniform(-6, 1));
    setting.eta = std::pow(10, random.uniform(-3, -0.5));
    setting.weight_decay = random.uniform(0, 1);
    setting.batch = 1 + random.below(8);
    const std::vector<LemmaCheck> checks = check_lemmas(bound_problems()[GetParam()], setting, 128, 64, random.below(1000));
    EXPECT_EQ(checks.size(), 6u);
    for (const LemmaCheck& check : checks) {
      EXPECT_TRUE(check.holds()) << source_of(check.lemma) << ": " << check.worst << ", " << check.where;
    }
  }
}

TEST(LemmaBounds, ByHand) {
  // C = 2, C + lambda R = 3, drift 0.25 * 3 * 2 * 3 = 4.5, noise 2 * 3 / sqrt(1.5); t = 2: 0.25 * 4 * 2.
  const BoundSetting setting{.eta = 0.25, .beta1 = 0.5, .beta2 = 0.875, .eps = 0.5, .weight_decay = 0.5, .batch = 4};
  const BoundConstants constants{.smoothness = 3, .radius = 2, .gradient = 4, .deviation = 6, .gap = 7, .dimension = 2};
  const double error = 2 + 4.5 + 6 / std::sqrt(1.5);
  const MomentumTerms terms = momentum_terms(constants, setting, 2);
  EXPECT_DOUBLE_EQ(terms.sum(), error);
  EXPECT_DOUBLE_EQ(terms.start, 2);
  EXPECT_DOUBLE_EQ(terms.drift, 4.5);
  EXPECT_DOUBLE_EQ(direction_factor(constants, setting), 8);
  EXPECT_DOUBLE_EQ(mask_factor(constants), 2);
  // Weights of m_hat_2: 1/3 and 2/3.
  EXPECT_DOUBLE_EQ(corrected_momentum_bound(constants, setting, 2), 4.5 + std::sqrt(5.0 / 9) * std::sqrt(2) * 3);
}

// What the repaired proof needs of the weights a_k of m_hat: their spread, and their mean age.
TEST(CorrectedMomentum, WeightsAreAsTheProofSays) {
  const BoundConstants noise_only{.deviation = 1, .dimension = 1};
  for (const double beta1 : {0.0, 0.1, 0.5, 0.9, 0.99}) {
    for (std::size_t t = 1; t <= 300; ++t) {
      double sum = 0, squares = 0, age = 0;
      for (std::size_t j = 0; j < t; ++j) {
        const double weight = std::pow(beta1, j);
        sum += weight;
        squares += weight * weight;
        age += weight * static_cast<double>(j);
      }
      const double spread = std::sqrt(squares) / sum;
      EXPECT_NEAR(corrected_momentum_bound(noise_only, with(beta1, 0.99), t), spread, 1e-12);
      EXPECT_LE(age / sum, beta1 / (1 - beta1) + 1e-12);
      EXPECT_LE(spread, t == 1 ? 1 : 1 / std::sqrt(1 + beta1) + 1e-12);
    }
    EXPECT_LE(0.5, 1 / std::sqrt(1 + beta1));  // so the first step, whose noise counts half, needs no K2
  }
}

// The repaired proof's bound is never above the paper's without K2, which therefore holds, for all constants that can occur
// together.
TEST(CorrectedMomentum, PaperBoundIsImplied) {
  Random random(5);
  for (int k = 0; k < 20'000; ++k) {
    BoundSetting setting;
    setting.beta2 = random.uniform(0, 0.999);
    setting.beta1 = setting.beta2 * random.uniform();
    setting.eps = std::pow(10, random.uniform(-8, 3));
    setting.eta = std::pow(10, random.uniform(-5, 1));
    setting.weight_decay = random.uniform(0, 2);
    BoundConstants constants;
    constants.dimension = static_cast<double>(1 + random.below(20));
    constants.smoothness = std::pow(10, random.uniform(-6, 2));
    constants.gradient = std::pow(10, random.uniform(-2, 2));
    constants.radius = std::pow(10, random.uniform(-2, 2));
    constants.gap = std::pow(10, random.uniform(-9, 2));
    constants.deviation = random.uniform() * std::sqrt(constants.dimension) * constants.gradient;  // no more if |g| <= G
    const std::size_t steps = 1 + random.below(40);
    const BoundTerms terms = bound_terms(constants, setting, steps);
    EXPECT_LE(sharper_bound(constants, setting, steps), (terms.sum() - terms.k2) * (1 + 1e-12));
  }
}

// A start beside the minimiser: f rises before it falls, and weights that grow with t count the fall for more.
TEST(Telescoping, WeightedDescentsExceedTheGap) {
  const BoundProblem& problem = bound_problems()[0];
  Point start = problem.minimiser;
  for (double& x : start) x += 1e-3;
  const BoundSetting setting{.eta = 0.5, .eps = 1};
  const double gap = problem.value(start);
  EXPECT_GT(weighted_descent(problem, setting, start, 1000), 50 * gap);
  // What is proved: the mean of f(x_t) - f* with weights (1 - beta1) beta1^(t-1).
  BoundRun run(problem, {}, setting, start, 0);
  double mean = 0, unweighted = 0;
  for (int t = 1; t <= 1000; ++t) {
    run.step();
    mean += 0.1 * std::pow(0.9, t - 1) * problem.value(run.point());
    unweighted += problem.value(run.point()) - problem.value(run.next());
  }
  EXPECT_LE(weighted_descent(problem, setting, start, 1000), mean);
  EXPECT_LE(unweighted, gap);
}

}  // namespace lemmas_test
}  // namespace cautious::lab
