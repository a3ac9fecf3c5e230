// Many matrices to their orthogonal factors: one matrix per thread where there are enough, all threads on one where there are
// not. Scratch memory is kept from call to call.
#pragma once

#include <vector>

#include "linear/orthogonal.h"

namespace cautious::linear {

template <class T>
class Batch {
 public:
  // `how` must outlive the batch.
  void add(T* data, int rows, int cols, const Polar& how) { tasks_.push_back(make_task(data, rows, cols, how)); }
  // After the last add: who does what, and memory for it.
  void plan(int threads);
  // `parallel` runs pieces on that many threads.
  void run(const Run& parallel);
  bool empty() const { return tasks_.empty(); }

 private:
  std::vector<Task<T>> tasks_;           // the dearest first
  std::size_t shared_ = 0;               // of them, those that all threads do together
  std::vector<std::vector<T>> scratch_;  // per thread
};

}  // namespace cautious::linear
