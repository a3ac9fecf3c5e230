#include "optim/work.h"

#include <algorithm>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "base/parallel.h"

namespace cautious::optim {

#if defined(__x86_64__)
FlushDenormals::FlushDenormals() : saved_(_mm_getcsr()) {
  constexpr unsigned kFlushToZero = 0x8000, kDenormalsAreZero = 0x0040;
  _mm_setcsr(static_cast<unsigned>(saved_) | kFlushToZero | kDenormalsAreZero);
}
FlushDenormals::~FlushDenormals() { _mm_setcsr(static_cast<unsigned>(saved_)); }
#elif defined(__aarch64__)
FlushDenormals::FlushDenormals() : saved_(0) {
  asm volatile("mrs %0, fpcr" : "=r"(saved_));
  asm volatile("msr fpcr, %0" : : "r"(saved_ | (1ul << 24)));
}
FlushDenormals::~FlushDenormals() { asm volatile("msr fpcr, %0" : : "r"(saved_)); }
#else
#error "cautious knows how to flush denormals on x86-64 and AArch64 only"
#endif

namespace {

// A job below this is not worth waking a thread for; above the other, a stolen core delays the whole step.
constexpr std::size_t kSmallestJob = 5'000, kLargestJob = 64 * 1024;

}  // namespace

Plan make_plan(std::span<const Slot> slots, std::span<const char> takes_part, int rank, int threads) {
  Plan plan;
  std::size_t total = 0;
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (takes_part[s] == 0) continue;
    total += slots[s].own.last - slots[s].own.first;
    int owner = 0;
    for (std::size_t first = 0; first < slots[s].count; first += kChunk) {
      while (first >= slots[s].slices[static_cast<std::size_t>(owner)].last) ++owner;
      plan.chunks.push_back({s, first, std::min(kChunk, slots[s].count - first), owner});
    }
  }
  const std::size_t target = std::clamp(total / (8 * static_cast<std::size_t>(threads)), kSmallestJob, kLargestJob);
  std::size_t filled = target;
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    if (filled >= target) {
      plan.jobs.push_back({c, c});
      filled = 0;
    }
    if (plan.chunks[c].owner == rank) filled += plan.chunks[c].count;
    plan.jobs.back().last = c + 1;
  }
  return plan;
}

int thread_count(const Options& options) { return options.threads > 0 ? options.threads : base::default_threads(); }

void parallel(const Options& options, std::size_t count, const std::function<void(std::size_t)>& body) {
  const auto flushed = [&body](std::size_t i) {
    const FlushDenormals flush;
    body(i);
  };
  if (count <= 1) {
    if (count == 1) flushed(0);
  } else if (options.parallel_for) {
    base::FirstError first;
    options.parallel_for(count, [&](std::size_t i) { first.guard([&] { flushed(i); }); });
    first.rethrow();
  } else {
    base::parallel_for(count, thread_count(options), flushed);
  }
}

}  // namespace cautious::optim
