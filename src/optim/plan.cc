#include "optim/plan.h"

#include <algorithm>

namespace cautious::optim {
namespace {

// A job below this is not worth waking a thread for; above the other, a stolen core delays the whole step.
constexpr std::size_t kSmallestJob = 5'000, kLargestJob = 64 * 1024;

}  // namespace

Plan make_plan(std::span<const Slot> slots, std::span<const char> takes_part, int threads) {
  Plan plan;
  std::size_t total = 0;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (takes_part[s] == 0) continue;
    total += slots[s].count;
    for (std::size_t first = 0; first < slots[s].count; first += kChunk) {
      plan.chunks.push_back({s, first, std::min(kChunk, slots[s].count - first)});
    }
  }
  const std::size_t target = std::clamp(total / (8 * static_cast<std::size_t>(threads)), kSmallestJob, kLargestJob);
  std::size_t filled = target;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    if (filled >= target) {
      plan.jobs.push_back({c, c});
      filled = 0;
    }
    filled += plan.chunks[c].count;
    plan.jobs.back().last = c + 1;
  }
  return plan;
}

}  // namespace cautious::optim
