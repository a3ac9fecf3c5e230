// The step report and the gradient helpers against the oracle: counts exactly, sums to 1e-6, clips to rounding.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include "fixture.h"
#include "oracle.h"

namespace report_test {

using cautious::Options;
using fixture::make;
using oracle::Vector;

constexpr std::size_t kSizes[] = {1, 70, 1000, 4097};

void near(double got, double want) { EXPECT_LE(std::fabs(got - want), 1e-6 * std::fabs(want)) << got << " and " << want; }

// Four f64 tensors stepped by the library and, from the same start, by the oracle alone.
class Pair {
 public:
  Pair(const fixture::RuleName& rule, const std::string& decay, const Options& options, const std::string& coupling = "plain")
      : options_(options), optimizer_([&] {
          cautious::Recipe recipe = make(rule, decay);
          cautious::set(recipe, "coupling", coupling);
          Options alone = options;
          alone.threads = 1;
          return cautious::Optimizer(recipe, alone);
        }()) {
    setup_.rule = rule.rule, setup_.decay = decay, setup_.coupling = coupling, setup_.weight_decay = 0.1;
    if (!rule.k.empty()) setup_.k = rule.k, setup_.p = 2.5, setup_.e = 0.2, setup_.fraction = 0.25;
    if (rule.rule != "adam") setup_.beta2 = 0.99;
    setup_.update_rms_clip = options.update_rms_clip, setup_.seed = options.seed;
    for (std::size_t k = 0; k < 4; ++k) {
      x_[k] = fixture::weights<double>(kSizes[k], k);
      memory_[k] = {x_[k], Vector(kSizes[k]), Vector(kSizes[k]), x_[k], 0};
    }
    for (std::size_t k = 0; k < 4; ++k) {
      optimizer_.add("t" + std::to_string(k), {static_cast<std::int64_t>(kSizes[k])}, x_[k].data(), g_[k].data());
    }
  }

  void step(std::size_t t) {
    double squares = 0;
    for (std::size_t k = 0; k < 4; ++k) {
      g_[k] = fixture::weights<double>(kSizes[k], 50 * (t + 1) + k);
      optimizer_.bind(k, x_[k].data(), g_[k].data());
      squares += oracle::norm(g_[k]) * oracle::norm(g_[k]);
    }
    const cautious::StepInput input = fixture::rates(t);
    oracle::Rates rates{input.lr, input.lr_max, input.decay_factor, 1};
    if (options_.grad_clip > 0) rates.gradient_scale = std::min(1.0, options_.grad_clip / std::sqrt(squares));
    const cautious::StepReport& report = optimizer_.step(input);
    EXPECT_EQ(report.step, static_cast<std::int64_t>(t + 1));
    EXPECT_FALSE(report.skipped);
    near(report.clip_scale, rates.gradient_scale);
    oracle::Outcome total;
    for (std::size_t k = 0; k < 4; ++k) {
      setup_.name = "t" + std::to_string(k);
      const oracle::Outcome out = oracle::step(setup_, memory_[k], g_[k], rates);
      compare(report.tensors[k], out, static_cast<std::int64_t>(kSizes[k]));
      total.decayed += out.decayed, total.active += out.active;
      total.x2 += out.x2, total.g2 += out.g2, total.u2 += out.u2, total.budget += out.budget;
      for (std::size_t i = 0; i < kSizes[k]; ++i)
        ASSERT_NEAR(x_[k][i], memory_[k].x[i], 1e-13) << "tensor " << k << " at " << i;
    }
    compare(report.total, total, 1 + 70 + 1000 + 4097);
  }

 private:
  static void compare(const cautious::Tally& got, const oracle::Outcome& want, std::int64_t count) {
    EXPECT_EQ(got.count, count);
    EXPECT_EQ(got.decayed, want.decayed);
    EXPECT_EQ(got.active, want.active);
    EXPECT_EQ(got.nonfinite, 0);
    const auto n = static_cast<double>(count);
    near(got.ratio(), static_cast<double>(want.decayed) / n);
    near(got.ratio_strict(), static_cast<double>(want.active) / n);
    near(got.rms_x(), std::sqrt(want.x2 / n));
    near(got.rms_g(), std::sqrt(want.g2 / n));
    near(got.rms_u(), std::sqrt(want.u2 / n));
    near(got.budget, want.budget);
  }

