#include <cautious/schedule.h>

#include <algorithm>
#include <cmath>
#include <numbers>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"

namespace cautious {
namespace {

// A fraction of the horizon in whole steps.
std::int64_t steps_of(double ratio, std::int64_t steps) { return std::llround(ratio * static_cast<double>(steps)); }

std::int64_t warmup(const Schedule& s) { return s.warmup_steps > 0 ? s.warmup_steps : steps_of(s.warmup_ratio, s.steps); }

// How far t is between `first` (0) and `last` (1); past an empty interval it is 1.
double progress(std::int64_t t, std::int64_t first, std::int64_t last) {
  if (t >= last) return 1;
  return t <= first ? 0 : static_cast<double>(t - first) / static_cast<double>(last - first);
}

void check_step(std::int64_t t) { base::check_range("step", static_cast<double>(t), kHorizon); }

}  // namespace

double on_curve(Curve curve, double progress, double final) {
  const double at = std::clamp(progress, 0.0, 1.0);
  switch (curve) {
    case Curve::constant:
      return 1;
    case Curve::linear:
      return std::lerp(final, 1.0, 1 - at);
    case Curve::cosine:
      return std::lerp(final, 1.0, (1 + std::cos(std::numbers::pi * at)) / 2);
    case Curve::one_minus_sqrt:
      return std::lerp(final, 1.0, 1 - std::sqrt(at));
  }
  throw Error(Fault::usage,
              fmt::format("curve is number {}; choices: {}", static_cast<int>(curve), base::join(names_of(curve))));
}

Schedule schedule(std::string_view name, double lr, std::int64_t steps) {
  Schedule result{.kind = base::named<ScheduleKind>("schedule", name), .lr = lr, .steps = steps};
  if (result.kind == ScheduleKind::wsd) result.warmup_ratio = 0.1;
  check(result);
  return result;
}

std::vector<FieldInfo> fields(const Schedule& s) { return base::fields_of(s); }
void set(Schedule& s, std::string_view field, std::string_view value) {
  base::set_field(s, "field of a schedule", field, value);
}

void check(const Schedule& s) {
  if (kHorizon.contains(s.steps)) {
    base::check_range("warmup_steps", static_cast<double>(s.warmup_steps), {0, static_cast<double>(s.steps), false, false});
  }
  base::check_fields(s);
  if (s.warmup_steps > 0 && s.warmup_ratio > 0) {
    throw Error(Fault::usage,
                fmt::format("warmup_steps is {} and warmup_ratio is {}; set one of them", s.warmup_steps, s.warmup_ratio),
                {.key = "warmup_steps"});
  }
  if (s.kind == ScheduleKind::wsd && warmup(s) + steps_of(s.cooldown, s.steps) > s.steps) {
    throw Error(Fault::usage,
                fmt::format("warmup of {} steps and cooldown of {} steps do not fit into {} steps", warmup(s),
                            steps_of(s.cooldown, s.steps), s.steps),
                {.key = "cooldown"});
  }
}

double lr_at(const Schedule& s, std::int64_t t) {
  check_step(t);
  const std::int64_t rising = warmup(s);
  if (t <= rising) return s.lr * (static_cast<double>(t) / static_cast<double>(rising));
  switch (s.kind) {
    case ScheduleKind::constant:
      return s.lr;
    case ScheduleKind::linear:
      return s.lr * on_curve(Curve::linear, progress(t, rising, s.steps), s.final);
    case ScheduleKind::cosine:
      return s.lr * on_curve(Curve::cosine, progress(t, rising, s.steps), s.final);
    case ScheduleKind::wsd: {
      const std::int64_t falling = steps_of(s.cooldown, s.steps);
      return falling == 0 ? s.lr : s.lr * on_curve(s.cooldown_curve, progress(t, s.steps - falling, s.steps), s.final);
    }
  }
  throw Error(Fault::usage,
              fmt::format("schedule is number {}; choices: {}", static_cast<int>(s.kind), base::join(names_of(s.kind))));
}

std::vector<FieldInfo> fields(const DecaySchedule& s) { return base::fields_of(s); }
void set(DecaySchedule& s, std::string_view field, std::string_view value) {
  base::set_field(s, "field of a weight-decay schedule", field, value);
}
void check(const DecaySchedule& s) { base::check_fields(s); }

double decay_factor_at(const DecaySchedule& s, std::int64_t t) {
  check_step(t);
  check(s);
  return t == 1 ? 1 : on_curve(s.curve, progress(t, 1, s.steps), s.final);
}

}  // namespace cautious
