// What forward and backward of attention share: a pass over the heads, its padded scratch memory, and the products and loops on
// that. Products are of a block of `rows` queries with the keys that it sees; entries that no query may see are skipped by
// tiles of kTall queries or keys. A BLAS would compute the whole rectangle and copy every factor first; at these sizes that
// takes half of the time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/ops/fused.h"

namespace cautious::model::ops {

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
constexpr std::int64_t kBlock = 8 * kTall;  // queries

// Query r of a block sees the keys from from[r], which never falls, up to first + r, but none after the first `keys`.
struct Seen {
  std::int64_t first, keys;
  std::int64_t from[kBlock] = {};

  std::int64_t by(std::int64_t r) const { return std::min(first + r + 1, keys); }
  // The products read keys before from[r] too, in tiles that some other query sees; their weights are 0.
  std::int64_t zero_from(std::int64_t r) const {
    return std::max<std::int64_t>(0, std::min(from[r / kTall * kTall], from[r] - kTall + 1));
  }
};

// Cosines and sines of every position, [tokens, head_size / 2] each.
template <class T>
struct Rotation {
  std::int64_t tokens, head_size;
  Rope rope;
  std::vector<T> cosine, sine;
};

// A tensor [batch, tokens, heads * head_size] as rows per head.
template <class T>
struct Heads {
  T* data = nullptr;
  std::int64_t batch_stride = 0, stride = 0, head_size = 0;

  Heads(const at::Tensor& x, std::int64_t size) : head_size(size) {
    if (!x.defined()) return;
    data = x.data_ptr<std::remove_const_t<T>>();
    batch_stride = x.stride(0);
    stride = x.stride(1);
  }
  Rows<T> at(std::int64_t b, std::int64_t head) const { return {data + b * batch_stride + head * head_size, stride}; }
};

// What forward and backward of one call share. All that is multiplied is first copied into scratch memory of padded rows,
// queries and keys rotated: it is read many times.
template <class T>
class Pass {
 public:
  // `starts` are [batch, tokens], or undefined.
  Pass(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& starts, const at::Tensor& log_sum,
       const AttentionShape& shape);

  void forward(const at::Tensor& outcome) const;
  // dq, dk and dv may be undefined.
  void backward(const at::Tensor& outcome, const at::Tensor& gradient, const at::Tensor& dq, const at::Tensor& dk,
                const at::Tensor& dv) const;

 private:
  // Scratch memory of a job, handed out in turn: enough for all that backward takes.
  class Room {
   public:
    explicit Room(const Pass& pass) {
      const std::int64_t narrow = padded(pass.size_), wide = padded(pass.tokens_);
      next_ = scratch<T, Pass>(
          static_cast<std::size_t>(3 * (whole(pass.tokens_) + kBlock) * narrow + 2 * (whole(pass.size_) + kBlock) * wide));
    }
    Rows<T> take(std::int64_t rows, std::int64_t columns) {
      const Rows<T> taken{next_, padded(columns)};
      next_ += whole(rows) * taken.stride;
      return taken;
    }

   private:
    T* next_;
  };

  static Rows<const T> fixed(Rows<T> rows) { return {rows.data, rows.stride}; }
  T* logs(std::int64_t b, std::int64_t head) const { return log_sum_ + (b * shape_.heads + head) * tokens_; }

  // Of the query heads of one key head, the blocks last, last - step, ...: body(head, first query, how many).
  template <class Body>
  void for_blocks(std::int64_t kv, std::int64_t last, std::int64_t step, const Body& body) const {
    const std::int64_t group = shape_.heads / shape_.kv_heads;
    for (std::int64_t head = kv * group; head < (kv + 1) * group; ++head)
      for (std::int64_t block = last; block >= 0; block -= step)
        body(head, block * kBlock, std::min(kBlock, tokens_ - block * kBlock));
  }

  bool bounded() const { return starts_ != nullptr || shape_.window > 0; }
  // Of a block of queries of a sequence.
  Seen seen(std::int64_t b, std::int64_t first, std::int64_t rows) const {
    Seen here = shape_.causal ? Seen{first, first + rows} : Seen{tokens_, tokens_};
    for (std::int64_t r = 0; r < rows && bounded(); ++r) {
      const std::int64_t start = starts_ != nullptr ? starts_[b * tokens_ + first + r] : 0;
      here.from[r] = shape_.window > 0 ? std::max(start, first + r + 1 - shape_.window) : start;
    }
    return here;
  }

  void turn(T direction, Rows<const T> x, std::int64_t first, std::int64_t rows, Rows<T> y) const;
  // Queries or keys into scratch memory, and their slopes out of it.
  void load(Rows<const T> x, std::int64_t first, std::int64_t rows, Rows<T> y) const { turn(1, x, first, rows, y); }
  void store(Rows<const T> x, std::int64_t first, std::int64_t rows, Rows<T> y) const { turn(-1, x, first, rows, y); }

  AttentionShape shape_;
  std::int64_t batch_, tokens_, size_;
  T scale_, cap_;
  Heads<const T> q_, k_, v_;
  const std::int64_t* starts_;
  T* log_sum_;
  std::shared_ptr<const Rotation<T>> rotation_;
};

namespace {

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

// scores [rows, seen.keys] = alpha queries [rows, size] keys, which are [size, seen.keys].
template <class T>
CAUTIOUS_CLONES void meet(std::int64_t rows, const Seen& seen, std::int64_t size, T alpha, Rows<const T> queries,
                          Rows<const T> keys, Rows<T> scores) {
  for (std::int64_t j = seen.from[0] / kWide<T> * kWide<T>; j < seen.keys; j += kWide<T>)
    for (std::int64_t i = std::max<std::int64_t>(0, j - seen.first) / kTall * kTall; i < rows; i += kTall) {
      if (seen.from[i] >= j + kWide<T>) break;
      tile<T>(size, alpha, queries.row(i), queries.stride, 1, keys.data + j, keys.stride, false, scores.row(i) + j,
              scores.stride);
    }
}

// mixed [rows, size] = alpha weights [rows, seen.keys] values [seen.keys, size].
template <class T>
CAUTIOUS_CLONES void mix(std::int64_t rows, const Seen& seen, std::int64_t size, T alpha, Rows<const T> weights,
                         Rows<const T> values, Rows<T> mixed) {
  for (std::int64_t j = 0; j < size; j += kWide<T>)
    for (std::int64_t i = 0; i < rows; i += kTall) {
      const std::int64_t k = seen.from[i];
      tile<T>(seen.by(i + kTall - 1) - k, alpha, weights.row(i) + k, weights.stride, 1, values.row(k) + j, values.stride, false,
              mixed.row(i) + j, mixed.stride);
    }
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
    expect_row<T>(x, r, rows, 2 * half);
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

}  // namespace
}  // namespace cautious::model::ops
