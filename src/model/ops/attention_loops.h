// The loops over entries of attention, and the table of its rotation.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "model/ops/attention_products.h"
#include "model/ops/fast_math.h"

namespace cautious::model::ops {
namespace {

// Cosines and sines of every position, [tokens, head_size / 2] each.
template <class T>
struct Rotation {
  std::int64_t tokens, head_size;
  double base;
  std::vector<T> cosine, sine;
};

// The last few tables are kept; one for more tokens serves fewer.
template <class T>
std::shared_ptr<const Rotation<T>> rotation_table(std::int64_t tokens, std::int64_t head_size, double base) {
  static std::mutex mutex;
  static std::vector<std::shared_ptr<const Rotation<T>>> kept;
  const std::lock_guard lock(mutex);
  std::erase_if(kept, [&](const auto& r) { return r->head_size == head_size && r->base == base && r->tokens < tokens; });
  for (const auto& r : kept)
    if (r->head_size == head_size && r->base == base) return r;
  const std::int64_t half = head_size / 2;
  auto made = std::make_shared<Rotation<T>>(Rotation<T>{tokens, head_size, base, {}, {}});
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (std::int64_t i = 0; i < half; ++i) {
      const double angle =
          static_cast<double>(t) * std::pow(base, static_cast<double>(i) * (-2.0 / static_cast<double>(head_size)));
      made->cosine.push_back(static_cast<T>(std::cos(angle)));
      made->sine.push_back(static_cast<T>(std::sin(angle)));
    }
  }
  if (kept.size() == 8) kept.erase(kept.begin());
  kept.push_back(made);
  return made;
}

// Rows of a head lie far apart, where the hardware does not expect them: asks for the one that is read some rows later.
template <class T>
CAUTIOUS_INLINE void expect_row(Rows<const T> x, std::int64_t r, std::int64_t rows, std::int64_t columns) {
  constexpr std::int64_t ahead = 12, line = 64 / sizeof(T);
  if (r + ahead >= rows) return;
  for (std::int64_t i = 0; i < columns; i += line) __builtin_prefetch(x.row(r + ahead) + i);
}

template <class T>
CAUTIOUS_CLONES void copy(std::int64_t rows, std::int64_t columns, Rows<const T> x, Rows<T> y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    expect_row<T>(x, r, rows, columns);
    const T* __restrict from = x.row(r);
    T* __restrict to = y.row(r);
    for (std::int64_t i = 0; i < columns; ++i) to[i] = from[i];
  }
}

// direction 1 rotates, -1 rotates back. cosine and sine start at the first row's position.
template <class T>
CAUTIOUS_CLONES void rotate(std::int64_t rows, std::int64_t half, T direction, const T* cosine, const T* sine, Rows<const T> x,
                            Rows<T> y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T* __restrict c = cosine + r * half, * __restrict s = sine + r * half;
    const T* __restrict x1 = x.row(r), * __restrict x2 = x1 + half;
    T* __restrict y1 = y.row(r), * __restrict y2 = y1 + half;
    for (std::int64_t i = 0; i < half; ++i) {
      const T turn = direction * s[i];
      y1[i] = x1[i] * c[i] - x2[i] * turn;
      y2[i] = x2[i] * c[i] + x1[i] * turn;
    }
  }
}

