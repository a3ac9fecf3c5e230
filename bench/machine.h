// What this machine can do, the measure of everything else: memory traffic, square roots and divisions, matrix products. And
// what the interleaved benchmarks share.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cautious::bench {

using Clock = std::chrono::steady_clock;

inline double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The physical limit of a step, measured in the same run: the pure traffic of the optimizer's own streams (one operation per
// output, in place), and the square root and division per coordinate that Adam cannot do without.
// x and g are f32 or 16-bit; m and v are f32; v may be null. Reads all, writes all but g.
struct Traffic {
  float* x = nullptr;
  const float* g = nullptr;
  std::uint16_t* x16 = nullptr;
  const std::uint16_t* g16 = nullptr;
  float* m = nullptr;
  float* v = nullptr;
  std::size_t n = 0;
};

void run_traffic(const Traffic& traffic, int threads);

// One sqrt and one division for each of n coordinates, from the first-level cache.
void run_floor(std::size_t n, int threads);

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
