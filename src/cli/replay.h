// Replay: the optimizer run over recorded gradients. A pure function of trace and plan.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <cautious/optimizer.h>
#include <cautious/schedule.h>

#include "cli/replay_trace.h"

namespace cautious::cli {

enum class Keep { last, trajectory };

struct ReplayPlan {
  Recipe recipe;
  Options options;
  std::vector<double> lr;  // [T]
  double lr_max = 0;
  DecaySchedule wd_schedule;
  std::vector<double> density;  // [T] of the random decay; empty leaves the recipe's
  Keep keep = Keep::last;
};

struct KeptState {
  std::string name, type;       // "m", "F32"
  std::vector<std::byte> data;  // [*shape of x]
};

struct ReplayResult {
  std::vector<std::byte> x;
  std::vector<KeptState> state;             // moments and, for split rounding, low
  std::vector<double> ratio, ratio_strict;  // [T]; NaN for a skipped step or an empty x
  std::vector<std::byte> trajectory;        // [T, *shape]: x after each step, if kept
  std::int64_t nonfinite = 0;               // gradient entries
  std::int64_t first_nonfinite = 0;         // the first step that has one
  std::int64_t skipped = 0;                 // steps
};

// `between` is called before every step and may throw.
ReplayResult replay(const Trace& trace, const ReplayPlan& plan, const std::function<void()>& between);

}  // namespace cautious::cli
