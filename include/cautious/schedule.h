// Learning-rate schedules and weight-decay schedules: pure functions of the step. Steps count from 1.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <tuple>
#include <vector>

#include <cautious/detail/field.h>

namespace cautious {

// How a value goes from 1 to `final` over progress 0..1. one_minus_sqrt is WSD's 1 - sqrt(progress).
enum class Curve { constant, linear, cosine, one_minus_sqrt };

constexpr auto names_of(Curve) { return std::array<std::string_view, 4>{"constant", "linear", "cosine", "one-minus-sqrt"}; }

// The curve's value at `progress` (clamped to 0..1).
double on_curve(Curve curve, double progress, double final);

enum class ScheduleKind { constant, linear, cosine, wsd };

constexpr auto names_of(ScheduleKind) { return std::array<std::string_view, 4>{"constant", "linear", "cosine", "wsd"}; }

inline constexpr Range kHorizon{1, kLargest, false, true};

// lr_t = lr * t / warmup up to the end of warmup, then the kind's curve down to lr * final at t = steps and after.
// constant stays at lr. wsd stays at lr until the last `cooldown` fraction of the steps, then follows `cooldown_curve`.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double lr = 1e-3;        // lr_max
  std::int64_t steps = 1;  // the horizon T
  std::int64_t warmup_steps = 0;
  double warmup_ratio = 0;
  double final = 0;
  double cooldown = 0.2;
  Curve cooldown_curve = Curve::linear;

  static constexpr auto fields() {
    return std::tuple{
        Choice{"kind", &Schedule::kind, "course of the learning rate after the warmup"},
        Field{"lr", &Schedule::lr, kNonnegative, "peak of the learning rate"},
        Field{"steps", &Schedule::steps, kHorizon, "length of the run in steps"},
        Field{"warmup_steps", &Schedule::warmup_steps, kNonnegative, "warmup in steps, instead of warmup_ratio"},
        Field{"warmup_ratio", &Schedule::warmup_ratio, kFraction, "warmup as a fraction of the run, instead of warmup_steps"},
        Field{"final", &Schedule::final, kFraction, "final learning rate as a fraction of the peak"},
        Field{"cooldown", &Schedule::cooldown, kFraction, "wsd: length of the cooldown as a fraction of the run"},
        Choice{"cooldown_curve", &Schedule::cooldown_curve, "wsd: course of the learning rate in the cooldown"}};
  }
};

// The schedule of that name with its usual shape: wsd has 10% warmup and a 20% linear cooldown.
Schedule schedule(std::string_view name, double lr, std::int64_t steps);

// Fields by name, as of a Recipe (recipe.h). check() also says whether they go together.
std::vector<FieldInfo> fields(const Schedule& schedule);
void set(Schedule& schedule, std::string_view field, std::string_view value);
void check(const Schedule& schedule);

// Learning rate of step t >= 1.
double lr_at(const Schedule& schedule, std::int64_t t);

// Factor on weight_decay over the horizon: from 1 to `final` along the curve, 1 at the first step, `final` at t = steps.
struct DecaySchedule {
  Curve curve = Curve::constant;
  std::int64_t steps = 1;
  double final = 0;

  static constexpr auto fields() {
    return std::tuple{
        Choice{"curve", &DecaySchedule::curve, "course of the weight decay over the run"},
        Field{"steps", &DecaySchedule::steps, kHorizon, "length of the run in steps"},
        Field{"final", &DecaySchedule::final, kNonnegative, "final factor on the weight decay, unless its curve is constant"}};
  }
};

std::vector<FieldInfo> fields(const DecaySchedule& schedule);
void set(DecaySchedule& schedule, std::string_view field, std::string_view value);
void check(const DecaySchedule& schedule);

double decay_factor_at(const DecaySchedule& schedule, std::int64_t t);

}  // namespace cautious
