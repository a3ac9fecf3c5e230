// Threads for many small parallel loops in a row, microseconds each. A loop of OpenMP ends when every thread has come to its
// end; on a busy machine one of them is often not running, and every loop waits for it. Here a loop ends when its work is done.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace cautious::model::ops {

class Team {
 public:
  explicit Team(int threads);  // the caller's is one of them
  ~Team();
  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  int size() const { return static_cast<int>(helpers_.size()) + 1; }

  // job(0) ... job(count - 1) in any order, on the caller's thread and whichever others are free. A job does not throw.
  template <class Job>
  void run(std::int64_t count, const Job& job) {
    run(count, {&job, [](const void* of, std::int64_t i) { (*static_cast<const Job*>(of))(i); }});
  }

 private:
  struct Work {
    const void* job = nullptr;
    void (*call)(const void* job, std::int64_t i) = nullptr;
  };
  // What is to be taken next: a loop's number, its count and the index, in one word, so that an index belongs to its loop.
  static constexpr int kBits = 22;
  static constexpr std::uint64_t kMost = (std::uint64_t{1} << kBits) - 1, kLoop = std::uint64_t{1} << (2 * kBits);
  static constexpr std::uint64_t kStop = ~std::uint64_t{0};

  void run(std::int64_t count, const Work& work);
  bool take_one();  // false if nothing was left
  void help();

  std::atomic<std::uint64_t> next_ = 0;
  Work work_;  // of the loop; a thread that has an index may read it
  std::atomic<std::int64_t> done_ = 0;
  std::vector<std::thread> helpers_;
};

}  // namespace cautious::model::ops
