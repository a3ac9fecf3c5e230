// What this machine can do, the measure of everything else: memory traffic, square roots and divisions, matrix products.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cautious::bench {

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
class Floor {
 public:
  Floor(std::size_t n, int threads);
  void run();

 private:
  static constexpr std::size_t kTile = 1024;
  struct alignas(64) Tile {
    float g[kTile], v[kTile], u[kTile];
  };
  std::size_t n_;
  int threads_;
  std::vector<Tile> tiles_;  // one per thread, filled before anything is timed
};

// Reads the values, on the calling thread, and does nothing else: the limit of whatever needs all of them.
void read_all(const float* values, std::size_t n);

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
