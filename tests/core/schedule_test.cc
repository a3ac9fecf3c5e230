// Schedules by hand: shapes, end points, warmup, what lies beyond the horizon, and bad fields.
#include <cautious/schedule.h>

#include <cmath>
#include <numbers>
#include <string>

#include <gtest/gtest.h>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "usage_message.h"

namespace cautious {
namespace schedule_test {

TEST(Curve, EndsAreExactAndProgressIsClamped) {
  for (const double final : {0.0, 0.1, 1.0 / 3, 1.0}) {
    for (const Curve curve : {Curve::linear, Curve::cosine, Curve::one_minus_sqrt}) {
      EXPECT_EQ(on_curve(curve, 0, final), 1);
      EXPECT_EQ(on_curve(curve, 1, final), final);
      EXPECT_EQ(on_curve(curve, -3, final), 1);
      EXPECT_EQ(on_curve(curve, 7, final), final);
    }
    EXPECT_EQ(on_curve(Curve::constant, 0.7, final), 1);
  }
}

TEST(Curve, ValuesByHand) {
  EXPECT_EQ(on_curve(Curve::linear, 0.25, 0), 0.75);
  EXPECT_NEAR(on_curve(Curve::linear, 0.25, 0.2), 0.8, 1e-15);
  EXPECT_NEAR(on_curve(Curve::cosine, 0.5, 0), 0.5, 1e-15);
  EXPECT_NEAR(on_curve(Curve::cosine, 1.0 / 3, 0.1), 0.1 + 0.9 * 0.75, 1e-15);
  EXPECT_EQ(on_curve(Curve::one_minus_sqrt, 0.25, 0), 0.5);
}

TEST(Schedule, Constant) {
  const Schedule s = schedule("constant", 0.3, 10);
  for (const std::int64_t t : {1, 5, 10, 1000}) EXPECT_EQ(lr_at(s, t), 0.3);
}

TEST(Schedule, LinearAndCosineReachTheFinalFractionAndStay) {
  for (const char* name : {"linear", "cosine"}) {
    Schedule s = schedule(name, 2, 100);
    s.final = 0.1;
    EXPECT_EQ(lr_at(s, 100), 0.2) << name;
    EXPECT_EQ(lr_at(s, 101), 0.2) << name;
    EXPECT_EQ(lr_at(s, std::int64_t{1} << 60), 0.2) << name;
    EXPECT_NEAR(lr_at(s, 50), 1.1, 1e-15) << name;
    for (std::int64_t t = 2; t <= 100; ++t) EXPECT_LT(lr_at(s, t), lr_at(s, t - 1)) << name;
  }
  EXPECT_NEAR(lr_at(schedule("cosine", 1, 100), 25), (1 + std::cos(std::numbers::pi / 4)) / 2, 1e-15);
}

TEST(Schedule, WarmupByStepsOrRatio) {
  Schedule by_steps = schedule("cosine", 1, 200), by_ratio = by_steps;
  by_steps.warmup_steps = 20;
  by_ratio.warmup_ratio = 0.1;
  for (std::int64_t t = 1; t <= 210; ++t) EXPECT_EQ(lr_at(by_steps, t), lr_at(by_ratio, t));
  EXPECT_EQ(lr_at(by_steps, 1), 0.05);
  EXPECT_EQ(lr_at(by_steps, 20), 1);
  EXPECT_NEAR(lr_at(by_steps, 110), 0.5, 1e-15);  // halfway between 20 and 200
}

TEST(Schedule, WsdHasTenPercentWarmupAndTwentyPercentCooldown) {
  const Schedule s = schedule("wsd", 1, 1000);
  EXPECT_EQ(lr_at(s, 1), 0.01);
  EXPECT_EQ(lr_at(s, 50), 0.5);
  for (const std::int64_t t : {100, 101, 500, 800}) EXPECT_EQ(lr_at(s, t), 1) << t;
  EXPECT_NEAR(lr_at(s, 801), 1 - 1.0 / 200, 1e-15);
  EXPECT_EQ(lr_at(s, 900), 0.5);
  EXPECT_EQ(lr_at(s, 1000), 0);
  EXPECT_EQ(lr_at(s, 1001), 0);
}

TEST(Schedule, WsdCooldownShapes) {
  Schedule s = schedule("wsd", 1, 1000);
  s.cooldown_curve = Curve::one_minus_sqrt;
  EXPECT_EQ(lr_at(s, 850), 0.5);  // 1 - sqrt(50/200)
  s.cooldown_curve = Curve::cosine;
  EXPECT_NEAR(lr_at(s, 900), 0.5, 1e-15);
  s.cooldown = 0;
  EXPECT_EQ(lr_at(s, 1000), 1);
}

TEST(Schedule, OneStepAndWarmupOnly) {
  EXPECT_EQ(lr_at(schedule("cosine", 1, 1), 1), 0);
  Schedule s = schedule("linear", 1, 4);
  s.warmup_steps = 4;
  EXPECT_EQ(lr_at(s, 4), 1);
  EXPECT_EQ(lr_at(s, 5), 0);
}

TEST(Schedule, Errors) {
  EXPECT_EQ(message([] { schedule("cosin", 1, 10); }),
            "no schedule named 'cosin'; did you mean 'cosine'? choices: constant, linear, cosine, wsd");
  EXPECT_EQ(message([] { schedule("wsd", -1, 10); }), "lr is -1; valid: [0, inf)");
  EXPECT_EQ(message([] { schedule("wsd", std::nan(""), 10); }), "lr is nan; valid: [0, inf)");
  EXPECT_EQ(message([] { schedule("wsd", 1, 0); }), "steps is 0; valid: [1, inf)");
  EXPECT_EQ(message([] { check(Schedule{.steps = 9, .warmup_steps = 10}); }), "warmup_steps is 10; valid: [0, 9]");
  EXPECT_EQ(message([] { check(Schedule{.warmup_ratio = 1.5}); }), "warmup_ratio is 1.5; valid: [0, 1]");
  EXPECT_EQ(message([] { check(Schedule{.steps = 9, .warmup_steps = 1, .warmup_ratio = 0.5}); }),
            "warmup_steps is 1 and warmup_ratio is 0.5; set one of them");
  EXPECT_EQ(message([] { check(Schedule{.kind = ScheduleKind::wsd, .steps = 10, .warmup_ratio = 0.5, .cooldown = 0.6}); }),
            "warmup of 5 steps and cooldown of 6 steps do not fit into 10 steps");
  EXPECT_EQ(message([] { lr_at(Schedule{}, 0); }), "step is 0; valid: [1, inf)");
}

TEST(DecaySchedule, FromOneToTheFinalFactor) {
  const DecaySchedule linear{.curve = Curve::linear, .steps = 11, .final = 0.5};
  EXPECT_EQ(decay_factor_at(linear, 1), 1);
  EXPECT_EQ(decay_factor_at(linear, 6), 0.75);
  EXPECT_EQ(decay_factor_at(linear, 11), 0.5);
  EXPECT_EQ(decay_factor_at(linear, 99), 0.5);
  const DecaySchedule growing{.curve = Curve::cosine, .steps = 3, .final = 2};
  EXPECT_NEAR(decay_factor_at(growing, 2), 1.5, 1e-15);
  EXPECT_EQ(decay_factor_at({}, 7), 1);
  EXPECT_EQ(decay_factor_at({.curve = Curve::linear, .steps = 1, .final = 0}, 1), 1);
  EXPECT_EQ(message([] { decay_factor_at({.final = -1}, 1); }), "final is -1; valid: [0, inf)");
}

TEST(Coupling, FactorsTimesLr) {
  const double wd = 0.1, lr = 0.002, peak = 0.01;
  EXPECT_EQ(coupled_weight_decay(Coupling::plain, wd, lr, 0), wd);
  EXPECT_NEAR(lr * coupled_weight_decay(Coupling::corrected, wd, lr, peak), lr * lr / peak * wd, 1e-18);
  EXPECT_NEAR(lr * coupled_weight_decay(Coupling::independent, wd, lr, peak), lr / peak * wd, 1e-17);
  EXPECT_NEAR(lr * coupled_weight_decay(Coupling::squared, wd, lr, 0), lr * lr * wd, 1e-20);
  EXPECT_EQ(coupled_weight_decay(Coupling::corrected, wd, peak, peak), wd);  // AdamC at the peak is AdamW
  EXPECT_EQ(message([] { coupled_weight_decay(Coupling::corrected, 0.1, 1, 0); }),
            "coupling 'corrected' needs the schedule's peak: lr_max is 0; valid: (0, inf)");
}

}  // namespace schedule_test
}  // namespace cautious
