// The control shuffled: density and amount of cautious decay in the same state, and nothing of its signs.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace shuffled_decay_test {

using fixture::make;
using fixture::Values;

constexpr double kLr = 0x1p-6, kDecay = 0.5;

// A tensor under sgd, so that u = g is known, with a mask that prefers small parameters as that of a trained network does:
// the larger |x|, the more often u and x have opposite signs.
struct Tensor {
  std::vector<float> x, g;
  Tensor(std::size_t n, std::uint64_t seed) : g(n), values_(seed) {
    for (std::size_t i = 0; i < n; ++i) x.push_back(static_cast<float>(gaussian()));
  }
  void draw() {
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double away = 0.4 + 0.4 * std::erf(std::fabs(x[i]));
      const double size = values_.uniform() * 0.1;
      g[i] = static_cast<float>(((x[i] < 0) == (values_.uniform() < away) ? 1 : -1) * size);
    }
  }
  bool strikes(std::size_t i) const { return !(g[i] * x[i] < 0); }  // no product underflows here

 private:
  double gaussian() { return std::sqrt(-2 * std::log(values_.uniform())) * std::cos(6.283185307179586 * values_.uniform()); }
  Values values_;
};

cautious::Recipe recipe_with(const std::string& decay) { return make({"sgd", ""}, decay, kDecay); }

// What a decay did in each of some steps, and what cautious decay would have done in the same state.
struct Compared {
  double count = 0, amount = 0;               // summed relative differences
  double count_noise = 0, amount_noise = 0;   // their standard deviations if every coordinate tosses a coin
  double worst_count = 0, worst_amount = 0;   // of a single step, in standard deviations
  double with_sign = 0, with_sign_noise = 0;  // covariance of the two masks, given the size
};

Compared compare(std::size_t n, int steps, cautious::Recipe recipe, double density = -1) {
  Tensor tensor(n, 7 + n);
  if (density >= 0) cautious::set(recipe, "density", std::to_string(density));
  cautious::Optimizer optimizer(recipe, {.seed = 3, .parallel_for = {}});
  optimizer.add("x", {static_cast<std::int64_t>(n)}, tensor.x.data(), tensor.g.data());
  Compared all;
  double count2 = 0, amount2 = 0;
  for (int t = 0; t < steps; ++t) {
    tensor.draw();
    const Tensor before = tensor;
    double count = 0, amount = 0, squares = 0;
    for (std::size_t i = 0; i < n; ++i) {
      if (!before.strikes(i)) continue;
      const double size = std::fabs(before.x[i]);
      count += 1, amount += size, squares += size * size;
    }
    const auto& done = optimizer.step({.lr = kLr}).total;
    const double open = 1 - count / static_cast<double>(n);  // about: the odds depend on the size
    const double count_noise = std::sqrt(count * open) / count, amount_noise = std::sqrt(squares * open) / amount;
    const double count_off = static_cast<double>(done.decayed) / count - 1,
                 amount_off = done.budget / (kLr * kDecay * amount) - 1;
    all.count += count_off / steps, all.amount += amount_off / steps;
    count2 += count_noise * count_noise, amount2 += amount_noise * amount_noise;
    all.worst_count = std::max(all.worst_count, std::fabs(count_off) / count_noise);
    all.worst_amount = std::max(all.worst_amount, std::fabs(amount_off) / amount_noise);
    // Given the size, the mask of cautious is a coin of known odds, so its difference from them is free of the size.
    for (std::size_t i = 0; i < n; ++i) {
      const double odds = 1 - (0.4 + 0.4 * std::erf(std::fabs(before.x[i])));
      const bool moved =
          std::fabs(tensor.x[i] - (before.x[i] - kLr * before.g[i])) > 0.25 * kLr * kDecay * std::fabs(before.x[i]);
      all.with_sign += (before.strikes(i) - odds) * (moved - odds);
      all.with_sign_noise += odds * (1 - odds) * odds * (1 - odds);
    }
  }
  all.count_noise = std::sqrt(count2) / steps, all.amount_noise = std::sqrt(amount2) / steps;
  all.with_sign_noise = std::sqrt(all.with_sign_noise);
  return all;
}

