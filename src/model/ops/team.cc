#include "model/ops/team.h"

namespace cautious::model::ops {
namespace {

constexpr int kPatience = 2000;  // looks before a thread gives its processor away, some ten microseconds

void pause_a_little() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

Team::Team(int threads) {
  for (int i = 1; i < threads; ++i) helpers_.emplace_back([this] { help(); });
}

Team::~Team() {
  next_.store(kStop);
  next_.notify_all();
  for (std::thread& helper : helpers_) helper.join();
}

bool Team::take_one() {
  std::uint64_t word = next_.load(std::memory_order_acquire);
  do {
    if (word == kStop || (word & kMost) >= (word >> kBits & kMost)) return false;
  } while (!next_.compare_exchange_weak(word, word + 1, std::memory_order_acq_rel));
  work_.call(work_.job, static_cast<std::int64_t>(word & kMost));
  done_.fetch_add(1, std::memory_order_release);
  return true;
}

void Team::run(std::int64_t count, const Work& work) {
  if (helpers_.empty() || count == 1 || count > static_cast<std::int64_t>(kMost)) {
    for (std::int64_t i = 0; i < count; ++i) work.call(work.job, i);
    return;
  }
  work_ = work;
  done_.store(0, std::memory_order_relaxed);
  const std::uint64_t loop = (next_.load(std::memory_order_relaxed) / kLoop + 1) % (kStop / kLoop);
  next_.store(loop * kLoop + (static_cast<std::uint64_t>(count) << kBits), std::memory_order_release);
  next_.notify_all();
  while (take_one()) continue;
  for (int looks = 0; done_.load(std::memory_order_acquire) < count; ++looks) {
    if (looks < kPatience) {
      pause_a_little();
    } else {
      std::this_thread::yield();
    }
  }
}

void Team::help() {
  while (true) {
    for (int looks = 0; looks < kPatience; ++looks) {
      if (take_one()) looks = 0;
      pause_a_little();
    }
    const std::uint64_t word = next_.load(std::memory_order_acquire);
    if (word == kStop) return;
    if ((word & kMost) >= (word >> kBits & kMost)) next_.wait(word, std::memory_order_acquire);
  }
}

}  // namespace cautious::model::ops
