// Layouts of seeds and arms against residuals written out, integrals of the distributions, closed testing and simulation.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>

#include "simulated.h"
#include "study/statistics.h"
#include "usage_message.h"

namespace cautious::study {
namespace statistics_layout_test {

using Losses = std::vector<std::vector<double>>;

// Arms of the given residual sds; seeds have an effect of their own.
Losses simulate(Normal& normal, std::size_t seeds, const std::vector<double>& sds) {
  Losses losses(sds.size(), std::vector<double>(seeds));
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    const double common = 3.3 + 0.1 * normal();
    for (std::size_t arm = 0; arm < sds.size(); ++arm) losses[arm][seed] = common + sds[arm] * normal();
  }
  return losses;
}

double mean_of(const std::vector<double>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

// The squares of what is left when the means of seeds and arms are taken away.
double residual_sd(const Losses& losses) {
  const std::size_t arms = losses.size(), seeds = losses.front().size();
  std::vector<double> arm_means;
  for (const std::vector<double>& arm : losses) arm_means.push_back(mean_of(arm));
  double squares = 0;
  for (std::size_t seed = 0; seed < seeds; ++seed) {
    std::vector<double> row;
    for (const std::vector<double>& arm : losses) row.push_back(arm[seed]);
    for (std::size_t arm = 0; arm < arms; ++arm) {
      squares += std::pow(losses[arm][seed] - mean_of(row) - arm_means[arm] + mean_of(arm_means), 2);
    }
  }
  return std::sqrt(squares / static_cast<double>((seeds - 1) * (arms - 1)));
}

// Simpson's rule.
template <class Function>
double integral(const Function& function, double from, double to) {
  constexpr int kSteps = 20000;
  const double step = (to - from) / kSteps;
  double sum = function(from) + function(to);
  for (int i = 1; i < kSteps; ++i) sum += function(from + i * step) * (i % 2 == 1 ? 4 : 2);
  return sum * step / 3;
}

// P(|T| < t) of Student's t.
double within(double t, double freedom) {
  const double constant = std::lgamma((freedom + 1) / 2) - std::lgamma(freedom / 2) - std::log(freedom * std::numbers::pi) / 2;
  return 2 * integral([&](double x) { return std::exp(constant - (freedom + 1) / 2 * std::log1p(x * x / freedom)); }, 0, t);
}

TEST(Layout, ResidualsAreThoseOfTheTable) {
  Normal normal(1);
  for (const std::size_t arms : {2u, 3u, 5u, 8u}) {
    for (const std::size_t seeds : {2u, 3u, 9u}) {
      const Losses losses = simulate(normal, seeds, std::vector<double>(arms, 0.005));
      const Layout layout = layout_of(losses);
      EXPECT_EQ(layout.seeds, seeds);
      EXPECT_EQ(layout.arms, arms);
      EXPECT_EQ(layout.freedom(), (seeds - 1) * (arms - 1));
      EXPECT_NEAR(layout.sd / residual_sd(losses), 1, 1e-12);
    }
  }
}

TEST(Layout, OfTwoArmsIsThePairedTest) {
  Normal normal(2);
  const Losses losses = simulate(normal, 6, {0.005, 0.008});
  const Paired alone = paired(losses[0], losses[1]);
  const Difference difference = difference_in(layout_for(losses, 0, 1), alone.difference);
  EXPECT_NEAR(difference.interval.low, alone.interval.low, 1e-15);
  EXPECT_NEAR(difference.interval.high, alone.interval.high, 1e-15);
  EXPECT_NEAR(difference.p, alone.t_p, 1e-13);
}

TEST(Layout, IntervalAndPAreThoseOfStudentsT) {
  for (const auto& [seeds, arms] : std::vector<std::pair<std::size_t, std::size_t>>{{3, 3}, {3, 8}, {18, 5}}) {
    const Layout layout{.seeds = seeds, .arms = arms, .sd = 0.0047};
    const double error = layout.sd * std::sqrt(2.0 / static_cast<double>(seeds)),
                 freedom = static_cast<double>(layout.freedom());
    for (const double value : {-0.013, 0.0, 0.004}) {
      const Difference difference = difference_in(layout, value);
      EXPECT_EQ(difference.value, value);
      EXPECT_NEAR(difference.p, 1 - within(std::abs(value) / error, freedom), 1e-11) << seeds;
      EXPECT_NEAR(within((difference.interval.high - value) / error, freedom), 0.95, 1e-11) << seeds;
      EXPECT_NEAR(difference.interval.high - value, value - difference.interval.low, 1e-15);
    }
  }
}

TEST(Layout, OfTheSdIsChiSquare) {
  for (const std::size_t arms : {2u, 4u, 8u}) {
    const Layout layout{.seeds = 5, .arms = arms, .sd = 0.01};
    const double freedom = static_cast<double>(layout.freedom());
    const auto below = [&](double square) {  // P(chi-square < square)
      const double constant = -freedom / 2 * std::log(2.0) - std::lgamma(freedom / 2);
      return integral([&](double x) { return x == 0 ? 0 : std::exp(constant + (freedom / 2 - 1) * std::log(x) - x / 2); }, 0,
                      square);
    };
    const Interval interval = sd_interval(layout);
    EXPECT_NEAR(below(freedom * std::pow(0.01 / interval.low, 2)), 0.975, 1e-9);
    EXPECT_NEAR(below(freedom * std::pow(0.01 / interval.high, 2)), 0.025, 1e-9);
  }
}

TEST(Layout, WithoutFreedomKnowsNothing) {
  for (const Losses& losses : {Losses{}, Losses{{1, 2, 3}}, Losses{{1}, {2}}}) {
    const Layout layout = layout_of(losses);
    EXPECT_EQ(layout.freedom(), 0u);
    EXPECT_TRUE(std::isnan(layout.sd));
    EXPECT_TRUE(std::isnan(difference_in(layout, 1).p));
    EXPECT_TRUE(std::isnan(difference_in(layout, 1).interval.low));
    EXPECT_TRUE(std::isnan(sd_interval(layout).high));
    EXPECT_TRUE(std::isnan(detectable_difference(layout)));
  }
  EXPECT_EQ(message([] {
              layout_of({{1, 2}, {1}});
            }),
            "an arm of 1 losses beside one of 2; valid: one of each arm for every seed");
}

TEST(Layout, EqualDifferencesAreCertain) {
  const Layout layout = layout_of({{1, 2, 3}, {1.5, 2.5, 3.5}, {2, 3, 4}});
  EXPECT_EQ(layout.sd, 0.0);
  EXPECT_EQ(difference_in(layout, -0.5).p, 0.0);
  EXPECT_EQ(difference_in(layout, -0.5).interval.high, -0.5);
  EXPECT_EQ(difference_in(layout, 0).p, 1.0);
}

// Three seeds: the variance of the pair has 2 degrees of freedom, and F has the closed tail (1 + 2 F / d)^(-d / 2).
TEST(Layout, APairThatScattersMoreStandsAlone) {
  Normal normal(3);
  int alone = 0, without_noisy = 0;
  for (int study = 0; study < 400; ++study) {
    const Losses losses = simulate(normal, 3, {0.006, 0.006, 0.004, 0.004, 0.004});
    const double all = std::pow(residual_sd(losses), 2) * 8, own = std::pow(residual_sd({losses[0], losses[1]}), 2) * 2;
    const double ratio = own / 2 / ((all - own) / 6), tail = std::pow(1 + 2 * ratio / 6, -3);
    const std::size_t arms = layout_for(losses, 0, 1).arms;
    alone += tail < kApart;
    without_noisy += arms == 3 || arms == 4;
    if (arms == 2 || arms == 5) {
      EXPECT_EQ(arms, tail < kApart ? 2u : 5u) << study;
    }
  }
  EXPECT_GT(alone, 100);
  EXPECT_LT(alone, 200);
  EXPECT_LT(without_noisy, 5);
}

// Closed testing by Bonferroni: a test is found if every set of tests that it is in has a small enough one.
TEST(Holm, IsClosedTesting) {
  const std::vector<std::vector<double>> all{
      {0.03}, {0.04, 0.01}, {0.01, 0.02, 0.03, 0.005}, {0.2, 0.9, 0.001}, {0.5, 0.5, 0.5}};
  for (const std::vector<double>& p : all) {
    const std::vector<double> adjusted = holm(p);
    for (std::size_t i = 0; i < p.size(); ++i) {
      double worst = 0;
      for (unsigned set = 1; set < 1u << p.size(); ++set) {
        if ((set >> i & 1) == 0) continue;
        double least = 1, size = 0;
        for (std::size_t j = 0; j < p.size(); ++j) {
          if ((set >> j & 1) != 0) least = std::min(least, p[j]), ++size;
        }
        worst = std::max(worst, std::min(1.0, size * least));
      }
      EXPECT_DOUBLE_EQ(adjusted[i], worst) << i << " of " << p.size();
    }
  }
}

TEST(Holm, WhatIsNoTestDoesNotCount) {
  const std::vector<double> adjusted = holm({0.02, std::numeric_limits<double>::quiet_NaN(), 0.03});
  EXPECT_DOUBLE_EQ(adjusted[0], 0.04);
  EXPECT_TRUE(std::isnan(adjusted[1]));
  EXPECT_DOUBLE_EQ(adjusted[2], 0.04);
  EXPECT_TRUE(holm({}).empty());
}

// The fraction of studies without any difference in which that of the first two arms has p < 0.05.
double size_of(std::size_t seeds, const std::vector<double>& sds, bool pooled) {
  constexpr int kStudies = 10000;
  Normal normal(seeds);
  int found = 0;
  for (int study = 0; study < kStudies; ++study) {
    const Losses losses = simulate(normal, seeds, sds);
    const Layout layout = pooled ? layout_of(losses) : layout_for(losses, 0, 1);
    found += difference_in(layout, mean_of(losses[0]) - mean_of(losses[1])).p < 0.05;
  }
  return static_cast<double>(found) / kStudies;
}

// The rates of docs/studies.md, in percent, within about four standard errors of the simulation.
TEST(LayoutSimulated, FalsePositiveRates) {
  struct Row {
    std::size_t seeds;
    double equal, noisy_pooled, noisy;
  };
  for (const std::size_t seeds : {3u, 6u, 20u}) {  // an arm of its own noise says nothing of the others'
    const std::vector<double> other{0.005, 0.005, 0.005, 0.005, 0.05};
    EXPECT_LT(100 * size_of(seeds, other, true), 1) << seeds;
    EXPECT_NEAR(100 * size_of(seeds, other, false), seeds == 3 ? 4.0 : 4.9, 1.0) << seeds;
  }
  for (const Row& row : {Row{3, 4.3, 11.4, 8.6}, Row{5, 4.3, 11.6, 7.8}, Row{20, 4.5, 11.8, 5.8}}) {
    const std::vector<double> equal(5, 0.005), noisy{0.01, 0.005, 0.005, 0.005, 0.005};
    EXPECT_NEAR(100 * size_of(row.seeds, equal, true), 5, 0.9) << row.seeds;
    EXPECT_NEAR(100 * size_of(row.seeds, equal, false), row.equal, 0.8) << row.seeds;
    EXPECT_NEAR(100 * size_of(row.seeds, noisy, true), row.noisy_pooled, 1.3) << row.seeds;
    EXPECT_NEAR(100 * size_of(row.seeds, noisy, false), row.noisy, 1.1) << row.seeds;
  }
}

// Seeds are added until something is found: docs/studies.md has the rate.
TEST(LayoutSimulated, LooksRaiseTheFalsePositiveRate) {
  constexpr int kStudies = 4000;
  Normal normal(9);
  int once = 0, any = 0;
  for (int study = 0; study < kStudies; ++study) {
    const Losses all = simulate(normal, 18, std::vector<double>(4, 0.005));
    bool found = false;
    for (const std::size_t seeds : {3u, 5u, 8u, 12u, 18u}) {
      Losses losses = all;
      for (std::vector<double>& arm : losses) arm.resize(seeds);
      const double p = difference_in(layout_for(losses, 0, 1), mean_of(losses[0]) - mean_of(losses[1])).p;
      found = found || p < 0.05;
      if (seeds == 18) once += p < 0.05;
    }
    any += found;
  }
  EXPECT_NEAR(100.0 * once / kStudies, 4.5, 1.3);
  EXPECT_NEAR(100.0 * any / kStudies, 14, 2);
}

}  // namespace statistics_layout_test
}  // namespace cautious::study