// y [columns, rows] = x^T.
template <class T>
CAUTIOUS_CLONES void transpose(std::int64_t rows, std::int64_t columns, Rows<const T> x, Rows<T> y) {
  typedef T Four __attribute__((vector_size(4 * sizeof(T)), aligned(alignof(T)), may_alias));
  const std::int64_t whole_rows = rows / 4 * 4, whole_columns = columns / 4 * 4;
  for (std::int64_t r = 0; r < whole_rows; r += 4) {
    for (std::int64_t j = 0; j < 4; ++j) expect_row<T>(x, r + j, rows, columns);
    for (std::int64_t i = 0; i < whole_columns; i += 4) {
      const auto in = [&](std::int64_t j) { return reinterpret_cast<const Four*>(x.row(r + j) + i); };
      const auto out = [&](std::int64_t j) { return reinterpret_cast<Four*>(y.row(i + j) + r); };
      const Four a = __builtin_shufflevector(*in(0), *in(1), 0, 4, 1, 5),
                 b = __builtin_shufflevector(*in(0), *in(1), 2, 6, 3, 7);
      const Four c = __builtin_shufflevector(*in(2), *in(3), 0, 4, 1, 5),
                 d = __builtin_shufflevector(*in(2), *in(3), 2, 6, 3, 7);
      *out(0) = __builtin_shufflevector(a, c, 0, 1, 4, 5), *out(1) = __builtin_shufflevector(a, c, 2, 3, 6, 7);
      *out(2) = __builtin_shufflevector(b, d, 0, 1, 4, 5), *out(3) = __builtin_shufflevector(b, d, 2, 3, 6, 7);
    }
  }
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t i = r < whole_rows ? whole_columns : 0; i < columns; ++i) y.row(i)[r] = x.row(r)[i];
}

// Scores of the queries first, first + 1, ... to exponentials, to be divided by their sum. The products read at most kTall
// entries after a query's own position: these become 0.
template <class T>
CAUTIOUS_CLONES void soften(std::int64_t rows, std::int64_t first, T cap, Rows<T> scores, T* sums, T* log_sums) {
  const T shrink = 1 / cap;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t seen = first + r + 1;
    T* __restrict s = scores.row(r);
    if (cap > 0)
      for (std::int64_t j = 0; j < seen; ++j) s[j] = cap * fast_tanh(s[j] * shrink);
    T top = -std::numeric_limits<T>::infinity(), sum = 0;
#pragma omp simd reduction(max : top)
    for (std::int64_t j = 0; j < seen; ++j) top = s[j] > top ? s[j] : top;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < seen; ++j) {
      s[j] = fast_exp(s[j] - top);
      sum += s[j];
    }
    for (std::int64_t j = 0; j < kTall; ++j) s[seen + j] = 0;
    sums[r] = sum;
    log_sums[r] = top + std::log(sum);
  }
}

// y = x, each row divided by its number.
template <class T>
CAUTIOUS_CLONES void divide(std::int64_t rows, std::int64_t columns, const T* by, Rows<const T> x, Rows<T> y) {
  for (std::int64_t r = 0; r < rows; ++r) {
    const T inverse = 1 / by[r];
    const T* __restrict from = x.row(r);
    T* __restrict to = y.row(r);
    for (std::int64_t i = 0; i < columns; ++i) to[i] = from[i] * inverse;
  }
}

// Scores to probabilities, and the probabilities' slopes to those of the scores.
template <class T>
CAUTIOUS_CLONES void back(std::int64_t rows, std::int64_t first, std::int64_t size, T cap, const T* log_sums,
                          Rows<const T> outcome, Rows<const T> gradient, Rows<T> scores, Rows<T> slopes) {
  const T shrink = 1 / cap;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t seen = first + r + 1;
    const T* __restrict o = outcome.row(r), * __restrict g = gradient.row(r);
    T* __restrict s = scores.row(r), * __restrict d = slopes.row(r);
    const T log_sum = log_sums[r];
    T dot = 0;  // the row's probabilities times their slopes
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < size; ++i) dot += o[i] * g[i];
    if (cap > 0) {
      for (std::int64_t j = 0; j < seen; ++j) {
        const T t = fast_tanh(s[j] * shrink), p = fast_exp(cap * t - log_sum);
        s[j] = p;
        d[j] = p * (d[j] - dot) * (1 - t * t);
      }
    } else {
      for (std::int64_t j = 0; j < seen; ++j) {
        const T p = fast_exp(s[j] - log_sum);
        s[j] = p;
        d[j] = p * (d[j] - dot);
      }
    }
    for (std::int64_t j = 0; j < kTall; ++j) s[seen + j] = d[seen + j] = 0;
  }
}

}  // namespace
}  // namespace cautious::model::ops
