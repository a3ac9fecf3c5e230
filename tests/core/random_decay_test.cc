// The random decay: documented bits, the asked density, and coins that do not know each other.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "oracle.h"

namespace random_decay_test {

using Coins = std::vector<std::vector<double>>;  // [step][coordinate], 1 where the coordinate decayed

// Recovers the coins from what they did: with u = 0 only decayed coordinates move.
Coins toss(std::size_t steps, std::size_t n, double density, std::uint64_t seed, const std::string& name = "x") {
  cautious::Recipe recipe = cautious::recipe("sgd");
  recipe.decay = cautious::Random{density};
  recipe.weight_decay = 0.5;
  cautious::Options options;
  options.seed = seed;
  cautious::Optimizer optimizer(recipe, options);
  std::vector<float> x(n, 1), g(n, 0);
  optimizer.add(name, {static_cast<std::int64_t>(n)}, x.data(), g.data());
  Coins coins(steps, std::vector<double>(n));
  for (auto& coin : coins) {
    x.assign(n, 1);
    const auto& report = optimizer.step({.lr = 0.5});
    std::int64_t decayed = 0;
    for (std::size_t i = 0; i < n; ++i) decayed += x[i] != 1, coin[i] = x[i] != 1;
    EXPECT_EQ(report.total.decayed, decayed);
  }
  return coins;
}

double mean(const Coins& coins) {
  double sum = 0, count = 0;
  for (const auto& row : coins) {
    for (const double coin : row) sum += coin, ++count;
  }
  return sum / count;
}

// Correlation of each coin with the one `steps` later and `places` further on.
double correlation(const Coins& coins, double density, std::size_t steps, std::size_t places) {
  double sum = 0, count = 0;
  for (std::size_t t = 0; t + steps < coins.size(); ++t) {
    for (std::size_t i = 0; i + places < coins[t].size(); ++i) {
      sum += (coins[t][i] - density) * (coins[t + steps][i + places] - density);
      ++count;
    }
  }
  return sum / count / (density * (1 - density)) * std::sqrt(count);  // in standard deviations
}

TEST(RandomDecay, TossesTheDocumentedCoins) {
  const auto coins = toss(3, 1000, 0.3, 42, "blocks.0.weight");
  const double odds = std::floor(0.3 * 16777216 + 0.5);
  for (std::size_t t = 0; t < coins.size(); ++t) {
    for (std::size_t i = 0; i < coins[t].size(); ++i) {
      const auto bits = oracle::random_bits(42, 1, static_cast<std::int64_t>(t + 1), "blocks.0.weight", i);
      ASSERT_EQ(coins[t][i] == 1, (bits >> 8) < odds) << "step " << t << " coordinate " << i;
    }
  }
}

TEST(RandomDecay, HasTheAskedDensity) {
  for (const double density : {0.0, 1e-3, 0.3, 0.5, 0.97, 1.0}) {
    const double sigma = std::sqrt(density * (1 - density) / (20 * 10007.0));
    EXPECT_LE(std::fabs(mean(toss(20, 10007, density, 1)) - density), 4 * sigma) << density;
  }
}

TEST(RandomDecay, CoinsAreIndependent) {
  constexpr double density = 0.4;
  const Coins coins = toss(40, 4096, density, 7);
  for (const std::size_t steps : {0, 1, 2, 8}) {
    for (const std::size_t places : {0, 1, 2, 3, 7, 8, 16, 64, 1024}) {
      if (steps == 0 && places == 0) continue;
      EXPECT_LE(std::fabs(correlation(coins, density, steps, places)), 4.5) << steps << " steps, " << places << " places";
    }
  }
}

TEST(RandomDecay, SeedsAndNamesHaveCoinsOfTheirOwn) {
  constexpr double density = 0.4;
  const Coins base = toss(4, 20000, density, 7);
  for (const Coins& other : {toss(4, 20000, density, 8), toss(4, 20000, density, 7, "y")}) {
    double sum = 0;
    for (std::size_t t = 0; t < 4; ++t) {
      for (std::size_t i = 0; i < 20000; ++i) sum += (base[t][i] - density) * (other[t][i] - density);
    }
    EXPECT_LE(std::fabs(sum / (density * (1 - density)) / std::sqrt(80000.0)), 4.5);
  }
  EXPECT_EQ(base, toss(4, 20000, density, 7)) << "the same seed and name are the same coins";
}

TEST(RandomDecay, DensityCanChangeBetweenSteps) {
  cautious::Recipe recipe = fixture::make({"sgd", ""}, "random");
  cautious::Optimizer optimizer(recipe);
  std::vector<float> x(10000, 1), g(10000, 0);
  optimizer.add("x", {10000}, x.data(), g.data());
  for (const double density : {1.0, 0.0, 0.25}) {
    optimizer.set_density(0, density);
    const double sigma = std::sqrt(density * (1 - density) / 10000);
    EXPECT_LE(std::fabs(optimizer.step({.lr = 0.1}).total.ratio() - density), 4 * sigma);
  }
}

}  // namespace random_decay_test
