// What happens first in a step, and when.
#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <vector>

namespace cautious::lab {

struct Event {
  double t = 0;
  std::size_t which = 0;
};

class EventSearch {
 public:
  // Sets the values at time t that must not fall below 0 by more than their slack.
  using Watch = std::function<void(double t, std::vector<double>& values, std::vector<double>& slacks)>;

  // The first time in (begin, end] from which one of the values is below 0. `seen` is called at times before it, in their
  // order. The values are looked at in a few places, and where a parabola through three of them gets near 0 in between.
  std::optional<Event> first(const Watch& watch, double begin, double end, const std::function<void()>& seen);

 private:
  std::optional<Event> search(const Watch& watch, double low, double high);

  std::vector<double> looks_[3];  // values at the last places
  std::vector<double> values_, slacks_;
  std::vector<std::size_t> below_;
};

}  // namespace cautious::lab
