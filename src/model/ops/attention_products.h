// The three products of causal attention, on padded scratch memory: a block of `rows` queries, the first at position `first`,
// against keys from 0 on. Entries that no query may see are skipped by tiles of kTall queries or keys. A BLAS would compute the
// whole rectangle and copy every factor first; at these sizes that takes half of the time.
#pragma once

#include <algorithm>
#include <cstdint>

#include "model/ops/fast_math.h"

namespace cautious::model::ops {
namespace {

constexpr std::int64_t kTall = 6;  // rows of a tile
template <class T>
constexpr std::int64_t kWide = 64 / sizeof(T);  // its columns

// Rows in memory, `stride` entries apart.
template <class T>
struct Rows {
  T* data;
  std::int64_t stride;

  T* row(std::int64_t i) const { return data + i * stride; }
  Rows from(std::int64_t i) const { return {row(i), stride}; }
};

// Whole tiles, and kTall entries more, at an odd multiple of a cache line.
constexpr std::int64_t padded(std::int64_t columns) { return ((columns + kTall + 15) / 16 | 1) * 16; }
constexpr std::int64_t whole(std::int64_t rows) { return (rows + kTall - 1) / kTall * kTall; }

// c [kTall, two vectors] = alpha a b, or that added to c. a's entry (i, k) is a[i * across + k * along].
template <class T>
CAUTIOUS_INLINE void tile(std::int64_t inner, T alpha, const T* a, std::int64_t across, std::int64_t along, const T* b,
                          std::int64_t b_stride, bool add, T* c, std::int64_t c_stride) {
  typedef T Vector __attribute__((vector_size(32), aligned(alignof(T)), may_alias));
  constexpr std::int64_t wide = sizeof(Vector) / sizeof(T);
  Vector s00{}, s01{}, s10{}, s11{}, s20{}, s21{}, s30{}, s31{}, s40{}, s41{}, s50{}, s51{};
  for (std::int64_t k = 0; k < inner; ++k, a += along, b += b_stride) {
    const Vector b0 = *reinterpret_cast<const Vector*>(b), b1 = *reinterpret_cast<const Vector*>(b + wide);
    s00 += a[0] * b0, s01 += a[0] * b1;
    s10 += a[across] * b0, s11 += a[across] * b1;
    s20 += a[2 * across] * b0, s21 += a[2 * across] * b1;
    s30 += a[3 * across] * b0, s31 += a[3 * across] * b1;
    s40 += a[4 * across] * b0, s41 += a[4 * across] * b1;
    s50 += a[5 * across] * b0, s51 += a[5 * across] * b1;
  }
  const Vector sums[kTall][2] = {{s00, s01}, {s10, s11}, {s20, s21}, {s30, s31}, {s40, s41}, {s50, s51}};
  for (std::int64_t r = 0; r < kTall; ++r, c += c_stride) {
    Vector *c0 = reinterpret_cast<Vector*>(c), *c1 = reinterpret_cast<Vector*>(c + wide);
    *c0 = add ? *c0 + alpha * sums[r][0] : alpha * sums[r][0];
    *c1 = add ? *c1 + alpha * sums[r][1] : alpha * sums[r][1];
  }
}

// scores [rows, first + rows] = alpha queries [rows, size] keys, which are [size, first + rows].
template <class T>
CAUTIOUS_CLONES void meet(std::int64_t rows, std::int64_t first, std::int64_t size, T alpha, Rows<const T> queries,
                          Rows<const T> keys, Rows<T> scores) {
  for (std::int64_t j = 0; j < first + rows; j += kWide<T>)
    for (std::int64_t i = std::max<std::int64_t>(0, j - first) / kTall * kTall; i < rows; i += kTall)
      tile<T>(size, alpha, queries.row(i), queries.stride, 1, keys.data + j, keys.stride, false, scores.row(i) + j,
              scores.stride);
}

// mixed [rows, size] = alpha weights [rows, first + rows] values [first + rows, size].
template <class T>
CAUTIOUS_CLONES void mix(std::int64_t rows, std::int64_t first, std::int64_t size, T alpha, Rows<const T> weights,
                         Rows<const T> values, Rows<T> mixed) {
  for (std::int64_t j = 0; j < size; j += kWide<T>)
    for (std::int64_t i = 0; i < rows; i += kTall)
      tile<T>(first + std::min(i + kTall, rows), alpha, weights.row(i), weights.stride, 1, values.data + j, values.stride,
              false, mixed.row(i) + j, mixed.stride);
}

// into [first + rows, size] = alpha weights^T [first + rows, rows] from [rows, size], or that added to it.
template <class T>
CAUTIOUS_CLONES void spread(std::int64_t rows, std::int64_t first, std::int64_t size, T alpha, Rows<const T> weights,
                            Rows<const T> from, bool add, Rows<T> into) {
  for (std::int64_t j = 0; j < size; j += kWide<T>)
    for (std::int64_t i = 0; i < first + rows; i += kTall) {
      const std::int64_t k = std::max<std::int64_t>(0, i - first);
      tile<T>(rows - k, alpha, weights.row(k) + i, 1, weights.stride, from.row(k) + j, from.stride, add, into.row(i) + j,
              into.stride);
    }
}

}  // namespace
}  // namespace cautious::model::ops
