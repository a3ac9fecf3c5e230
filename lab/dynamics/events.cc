// Looks at a few times of a step, and where a parabola through three looks gets near 0; then root finding.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <boost/math/tools/toms748_solve.hpp>

#include "lab/dynamics/sliding.h"

namespace cautious::lab {
namespace {

constexpr int kLooks = 4;

// A parabola whose least value is below this part of its middle one is worth a look.
constexpr double kDip = 0.2;

// The time in (low, high] from which `value` is below 0, to within `width`; value(high) < 0. Where value(low) is not above 0,
// as at the end of an event, the value rises first and falls later: that time is sought, or `low` if it never rises.
template <class Value>
double time_below(const Value& value, double low, double high, double width) {
  double at_low = value(low), at_high = value(high);
  for (double middle = high; at_low <= 0;) {
    middle = low + (middle - low) / 4;
    if (middle - low <= width) return low;
    const double at_middle = value(middle);
    if (at_middle <= 0) {
      high = middle;
      at_high = at_middle;
    } else {
      low = middle;
      at_low = at_middle;
    }
  }
  if (at_high == 0) return high;
  std::uintmax_t rounds = 100;
  const auto near = [width](double a, double b) { return std::abs(b - a) <= width; };
  return boost::math::tools::toms748_solve(value, low, high, at_low, at_high, near, rounds).second;
}

// Where between -1 and 1 the parabola through (-1, a), (0, b), (1, c) gets near 0 or below, if it does.
std::optional<double> dip(double a, double b, double c) {
  const double bend = a - 2 * b + c;
  if (!(bend > 0) || std::abs(a - c) >= 2 * bend) return std::nullopt;
  if (b - (a - c) * (a - c) / (8 * bend) >= kDip * b) return std::nullopt;
  return (a - c) / (2 * bend);
}

}  // namespace

// values_ are those at `high`. What is found may not be the first: another value may be below 0 there already, and above it at
// `high`.
std::optional<Event> EventSearch::search(const Watch& watch, double low, double high) {
  std::optional<Event> found;
  for (bool is_first = false; !is_first;) {
    below_.clear();
    for (std::size_t k = 0; k < values_.size(); ++k) {
      if (values_[k] < -slacks_[k] && !(found && found->which == k)) below_.push_back(k);
    }
    if (below_.empty()) return found;
    const double end = found ? found->t : high;
    const double width = std::max(1e-14 * std::abs(end), 1e-15 * (end - low));
    is_first = true;
    for (const std::size_t k : below_) {
      const auto value = [&](double t) {
        watch(t, values_, slacks_);
        return values_[k];
      };
      const double t = time_below(value, low, end, width);
      if (found && t >= found->t) continue;
      found = Event{t, k};
      is_first = false;
    }
    watch(found->t, values_, slacks_);
  }
  return found;
}

std::optional<Event> EventSearch::first(const Watch& watch, double begin, double end, const std::function<void()>& seen) {
  const double gap = (end - begin) / kLooks;
  const auto time_of = [&](int look) { return look == kLooks ? end : begin + look * gap; };
  watch(begin, looks_[0], slacks_);
  for (int look = 1; look <= kLooks; ++look) {
    const double now = time_of(look);
    watch(now, values_, slacks_);
    auto& [old, last, latest] = looks_;
    latest = values_;
    auto found = search(watch, time_of(look - 1), now);
    if (found) {
      // A value at 0 that falls at once, as where several switches meet, may be back above 0 by then.
      const double middle = (time_of(look - 1) + found->t) / 2;
      watch(middle, values_, slacks_);
      if (const auto earlier = search(watch, time_of(look - 1), middle)) found = earlier;
    }
    if (look == 1) {
      last = latest;
    } else {
      for (std::size_t k = 0; k < latest.size(); ++k) {
        const auto at = dip(old[k], last[k], latest[k]);
        if (!at || old[k] < 0 || last[k] < 0) continue;
        const double t = time_of(look - 1) + *at * gap;
        if (found && t >= found->t) continue;
        watch(t, values_, slacks_);
        if (const auto dipped = search(watch, time_of(*at < 0 ? look - 2 : look - 1), t)) return dipped;
      }
      old.swap(last);
      last.swap(latest);
    }
    if (found) return found;
    watch(now, values_, slacks_);
    seen();
  }
  return std::nullopt;
}

}  // namespace cautious::lab