  Options options_;
  cautious::Optimizer optimizer_;
  oracle::Setup setup_;
  oracle::Memory memory_[4];
  Vector x_[4], g_[4];
};

// Free-running: eight steps without taking over the library's state.
TEST(Report, AgreesWithTheOracleForEveryRecipe) {
  for (const auto& rule : fixture::every_rule()) {
    for (const std::string& decay : fixture::every_decay()) {
      SCOPED_TRACE(rule.text() + " " + decay);
      Pair pair(rule, decay, {});
      for (std::size_t t = 0; t < 8 && !HasFailure(); ++t) pair.step(t);
    }
  }
}

TEST(Report, AgreesWithTheOracleForEveryCoupling) {
  for (const std::string coupling : {"plain", "corrected", "independent", "squared"}) {
    for (const std::string decay : {"cautious", "selective"}) {
      SCOPED_TRACE(coupling + " " + decay);
      Pair pair({"adam", ""}, decay, {}, coupling);
      for (std::size_t t = 0; t < 4; ++t) pair.step(t);
    }
  }
}

TEST(Clip, GlobalNormAndUpdateRmsAgreeWithTheOracle) {
  for (const auto& rule : fixture::every_rule()) {
    for (const std::string decay : {"cautious", "gradient", "shuffled", "layerwise", "selective", "anchored"}) {
      for (const auto& [norm, rms] : {std::pair{0.5, 0.0}, {0.0, 0.3}, {0.5, 0.3}, {1e9, 1e9}}) {
        SCOPED_TRACE(rule.text() + " " + decay + " grad_clip " + std::to_string(norm) + " update_rms_clip " +
                     std::to_string(rms));
        Options options;
        options.grad_clip = norm, options.update_rms_clip = rms;
        Pair pair(rule, decay, options);
        for (std::size_t t = 0; t < 3 && !HasFailure(); ++t) pair.step(t);
      }
    }
  }
}

TEST(Clip, BelowTheLimitNothingChanges) {
  const auto x = fixture::weights<float>(500, 1);
  const auto g = fixture::gradients<float>(3, 500, 2);
  Options loose;
  loose.grad_clip = 1e6, loose.update_rms_clip = 1e6;
  fixture::expect_same(fixture::run(make({"adam", ""}, "cautious"), x, g),
                       fixture::run(make({"adam", ""}, "cautious"), x, g, loose));
}

TEST(Report, WithoutNormsSumsAreZeroAndParametersTheSame) {
  const auto x = fixture::weights<float>(1500, 1);
  const auto g = fixture::gradients<float>(3, 1500, 2);
  Options quiet;
  quiet.norms = cautious::Norms::off;
  for (const auto& rule : fixture::every_rule()) {
    for (const std::string& decay : fixture::every_decay()) {
      SCOPED_TRACE(rule.text() + " " + decay);
      const auto on = fixture::run(make(rule, decay), x, g), off = fixture::run(make(rule, decay), x, g, quiet);
      EXPECT_EQ(fixture::bytes(on.x), fixture::bytes(off.x));
      EXPECT_EQ(on.state, off.state);
      for (std::size_t t = 0; t < 3; ++t) {
        const cautious::Tally &a = on.reports[t].total, &b = off.reports[t].total;
        EXPECT_EQ(b.x2 + b.g2 + b.u2 + b.budget, 0);
        EXPECT_EQ(a.count, b.count);
        EXPECT_EQ(a.decayed, b.decayed);
        EXPECT_EQ(a.active, b.active);
      }
    }
  }
}

TEST(Report, ClipsWorkWithoutNorms) {
  const auto x = fixture::weights<float>(1500, 1);
  const auto g = fixture::gradients<float>(3, 1500, 2);
  Options loud;
  loud.grad_clip = 0.5, loud.update_rms_clip = 0.3;
  Options quiet = loud;
  quiet.norms = cautious::Norms::off;
  EXPECT_EQ(fixture::run(make({"adam", ""}, "layerwise"), x, g, loud).x,
            fixture::run(make({"adam", ""}, "layerwise"), x, g, quiet).x);
}

TEST(Report, EmptyTensorsHaveNanRatiosAndZeroCounts) {
  const auto empty = fixture::run<float>(make({"adam", ""}, "cautious"), {}, {{}});
  EXPECT_EQ(empty.reports[0].total.count, 0);
  EXPECT_TRUE(std::isnan(empty.reports[0].total.ratio()));
  EXPECT_TRUE(std::isnan(empty.reports[0].total.ratio_strict()));
}

}  // namespace report_test
