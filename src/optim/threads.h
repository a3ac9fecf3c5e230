// Running the parts of a step in parallel, with denormals flushed.
#pragma once

#include <cstddef>
#include <functional>

#include <cautious/optimizer.h>

namespace cautious::optim {

// Sets flush-to-zero and denormals-are-zero for the current thread and restores the caller's mode at the end of the scope.
// Moments of rows without gradient decay into denormals and would slow a step down threefold.
class FlushDenormals {
 public:
  FlushDenormals();
  ~FlushDenormals();
  FlushDenormals(const FlushDenormals&) = delete;
  FlushDenormals& operator=(const FlushDenormals&) = delete;

 private:
  unsigned long saved_;
};

// How many threads parallel() will use at most.
int thread_count(const Options& options);

// body(0) ... body(count - 1), each with denormals flushed: by the caller's parallel_for if there is one, else by OpenMP.
void parallel(const Options& options, std::size_t count, const std::function<void(std::size_t)>& body);

}  // namespace cautious::optim
