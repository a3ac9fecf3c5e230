// Learning-rate schedules and weight-decay schedules: pure functions of the step. Steps count from 1.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cautious {

// How a value goes from 1 to `final` over progress 0..1. one_minus_sqrt is WSD's 1 - sqrt(progress).
enum class Curve { constant, linear, cosine, one_minus_sqrt };

constexpr auto names_of(Curve) { return std::array<std::string_view, 4>{"constant", "linear", "cosine", "one-minus-sqrt"}; }

// The curve's value at `progress` (clamped to 0..1).
double on_curve(Curve curve, double progress, double final);

enum class ScheduleKind { constant, linear, cosine, wsd };

constexpr auto names_of(ScheduleKind) { return std::array<std::string_view, 4>{"constant", "linear", "cosine", "wsd"}; }

// lr_t = lr * t / warmup up to the end of warmup, then the kind's curve down to lr * final at t = steps and after.
// constant stays at lr. wsd stays at lr until the last `cooldown` part of the steps, then follows `cooldown_curve`.
struct Schedule {
  ScheduleKind kind = ScheduleKind::constant;
  double lr = 1e-3;               // the peak, lr_max
  std::int64_t steps = 1;         // the horizon T
  std::int64_t warmup_steps = 0;  // warmup in steps ...
  double warmup_ratio = 0;        // ... or as a part of the horizon; at most one of the two is set
  double final = 0;               // final fraction of the peak
  double cooldown = 0.2;          // wsd: part of the horizon
  Curve cooldown_curve = Curve::linear;
};

// The schedule of that name with its usual shape: wsd has 10% warmup and a 20% linear cooldown.
Schedule schedule(std::string_view name, double lr, std::int64_t steps);

// Throws an Error that names the field, its value and the valid range.
void check(const Schedule& schedule);

// Learning rate of step t >= 1.
double lr_at(const Schedule& schedule, std::int64_t t);

// Factor on weight_decay over the horizon: from 1 to `final` along the curve, 1 at the first step, `final` at t = steps.
struct DecaySchedule {
  Curve curve = Curve::constant;
  std::int64_t steps = 1;
  double final = 0;
};

double decay_factor_at(const DecaySchedule& schedule, std::int64_t t);

}  // namespace cautious
