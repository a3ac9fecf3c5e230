// The physical limit of a step, measured in the same run: the pure traffic of the optimizer's own streams (one operation per
// output, in place), and the square root and division per coordinate that Adam cannot do without.
#pragma once

#include <cstddef>
#include <cstdint>

namespace cautious::bench {

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

}  // namespace cautious::bench
