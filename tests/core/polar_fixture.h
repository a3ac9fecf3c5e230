// polar() on the oracle's matrices.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include <gtest/gtest.h>

#include <cautious/polar.h>

#include "fixture.h"
#include "polar_oracle.h"

namespace cautious {

// polar() in T of a matrix whose entries T can hold, between fences, from memory at `offset` elements from a cache line.
template <class T>
polar_oracle::Matrix result(const polar_oracle::Matrix& m, const Polar& how = {}, int threads = 1, std::size_t offset = 1) {
  fixture::Guarded<T> buffer(m.data.size(), offset);
  for (std::size_t i = 0; i < buffer.size(); ++i) buffer[i] = static_cast<T>(m.data[i]);
  polar(std::span<T>(buffer.data(), buffer.size()), m.rows, m.cols, how, threads);
  EXPECT_TRUE(buffer.intact()) << m.rows << " x " << m.cols;
  polar_oracle::Matrix out(m.rows, m.cols);
  for (std::size_t i = 0; i < buffer.size(); ++i) out.data[i] = buffer[i];
  return out;
}

inline polar_oracle::Matrix random(int rows, int cols) {
  return polar_oracle::random(rows, cols, fixture::Values(1000 * rows + cols));
}

}  // namespace cautious
