// Who does the pieces of a product: the calling thread alone, or several threads.
#pragma once

#include <cstddef>
#include <functional>

namespace cautious::linear {

// Runs body(0) ... body(count - 1) in any order.
using Run = std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

// Without a `run` a product is not cut at all, since the BLAS is fastest on large pieces.
struct Pieces {
  Run run = {};
  bool several() const { return run != nullptr; }
  void operator()(int count, const std::function<void(std::size_t)>& body) const {
    if (several()) return run(static_cast<std::size_t>(count), body);
    for (int i = 0; i < count; ++i) body(static_cast<std::size_t>(i));
  }
};

}  // namespace cautious::linear
