// Power and sample sizes against published ones and an integral; intervals and tests against simulated studies.
#include <cmath>
#include <limits>
#include <numbers>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "simulated.h"
#include "study/statistics.h"
#include "usage_message.h"

namespace cautious::study {
namespace statistics_power_test {

// Of n pairs: a layout of two arms, whose residuals have an sd of 1 / sqrt(2) of the differences'.
double detectable_by(std::size_t n, double sd, double power = 0.8, double level = 0.05) {
  return detectable_difference({.seeds = n, .arms = 2, .sd = sd / std::numbers::sqrt2}, power, level);
}

std::size_t pairs_needed(double difference, double sd, double power = 0.8, double level = 0.05, std::size_t most = 100000) {
  return seeds_needed(difference, 2, sd / std::numbers::sqrt2, power, level, most);
}

constexpr int kStudies = 10000;

// The fraction of studies of n pairs for which `holds`; the arms share a large effect of their seed.
template <class Holds>
double fraction(std::size_t n, double difference, double sd, const Holds& holds, double (*shape)(double) = nullptr) {
  Normal normal(n);
  int count = 0;
  for (int study = 0; study < kStudies; ++study) {
    std::vector<double> a(n), b(n);
    for (std::size_t i = 0; i < n; ++i) {
      b[i] = 3.3 + 0.1 * normal();
      const double noise = normal();
      a[i] = b[i] + difference + sd * (shape == nullptr ? noise : shape(noise));
    }
    count += holds(paired(a, b));
  }
  return static_cast<double>(count) / kStudies;
}

// P(|T| > critical): the mean's normal distribution, integrated by Simpson's rule over the sd's chi distribution.
double power_of(double freedom, double shift, double critical) {
  const double constant = std::log(2.0) + freedom / 2 * std::log(freedom / 2) - std::lgamma(freedom / 2);
  const auto density = [&](double s) {
    const double power = freedom == 1 ? 0 : (freedom - 1) * std::log(s);
    const double above = std::erfc((critical * s - shift) / std::numbers::sqrt2) / 2;
    const double below = std::erfc((critical * s + shift) / std::numbers::sqrt2) / 2;
    return std::exp(constant + power - freedom * s * s / 2) * (above + below);
  };
  constexpr int kSteps = 20000;
  const double step = (1 + 9 / std::sqrt(freedom)) / kSteps;
  double sum = density(0) + density(kSteps * step);
  for (int i = 1; i < kSteps; ++i) sum += density(i * step) * (i % 2 == 1 ? 4 : 2);
  return sum * step / 3;
}

TEST(Power, PairsNeededArePublishedOnes) {
  EXPECT_EQ(pairs_needed(1, 1), 10u);  // 9.94
  EXPECT_EQ(pairs_needed(0.2, 1), 199u);
  EXPECT_EQ(pairs_needed(0.5, 1), 34u);
  EXPECT_EQ(pairs_needed(0.8, 1), 15u);
  EXPECT_EQ(pairs_needed(0.5, 1, 0.9), 44u);
  EXPECT_EQ(pairs_needed(0.5, 1, 0.95), 54u);
}

TEST(Power, PairsNeededForNatsOfLoss) {
  EXPECT_EQ(pairs_needed(0.0077, 0.007), 9u);
  EXPECT_EQ(pairs_needed(-0.005, 0.007), 18u);
  EXPECT_EQ(pairs_needed(0.003, 0.007), 45u);  // power 0.7936 with 44, 0.8028 with 45
}

// Ten pairs and a difference of one sd: 0.8031 in the correct tail; the other one's 6e-7 does not show.
TEST(Power, DetectableDifferenceBracketsAPublishedPower) {
  EXPECT_LT(detectable_by(10, 1, 0.80305), 1);
  EXPECT_GT(detectable_by(10, 1, 0.80315), 1);
}

TEST(Power, DetectableDifferenceHasThatPower) {
  const std::vector<std::pair<std::size_t, double>> critical{
      {2, 12.706204736}, {3, 4.302652730}, {5, 2.776445105}, {10, 2.262157163}, {31, 2.042272456}};
  for (const auto& [n, quantile] : critical) {
    for (const double power : {0.06, 0.3, 0.8, 0.99}) {
      const double shift = detectable_by(n, 0.007, power) / 0.007 * std::sqrt(static_cast<double>(n));
      EXPECT_NEAR(power_of(static_cast<double>(n - 1), shift, quantile), power, 1e-7) << n;
    }
  }
}

// Quantiles of Student's t for (seeds - 1) (arms - 1) degrees of freedom.
TEST(Power, OfLayoutsHasTheirDegreesOfFreedom) {
  const std::vector<std::pair<Layout, double>> critical{{{.seeds = 3, .arms = 3, .sd = 0.005}, 2.776445105},
                                                        {{.seeds = 3, .arms = 6, .sd = 0.005}, 2.228138852},
                                                        {{.seeds = 6, .arms = 5, .sd = 0.005}, 2.085963447}};
  for (const auto& [layout, quantile] : critical) {
    const double found = detectable_difference(layout),
                 shift = found / (0.005 * std::sqrt(2 / static_cast<double>(layout.seeds)));
    EXPECT_NEAR(power_of(static_cast<double>(layout.freedom()), shift, quantile), 0.8, 1e-7) << layout.seeds;
    EXPECT_EQ(seeds_needed(found * (1 + 1e-9), layout.arms, 0.005), layout.seeds);
    EXPECT_EQ(seeds_needed(found * (1 - 1e-9), layout.arms, 0.005), layout.seeds + 1);
  }
}

TEST(Power, BothWaysAgree) {
  for (const std::size_t n : {2u, 3u, 4u, 9u, 50u, 1000u, 99999u}) {
    for (const double power : {0.1, 0.8, 0.9999}) {
      for (const double level : {0.0001, 0.05}) {
        const double difference = detectable_by(n, 0.3, power, level);
        EXPECT_EQ(pairs_needed(difference * (1 + 1e-9), 0.3, power, level), n) << power << " " << level;
        EXPECT_EQ(pairs_needed(difference * (1 - 1e-9), 0.3, power, level), n + 1) << power << " " << level;
      }
    }
  }
}

TEST(Power, Extremes) {
  EXPECT_EQ(pairs_needed(1e9, 1), 2u);
  EXPECT_EQ(pairs_needed(0.001, 0), 2u);
  EXPECT_EQ(pairs_needed(0, 1), 100001u);
  EXPECT_EQ(pairs_needed(0, 0), 100001u);
  EXPECT_EQ(pairs_needed(1e-9, 1), 100001u);
  EXPECT_EQ(pairs_needed(0.5, 1, 0.8, 0.05, 34), 34u);
  EXPECT_EQ(pairs_needed(0.5, 1, 0.8, 0.05, 33), 34u);
  EXPECT_EQ(pairs_needed(0.5, 1, 0.8, 0.05, 20), 21u);
  EXPECT_EQ(detectable_by(5, 0), 0.0);
  EXPECT_TRUE(std::isnan(detectable_by(1, 1)));
  EXPECT_TRUE(std::isnan(detectable_by(0, 1)));
}

TEST(Power, RefusesWhatIsNoTest) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  EXPECT_EQ(message([] { pairs_needed(kNaN, 1); }), "the size of the difference is nan; valid: [0, inf)");
  EXPECT_EQ(message([] { pairs_needed(1, kNaN); }), "the standard deviation is nan; valid: [0, inf)");
  EXPECT_EQ(message([] { detectable_difference({.seeds = 5, .arms = 2, .sd = -1}); }),
            "the standard deviation is -1; valid: [0, inf)");
  EXPECT_EQ(message([] { detectable_by(5, 1, 0.05); }), "the power of the test is 0.05; valid: (0.05, 0.9999]");
  EXPECT_EQ(message([] { pairs_needed(1, 1, 1); }), "the power of the test is 1; valid: (0.05, 0.9999]");
  EXPECT_EQ(message([] { pairs_needed(1, 1, 0.8, 0); }), "the level of the test is 0; valid: [0.0001, 0.5]");
}

TEST(Simulated, IntervalsCoverTheTrueDifference) {
  for (const std::size_t n : {3u, 5u, 10u}) {
    const auto covers = [](const Paired& p) { return p.interval.low <= -0.02 && -0.02 <= p.interval.high; };
    EXPECT_NEAR(fraction(n, -0.02, 0.007, covers), 0.95, 0.01) << n;
  }
}

TEST(Simulated, TTestKeepsItsLevel) {
  for (const std::size_t n : {3u, 5u, 10u}) {
    EXPECT_NEAR(fraction(n, 0, 0.007, [](const Paired& p) { return p.t_p <= 0.05; }), 0.05, 0.01) << n;
  }
}

// 12 of the 256 patterns of eight signs fit in 5%; symmetric differences of any shape.
TEST(Simulated, SignFlipTestKeepsItsLevel) {
  const auto rejects = [](const Paired& p) { return p.permutation_p <= 0.05; };
  EXPECT_NEAR(fraction(8, 0, 0.007, rejects), 12.0 / 256, 0.01);
  EXPECT_NEAR(fraction(8, 0, 0.007, rejects, [](double x) { return x * x * x * x * x; }), 12.0 / 256, 0.01);
  EXPECT_EQ(fraction(5, 0.1, 0.007, rejects), 0.0);  // five pairs: never below 2 in 32
}

TEST(Simulated, TTestHasThePower) {
  for (const std::size_t n : {3u, 5u, 9u}) {
    const double difference = detectable_by(n, 0.007);
    EXPECT_NEAR(fraction(n, difference, 0.007, [](const Paired& p) { return p.t_p <= 0.05; }), 0.8, 0.016) << n;
  }
}

}  // namespace statistics_power_test
}  // namespace cautious::study
