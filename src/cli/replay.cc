#include "cli/replay.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace cautious::cli {
namespace {

// A copy with the alignment of any element, never null: traces may place a tensor at any byte.
std::vector<std::byte> copy(std::span<const std::byte> bytes) {
  std::vector<std::byte> result;
  result.reserve(std::max<std::size_t>(bytes.size(), 1));
  result.assign(bytes.begin(), bytes.end());
  return result;
}

std::vector<KeptState> kept_state(const Optimizer& optimizer, const Trace& trace) {
  std::vector<KeptState> kept;
  for (const StateTensor& state : optimizer.state(0)) {
    if (state.name == "x0") continue;
    const auto* first = static_cast<const std::byte*>(state.data);
    kept.push_back({state.name, state.type, {first, first + trace.size * (base::bits_of_type(state.type) / 8)}});
  }
  return kept;
}

}  // namespace

ReplayResult replay(const Trace& trace, const ReplayPlan& plan, const std::function<void()>& between) {
  ReplayResult result;
  result.x = copy(trace.x);
  const std::size_t step_bytes = trace.size * size_of(trace.gradient);
  std::vector<std::byte> g = copy(trace.g.first(std::min(step_bytes, trace.g.size())));

  Optimizer optimizer(plan.recipe, plan.options);
  optimizer.add({"x", trace.shape, trace.element, trace.gradient, result.x.data(), g.data()});
  if (has_anchor(plan.recipe.decay) && !trace.x0.empty()) optimizer.set_anchor(0, copy(trace.x0).data());

  if (plan.keep == Keep::trajectory) result.trajectory.reserve(static_cast<std::size_t>(trace.steps) * result.x.size());
  for (std::int64_t t = 1; t <= trace.steps; ++t) {
    between();
    const auto at = static_cast<std::size_t>(t - 1);
    if (step_bytes > 0) std::memcpy(g.data(), trace.g.data() + at * step_bytes, step_bytes);
    if (!plan.density.empty()) optimizer.set_density(0, plan.density[at]);
    const StepReport& report = optimizer.step({plan.lr[at], plan.lr_max, decay_factor_at(plan.wd_schedule, t)});
    constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
    result.ratio.push_back(report.skipped ? kNone : report.total.ratio());
    result.ratio_strict.push_back(report.skipped ? kNone : report.total.ratio_strict());
    if (report.total.nonfinite > 0 && result.nonfinite == 0) result.first_nonfinite = t;
    result.nonfinite += report.total.nonfinite;
    result.skipped += report.skipped;
    if (plan.keep == Keep::trajectory) result.trajectory.insert(result.trajectory.end(), result.x.begin(), result.x.end());
  }
  result.state = kept_state(optimizer, trace);
  return result;
}

}  // namespace cautious::cli
