// Newton-Schulz as it is usually written: three full products a step, each on all threads.
#pragma once

#include <span>
#include <vector>

#include <cautious/polar.h>

namespace cautious::bench {

class NaivePolar {
 public:
  NaivePolar(int rows, int cols, std::vector<Quintic> steps);
  // In place, on `threads` threads of the BLAS.
  void run(float* matrix, int threads);
  // Multiplications and additions of one run().
  double flops() const;

 private:
  int n_, m_;
  bool tall_;
  std::vector<Quintic> steps_;
  std::vector<float> gram_, factor_, other_;
};

}  // namespace cautious::bench
