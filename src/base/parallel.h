// A parallel loop that an exception leaves alive: OpenMP ends the process when one escapes from its region.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>

namespace cautious::base {

// Keeps the first exception of several threads for the thread that waits for them.
class FirstError {
 public:
  // Runs the work unless some other work has failed already.
  template <class Work>
  void guard(const Work& work) noexcept {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      work();
    } catch (...) {
      keep(std::current_exception());
    }
  }
  // After the last guard().
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  void keep(std::exception_ptr error) noexcept;

  std::atomic<bool> failed_ = false;
  std::mutex mutex_;
  std::exception_ptr error_;
};

// OpenMP's default for the calling thread.
int default_threads();

// body(0) ... body(count - 1) in any order on at most `threads` threads; returns when all are done. If a body throws, those
// that have not begun are left out, and the first exception is thrown again here. In a child of fork() whose parent has used
// it, on the calling thread.
void parallel_for(std::size_t count, int threads, const std::function<void(std::size_t)>& body);

}  // namespace cautious::base
