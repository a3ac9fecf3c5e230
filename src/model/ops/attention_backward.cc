// The slopes of attention: the probabilities again from the scores and the logarithms of their sums, block by block, the last
// block first.
#include <algorithm>

#include "model/ops/attention_pass.h"

namespace cautious::model::ops {
namespace {

// into [seen.keys, size] = alpha weights^T [seen.keys, rows] from [rows, size], or that added to it; keys that none sees are
// left.
template <class T>
CAUTIOUS_CLONES void spread(std::int64_t rows, const Seen& seen, std::int64_t size, T alpha, Rows<const T> weights,
                            Rows<const T> from, bool add, Rows<T> into) {
  for (std::int64_t j = 0; j < size; j += kWide<T>) {
    std::int64_t end = 0;  // of the queries that see a key of the tile
    for (std::int64_t i = seen.from[0] / kTall * kTall; i < seen.keys; i += kTall) {
      while (end < rows && seen.from[end] < i + kTall) ++end;
      const std::int64_t k = std::max<std::int64_t>(0, i - seen.first);
      tile<T>(end - k, alpha, weights.row(k) + i, 1, weights.stride, from.row(k) + j, from.stride, add, into.row(i) + j,
              into.stride);
    }
  }
}

// Scores to probabilities, and the probabilities' slopes to those of the scores.
template <class T>
CAUTIOUS_CLONES void back(std::int64_t rows, const Seen& seen, std::int64_t size, T cap, const T* log_sums,
                          Rows<const T> outcome, Rows<const T> gradient, Rows<T> scores, Rows<T> slopes) {
  const T shrink = 1 / cap;
  for (std::int64_t r = 0; r < rows; ++r) {
    const std::int64_t low = seen.from[r], keys = seen.by(r) - low;
    const T* __restrict o = outcome.row(r), * __restrict g = gradient.row(r);
    T* __restrict s = scores.row(r) + low, * __restrict d = slopes.row(r) + low;
    const T log_sum = log_sums[r];
    T dot = 0;  // the row's probabilities times their slopes
#pragma omp simd reduction(+ : dot)
    for (std::int64_t i = 0; i < size; ++i) dot += o[i] * g[i];
    if (cap > 0) {
      for (std::int64_t j = 0; j < keys; ++j) {
        const T t = fast_tanh(s[j] * shrink), p = fast_exp(cap * t - log_sum);
        s[j] = p;
        d[j] = p * (d[j] - dot) * (1 - t * t);
      }
    } else {
      for (std::int64_t j = 0; j < keys; ++j) {
        const T p = fast_exp(s[j] - log_sum);
        s[j] = p;
        d[j] = p * (d[j] - dot);
      }
    }
    for (std::int64_t j = seen.zero_from(r) - low; j < 0; ++j) s[j] = d[j] = 0;
    for (std::int64_t j = 0; j < kTall; ++j) s[keys + j] = d[keys + j] = 0;
  }
}

}  // namespace

template <class T>
void Pass<T>::backward(const at::Tensor& outcome, const at::Tensor& gradient, const at::Tensor& dq, const at::Tensor& dk,
                       const at::Tensor& dv) const {
  const Heads<const T> out(outcome, size_), grad(gradient, size_);
  const Heads<T> q_out(dq, size_), k_out(dk, size_), v_out(dv, size_);
  const std::int64_t blocks = (tokens_ + kBlock - 1) / kBlock;
  parallel(batch_ * shape_.kv_heads, [&](std::int64_t job) {
    const std::int64_t b = job / shape_.kv_heads, kv = job % shape_.kv_heads;
    Room room(*this);
    const Rows<T> keys = room.take(tokens_, size_), turned = room.take(size_, tokens_), values = room.take(size_, tokens_);
    const Rows<T> queries = room.take(kBlock, size_), mixed = room.take(kBlock, size_), g = room.take(kBlock, size_);
    const Rows<T> key_slopes = room.take(tokens_, size_), value_slopes = room.take(tokens_, size_);
    const Rows<T> scores = room.take(kBlock, tokens_), slopes = room.take(kBlock, tokens_);
    load(k_.at(b, kv), 0, tokens_, keys);
    transpose<T>(tokens_, size_, fixed(keys), turned);
    transpose<T>(tokens_, size_, v_.at(b, kv), values);
    bool add = bounded();  // otherwise the last block, which comes first, sees all keys
    for (const Rows<T>& sums : {key_slopes, value_slopes})
      if (add) std::fill_n(sums.data, whole(tokens_) * sums.stride, T{0});
    for_blocks(kv, blocks - 1, 1, [&](std::int64_t head, std::int64_t first, std::int64_t rows) {
      load(q_.at(b, head).from(first), first, rows, queries);
      copy<T>(rows, size_, grad.at(b, head).from(first), g);
      const Seen here = seen(b, first, rows);
      meet<T>(rows, here, size_, scale_, fixed(queries), fixed(turned), scores);
      meet<T>(rows, here, size_, 1, fixed(g), fixed(values), slopes);
      back<T>(rows, here, size_, cap_, logs(b, head) + first, out.at(b, head).from(first), fixed(g), scores, slopes);
      if (v_out.data) spread<T>(rows, here, size_, 1, fixed(scores), fixed(g), add, value_slopes);
      if (k_out.data) spread<T>(rows, here, size_, scale_, fixed(slopes), fixed(queries), add, key_slopes);
      if (q_out.data) {
        mix<T>(rows, here, size_, scale_, fixed(slopes), fixed(keys), mixed);
        store(fixed(mixed), first, rows, q_out.at(b, head).from(first));
      }
      add = true;
    });
    if (v_out.data) copy<T>(tokens_, size_, fixed(value_slopes), v_out.at(b, kv));
    if (k_out.data) store(fixed(key_slopes), 0, tokens_, k_out.at(b, kv));
  });
}

template void Pass<float>::backward(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                    const at::Tensor&) const;
template void Pass<double>::backward(const at::Tensor&, const at::Tensor&, const at::Tensor&, const at::Tensor&,
                                     const at::Tensor&) const;

}  // namespace cautious::model::ops
