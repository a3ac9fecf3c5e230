// bf16 parameters and moments: one rounding per step, and what each way of rounding keeps of a decay that is smaller than it.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "fixture.h"
#include "oracle.h"

namespace bf16_test {

using cautious::Element;
using cautious::Options;
using cautious::Rounding;
using fixture::Bf16;
using fixture::every_decay;
using fixture::every_rule;
using fixture::make;
using fixture::run;

Options with(Rounding rounding) {
  Options options;
  options.rounding = rounding;
  return options;
}

std::uint32_t bits_of(float value) {
  std::uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

template <class T>
double mean(const std::vector<T>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0,
                         [](double sum, T value) { return sum + fixture::to_double(value); }) /
         static_cast<double>(values.size());
}

// The f32 weights behind a bf16 run: under split rounding the remainder belongs to the weight.
std::vector<float> exact(const fixture::Run<Bf16>& result) {
  std::vector<float> weights(result.x.size());
  std::transform(result.x.begin(), result.x.end(), weights.begin(), fixture::widen);
  for (const auto& [name, data] : result.state) {
    for (std::size_t i = 0; name == "low I16" && i < weights.size(); ++i) {
      std::int16_t low;
      std::memcpy(&low, data.data() + 2 * i, sizeof low);
      const std::uint32_t whole = (std::uint32_t{result.x[i].bits} << 16) + static_cast<std::uint32_t>(std::int32_t{low});
      std::memcpy(&weights[i], &whole, sizeof whole);
    }
  }
  return weights;
}
std::vector<float> exact(const fixture::Run<float>& result) { return result.x; }

// Mean of x after 1000 steps from 1 with u = 0 and lr wd = 1e-4.
template <class T>
double decayed_mean(std::size_t n, Rounding rounding, const std::string& decay) {
  const std::vector<std::vector<T>> still(1000, fixture::constant<T>(n, 0));
  return mean(exact(run(make({"adam", ""}, decay), fixture::constant<T>(n, 1), still, with(rounding),
                        [](std::size_t) { return cautious::StepInput{.lr = 1e-3}; })));
}

TEST(Bf16, DecaySurvives) {
  for (const std::string decay : {"decoupled", "cautious"}) {
    SCOPED_TRACE(decay);
    EXPECT_NEAR(decayed_mean<float>(4, Rounding::nearest, decay), 0.9048, 5e-5);
    EXPECT_NEAR(decayed_mean<Bf16>(4096, Rounding::stochastic, decay), 0.9048, 0.009);
    EXPECT_NEAR(decayed_mean<Bf16>(4, Rounding::split, decay), 0.9048, 5e-5);
    EXPECT_EQ(decayed_mean<Bf16>(4, Rounding::nearest, decay), 1.0);
  }
}

// Two halves hold exactly the f32 weights of a run whose starting values and gradients are the same.
TEST(Bf16, SplitIsF32BitByBit) {
  constexpr std::size_t n = 1027, steps = 20;
  const auto x = fixture::weights<Bf16>(n, 1);
  const auto g = fixture::gradients<Bf16>(steps, n, 2);
  const auto widened = [](const std::vector<Bf16>& values) {
    std::vector<float> wide(values.size());
    std::transform(values.begin(), values.end(), wide.begin(), fixture::widen);
    return wide;
  };
  std::vector<std::vector<float>> wide_g(steps);
  std::transform(g.begin(), g.end(), wide_g.begin(), widened);
  const auto gently = [](std::size_t) { return cautious::StepInput{.lr = 1e-3}; };
  for (const auto& rule : every_rule()) {
    for (const auto& decay : every_decay()) {
      SCOPED_TRACE(rule.text() + " " + decay);
      const auto split = run(make(rule, decay), x, g, with(Rounding::split), gently);
      const auto full = run(make(rule, decay), widened(x), wide_g, {}, gently);
      EXPECT_EQ(
          std::count_if(split.state.begin(), split.state.end(), [](const auto& piece) { return piece.first == "low I16"; }), 1);
      EXPECT_EQ(fixture::bytes(exact(split)), fixture::bytes(full.x));
    }
  }
}

// Bits that a block of 256 shares must not show in a sum: the number that go up has the mean and the variance of coins.
TEST(RoundingBits, HaveTheMeanAndVarianceOfCoins) {
  constexpr std::size_t kBlocks = 4000, kBlock = 256;
  for (const double p : {0.01, 0.25, 0.5, 0.9}) {
    const auto least = static_cast<std::uint32_t>(65536 * (1 - p));
    double sum = 0, squares = 0, neighbours = 0, before = 0;
    for (std::size_t block = 0; block < kBlocks; ++block) {
      double up = -p * kBlock;
      for (std::size_t i = 0; i < kBlock; ++i) up += oracle::rounding_bits(3, 1, "x", block * kBlock + i) >= least;
      sum += up, squares += up * up, neighbours += up * before, before = up;
    }
    const double variance = kBlock * p * (1 - p), blocks = kBlocks;
    EXPECT_NEAR(sum / blocks, 0, 4 * std::sqrt(variance / blocks) + 0.004) << p;
    EXPECT_NEAR(squares / blocks / variance, 1, 0.1) << p;
    EXPECT_NEAR(neighbours / blocks / variance, 0, 0.07) << p;
  }
}

// One step from bf16 values in f32 tells what is rounded; stochastic rounding must add the oracle's bits to exactly that.
TEST(Bf16, StochasticRoundingUsesTheDocumentedBits) {
  constexpr std::size_t n = 3000;
  const auto x = fixture::weights<Bf16>(n, 3);
  const auto g = fixture::weights<Bf16>(n, 4);
  std::vector<float> wide(n), wide_g(n);
  std::transform(x.begin(), x.end(), wide.begin(), fixture::widen);
  std::transform(g.begin(), g.end(), wide_g.begin(), fixture::widen);
  Options options = with(Rounding::stochastic);
  options.seed = 0xfeedfacecafeull;
  const auto rounded = run(make({"adam", ""}, "cautious"), x, {g}, options);
  const auto full = run(make({"adam", ""}, "cautious"), wide, {wide_g});
  for (std::size_t i = 0; i < n; ++i) {
    const std::uint32_t expected = (bits_of(full.x[i]) + oracle::rounding_bits(options.seed, 1, "x", i)) >> 16;
    ASSERT_EQ(rounded.x[i].bits, expected) << "coordinate " << i;
  }
}

// From 1 one step goes 0.3 of the way to the next smaller value; the mean over coordinates and steps must be that.
TEST(Bf16, StochasticRoundingIsUnbiased) {
  constexpr std::size_t n = 100000;
  const double gap = 0x1p-8, part = 0.3;
  for (std::uint64_t seed = 0; seed < 4; ++seed) {
    Options options = with(Rounding::stochastic);
    options.seed = seed;
    const auto result = run(make({"sgd", ""}, "none"), fixture::constant<Bf16>(n, 1), {fixture::constant<Bf16>(n, 1)}, options,
                            [&](std::size_t) { return cautious::StepInput{.lr = gap * part}; });
    EXPECT_NEAR((1 - mean(result.x)) / gap, part, 4 * std::sqrt(part * (1 - part) / n)) << "seed " << seed;
  }
}

TEST(Bf16, NearestRoundsTiesToEvenAndKeepsNan) {
  const double gap = 0x1p-7;  // between 1 and 2
  std::vector<Bf16> x = fixture::constant<Bf16>(4, 1);
  x[1] = fixture::to_element<Bf16>(1 + gap);
  const std::vector<float> g{static_cast<float>(-gap / 2), static_cast<float>(-gap / 2), static_cast<float>(-gap * 0.49),
                             std::numeric_limits<float>::quiet_NaN()};
  cautious::Optimizer optimizer(make({"sgd", ""}, "none"));
  cautious::Parameter parameter;
  parameter.name = "x", parameter.shape = {4}, parameter.element = Element::bf16, parameter.x = x.data(),
  parameter.g = g.data();
  optimizer.add(parameter);
  optimizer.step({.lr = 1});
  EXPECT_EQ(fixture::widen(x[0]), 1);
  EXPECT_EQ(fixture::widen(x[1]), static_cast<float>(1 + 2 * gap));
  EXPECT_EQ(fixture::widen(x[2]), 1);
  EXPECT_TRUE(std::isnan(fixture::widen(x[3])));
  EXPECT_NE(x[3].bits & 0x40, 0) << "a quiet NaN";
}

// bf16 moments are the same run up to the rounding of the moments: 2^-9 each.
TEST(Bf16, MomentsStayCloseToF32) {
  constexpr std::size_t n = 1000, steps = 50;
  const auto x = fixture::weights<float>(n, 5);
  const auto g = fixture::gradients<float>(steps, n, 6);
  const auto gently = [](std::size_t) { return cautious::StepInput{.lr = 1e-3}; };
  Options narrow;
  narrow.moments = Element::bf16;
  for (const fixture::RuleName& rule : {fixture::RuleName{"sgdm", ""}, {"adam", ""}}) {
    SCOPED_TRACE(rule.text());
    const auto full = run(make(rule, "cautious"), x, g, {}, gently), half = run(make(rule, "cautious"), x, g, narrow, gently);
    double moved = 0, apart = 0;
    for (std::size_t i = 0; i < n; ++i) {
      moved += std::fabs(full.x[i] - x[i]);
      apart += std::fabs(full.x[i] - half.x[i]);
    }
    EXPECT_LT(apart, 0.02 * moved);
    EXPECT_GT(apart, 0) << "moments are not bf16";
    for (const auto& [name, data] : half.state) {
      EXPECT_TRUE(name == "m BF16" || name == "v BF16") << name;
      EXPECT_EQ(data.size(), 2 * n);
    }
  }
}

// An f32 gradient beside a bf16 parameter loses nothing on the way in.
TEST(Bf16, TakesF32Gradients) {
  constexpr std::size_t n = 333;
  auto x = fixture::weights<Bf16>(n, 7);
  std::vector<float> wide(n);
  std::transform(x.begin(), x.end(), wide.begin(), fixture::widen);
  const auto g = fixture::weights<float>(n, 8);
  cautious::Optimizer optimizer(make({"sgd", ""}, "cautious"), with(Rounding::split));
  cautious::Parameter parameter;
  parameter.name = "x", parameter.shape = {n}, parameter.element = Element::bf16, parameter.x = x.data(),
  parameter.g = g.data();
  optimizer.add(parameter);
  const cautious::Tally tally = optimizer.step(fixture::rates(0)).total;
  const auto full = run(make({"sgd", ""}, "cautious"), wide, {g});
  EXPECT_TRUE(fixture::same(tally, full.reports[0].total));
  for (std::size_t i = 0; i < n; ++i) EXPECT_NEAR(fixture::widen(x[i]), full.x[i], std::fabs(full.x[i]) * 0x1p-8);
}

}  // namespace bf16_test
