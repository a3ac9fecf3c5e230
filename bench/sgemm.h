// The speed of the machine's own matrix product, the measure of all others.
#pragma once

#include <vector>

namespace cautious::bench {

// The machine's own n x n product.
class Sgemm {
 public:
  explicit Sgemm(int n);
  void run(int threads);
  double flops() const;
  // Billions of operations per second on `threads` threads, the best of a few.
  double gflops(int threads);

 private:
  int n_;
  std::vector<float> a_, b_, c_;
};

}  // namespace cautious::bench