TEST(ShuffledDecay, HasTheDensityAndTheAmountOfCautious) {
  for (const auto& [n, steps] : {std::pair<std::size_t, int>{500, 400}, {4096, 100}, {40000, 20}}) {
    SCOPED_TRACE(n);
    const Compared off = compare(n, steps, recipe_with("shuffled"));
    EXPECT_LE(off.worst_count, 4.5);
    EXPECT_LE(off.worst_amount, 4.5);
    EXPECT_LE(std::fabs(off.count), 4 * off.count_noise);
    EXPECT_LE(std::fabs(off.amount), 4 * off.amount_noise + (n < 1000 ? 0.02 : 0.002));
    EXPECT_LE(off.amount_noise, 0.005);
  }
  // The same comparison notices a mask of the same density that does not look at sizes.
  const Compared random = compare(4096, 50, recipe_with("random"), 0.4);
  EXPECT_GE(random.amount, 0.1);
}

TEST(ShuffledDecay, KnowsNothingOfTheSigns) {
  const Compared off = compare(4096, 60, recipe_with("shuffled")), same = compare(4096, 60, recipe_with("cautious"));
  EXPECT_LE(std::fabs(off.with_sign), 4 * off.with_sign_noise + 0.02 * same.with_sign);
  EXPECT_GE(same.with_sign, 100 * same.with_sign_noise) << "the measure sees a mask that does";
}

// One step of sgd with x and g as given; which parameters it shrank, apart from -lr g.
std::vector<char> shrunk(std::vector<double> x, std::vector<double> g, std::uint64_t seed = 0) {
  cautious::Optimizer optimizer(recipe_with("shuffled"), {.seed = seed, .parallel_for = {}});
  const std::vector<double> before = x;
  optimizer.add("x", {static_cast<std::int64_t>(x.size())}, x.data(), g.data());
  optimizer.step({.lr = kLr});
  std::vector<char> which;
  for (std::size_t i = 0; i < x.size(); ++i) {
    which.push_back(std::fabs(x[i] + kLr * g[i]) < (1 - kLr * kDecay / 2) * std::fabs(before[i]));
  }
  return which;
}

TEST(ShuffledDecay, ZerosAndSizesHaveOddsOfTheirOwn) {
  // Zeros always count as struck, which must not open the mask of anything else.
  std::vector<double> x(300, 0.0), g(300, 1.0);
  std::fill(x.begin() + 100, x.begin() + 200, -1.0);
  std::fill(x.begin() + 200, x.end(), 64.0);
  const auto which = shrunk(x, g);
  for (std::size_t i = 0; i < 200; ++i) EXPECT_FALSE(which[i]) << i;
  for (std::size_t i = 200; i < 300; ++i) EXPECT_TRUE(which[i]) << i;
}

// Sizes of fewer than 64 are thrown together, so that a coordinate cannot be its own bin.
TEST(ShuffledDecay, FewCoordinatesShareTheirOdds) {
  std::vector<double> x, g;
  for (int i = 0; i < 40; ++i) x.push_back(std::ldexp(1.0, i % 20)), g.push_back(i % 2 == 0 ? 1e-3 : -1e-3);
  double opposite = 0, agreeing = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto which = shrunk(x, g, seed);
    for (std::size_t i = 0; i < x.size(); ++i) (i % 2 == 0 ? agreeing : opposite) += which[i];
  }
  const double noise = std::sqrt(200 * 20 * 0.25);
  EXPECT_NEAR(agreeing, 2000, 4 * noise);
  EXPECT_NEAR(opposite, 2000, 4 * noise);
}

}  // namespace shuffled_decay_test
