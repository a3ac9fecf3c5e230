#include "base/parallel.h"

#include <omp.h>
#include <pthread.h>

namespace cautious::base {
namespace {

// A child of fork() has one thread, but OpenMP's memory of its parent's, and would wait for them for ever.
std::atomic<bool> lost_threads = false;

void notice_forks() {
  static const int once = ::pthread_atfork(nullptr, nullptr, [] { lost_threads = true; });
  (void)once;
}

}  // namespace

void FirstError::keep(std::exception_ptr error) noexcept {
  const std::lock_guard lock(mutex_);
  if (!error_) error_ = std::move(error);
  failed_.store(true, std::memory_order_relaxed);
}

int default_threads() { return omp_get_max_threads(); }

void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body) {
  FirstError first;
  if (lost_threads) {
    for (std::size_t i = 0; i < count; ++i) first.guard([&] { body(i); });
    return first.rethrow();
  }
  notice_forks();
  const auto last = static_cast<std::ptrdiff_t>(count);
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads)
  for (std::ptrdiff_t i = 0; i < last; ++i) {
    first.guard([&] { body(static_cast<std::size_t>(i)); });
  }
  first.rethrow();
}

}  // namespace cautious::base
