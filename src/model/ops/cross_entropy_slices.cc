// The loss from hidden states: a chunk of rows at a time and in that a slice of the vocabulary at a time, while its logits are
// in the cache. Logits lie word by word: then no product needs the output matrix turned round. A slice's exponentials are
// relative to its own largest logit; when all slices are there, one factor per row and slice makes them probabilities.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>

#include "linear/multiply.h"
#include "model/ops/cross_entropy_pass.h"
#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

using linear::Block;
using linear::Into;
using linear::Transpose;

constexpr std::int64_t kChunkBytes = 1 << 20;  // of logits, at least kChunkRows: each chunk takes the weight's gradient
constexpr std::int64_t kChunkRows = 256;       // through memory
constexpr std::int64_t kGroups = 16;           // of slices, at most; each has a sum of its own for the hidden states' gradient
constexpr std::int64_t kLeastWords = 48, kMostWords = 480;  // of a slice

// The logits of some words, [words, rows], and what is known of each row.
template <class T>
struct Slice {
  T* logits;
  const T* bias;               // [words] or null
  const std::int64_t* target;  // [rows]
  std::int64_t first, words, rows;
  T softcap;

  // body(row, word within the slice) for the rows whose target is in the slice.
  template <class Body>
  void for_targets(const Body& body) const {
    for (std::int64_t row = 0; row < rows; ++row)
      if (target[row] >= first && target[row] < first + words) body(row, target[row] - first);
  }
};

// Biases and the soft-cap; `top` becomes each row's largest logit.
template <class T>
CAUTIOUS_INLINE void finish_loop(const Slice<T>& at, T* __restrict top) {
  const T softcap = at.softcap, inverse = softcap > 0 ? T(1) / softcap : T(0);
  std::fill_n(top, at.rows, std::numeric_limits<T>::lowest());
  for (std::int64_t word = 0; word < at.words; ++word) {
    T* __restrict z = at.logits + word * at.rows;
    const T bias = at.bias ? at.bias[word] : T(0);
    if (softcap > 0) {
      for (std::int64_t row = 0; row < at.rows; ++row) {
        z[row] = softcap * fast_tanh((z[row] + bias) * inverse);
        top[row] = z[row] > top[row] ? z[row] : top[row];
      }
    } else {
      for (std::int64_t row = 0; row < at.rows; ++row) {
        z[row] += bias;
        top[row] = z[row] > top[row] ? z[row] : top[row];
      }
    }
  }
}

// Logits to exponentials, relative to `top` and times the soft-cap's slope; `sum` becomes each row's sum of exponentials.
template <class T>
CAUTIOUS_INLINE void exponential_loop(const Slice<T>& at, const T* __restrict top, T* __restrict sum) {
  const T inverse = at.softcap > 0 ? T(1) / at.softcap : T(0);
  std::fill_n(sum, at.rows, T(0));
  for (std::int64_t word = 0; word < at.words; ++word) {
    T* __restrict z = at.logits + word * at.rows;
    for (std::int64_t row = 0; row < at.rows; ++row) {
      const T e = fast_exp(z[row] - top[row]), t = z[row] * inverse;
      sum[row] += e;
      z[row] = e * (T(1) - t * t);
    }
  }
}

// to = the exponentials, each row times its factor. What is too small for a normal number becomes 0, because products with
// denormal numbers are slow, and so does what has no factor; NaN stays.
template <class T>
CAUTIOUS_INLINE void scale_loop(const Slice<T>& at, const T* __restrict factor, T* to) {
  constexpr T tiny = std::numeric_limits<T>::min();
  for (std::int64_t word = 0; word < at.words; ++word) {
    const T* __restrict z = at.logits + word * at.rows;
    T* __restrict out = to + word * at.rows;
    for (std::int64_t row = 0; row < at.rows; ++row) {
      const T by = factor[row] < tiny ? T(0) : z[row] * factor[row];
      out[row] = by < tiny ? T(0) : by;
    }
  }
}

template <class T>
CAUTIOUS_INLINE double sum_loop(const T* x, std::int64_t count) {
  double sum = 0;
#pragma omp simd reduction(+ : sum)
  for (std::int64_t i = 0; i < count; ++i) sum += double(x[i]);
  return sum;
}

#define CAUTIOUS_SLICES(T)                                                                                        \
  CAUTIOUS_CLONES void finish(const Slice<T>& at, T* top) { finish_loop(at, top); }                               \
  CAUTIOUS_CLONES void exponentiate(const Slice<T>& at, const T* top, T* sum) { exponential_loop(at, top, sum); } \
  CAUTIOUS_CLONES void scale(const Slice<T>& at, const T* factor, T* to) { scale_loop(at, factor, to); }          \
  CAUTIOUS_CLONES double sum_of(const T* x, std::int64_t count) { return sum_loop(x, count); }
CAUTIOUS_SLICES(float)
CAUTIOUS_SLICES(double)
#undef CAUTIOUS_SLICES

// How rows and words are cut; by shape alone, so that bits do not depend on threads.
struct Cut {
  std::int64_t rows, words;  // of a chunk and of a slice, at most
  std::int64_t slices, groups;

  Cut(std::int64_t all_rows, std::int64_t all_words, std::int64_t row_bytes) {
    const std::int64_t most = std::max(kChunkRows, kChunkBytes / row_bytes), chunks = (all_rows + most - 1) / most;
    rows = (all_rows + chunks - 1) / chunks;
    words = std::clamp((all_words + kGroups - 1) / kGroups, kLeastWords, kMostWords);
    slices = (all_words + words - 1) / words;
    groups = std::min(kGroups, slices);
  }
};

// One chunk after another through the same memory.
template <class T>
class Chunks {
 public:
  Chunks(const Inputs& in, Wanted wanted, std::int64_t count, const Outcome& out)
      : in_(in),
        wanted_(wanted),
        out_(out),
        words_(in.weight.size(0)),
        width_(in.weight.size(1)),
        cut_(in.hidden.size(0), words_, static_cast<std::int64_t>(sizeof(T)) * words_),
        share_(static_cast<T>(1.0 / static_cast<double>(count))),
        logits_(memory(wanted.any() ? cut_.rows * words_ : 0)),
        turned_(memory(static_cast<std::int64_t>(linear::packed_size(int(width_), int(cut_.rows))))),
        packed_(memory(static_cast<std::int64_t>(linear::packed_size(int(cut_.rows), int(width_))))),
        tops_(memory(cut_.slices * cut_.rows)),
        sums_(memory(cut_.slices * cut_.rows)),
        sums_of_groups_(memory(wanted.hidden ? cut_.groups * cut_.rows * width_ : 0)),
        chosen_(static_cast<std::size_t>(cut_.rows)),
        losses_(static_cast<std::size_t>(cut_.rows)),
        columns_(static_cast<std::size_t>(words_)) {}

  // The sum of the losses.
  double run() {
    double total = 0;
    for (std::int64_t first = 0; first < in_.hidden.size(0); first += cut_.rows) {
      begin(first);
      parallel(cut_.slices, [&](std::int64_t number) { judge(number); });
      at::parallel_for(0, rows_, 16, [&](std::int64_t from, std::int64_t to) {
        for (std::int64_t row = from; row < to; ++row) close(row);
      });
      total = std::accumulate(losses_.begin(), losses_.begin() + rows_, total);
      if (!wanted_.any()) continue;
      parallel(cut_.groups, [&](std::int64_t group) { differentiate(group); });
      if (wanted_.hidden) gather();
    }
    if (wanted_.bias)
      std::transform(columns_.begin(), columns_.end(), out_.bias.data_ptr<T>(), [](double sum) { return static_cast<T>(sum); });
    return total;
  }

 private:
  at::Tensor memory(std::int64_t size) const { return at::empty({size}, in_.hidden.options().requires_grad(false)); }
  T* tops(std::int64_t slice) const { return tops_.data_ptr<T>() + slice * cut_.rows; }
  T* sums(std::int64_t slice) const { return sums_.data_ptr<T>() + slice * cut_.rows; }
  T* scratch_logits() const { return scratch<T, Chunks>(static_cast<std::size_t>(cut_.words * cut_.rows)); }

  Block<const T> weights(const Slice<T>& slice) const {
    return {in_.weight.data_ptr<T>() + slice.first * width_, int(slice.words), int(width_), int(width_)};
  }

  Slice<T> slice(std::int64_t number) const {
    const std::int64_t first = number * cut_.words;
    return {wanted_.any() ? logits_.data_ptr<T>() + first * rows_ : scratch_logits(),
            in_.bias.defined() ? in_.bias.data_ptr<T>() + first : nullptr,
            in_.target.data_ptr<std::int64_t>() + first_,
            first,
            std::min(cut_.words, words_ - first),
            rows_,
            static_cast<T>(in_.softcap)};
  }

  void begin(std::int64_t first) {
    first_ = first;
    rows_ = std::min(cut_.rows, in_.hidden.size(0) - first);
    const Block<const T> hidden{in_.hidden.data_ptr<T>() + first * width_, int(rows_), int(width_), int(width_)};
    linear::pack(hidden, Transpose::yes, turned_.data_ptr<T>());
    if (wanted_.weight) linear::pack(hidden, Transpose::no, packed_.data_ptr<T>());
  }

  void judge(std::int64_t number) {
    const Slice<T> at = slice(number);
    linear::multiply_packed(T(1), weights(at), Transpose::no, turned_.data_ptr<T>(), Into::set,
                            Block<T>{at.logits, int(at.words), int(rows_), int(rows_)});
    finish(at, tops(number));
    at.for_targets([&](std::int64_t row, std::int64_t word) { chosen_[row] = at.logits[word * rows_ + row]; });
    exponentiate(at, tops(number), sums(number));
  }

  // A row's loss; `sums` become its factors.
  void close(std::int64_t row) {
    const bool counts = in_.target.data_ptr<std::int64_t>()[first_ + row] >= 0;
    double top = tops(0)[row], sum = 0;
    for (std::int64_t s = 1; s < cut_.slices; ++s) top = std::max(top, double(tops(s)[row]));
    for (std::int64_t s = 0; s < cut_.slices; ++s) sum += double(sums(s)[row]) * std::exp(double(tops(s)[row]) - top);
    losses_[row] = counts ? std::log(sum) + (top - double(chosen_[row])) : 0;
    for (std::int64_t s = 0; s < cut_.slices; ++s)
      sums(s)[row] = counts ? static_cast<T>(double(share_) * std::exp(double(tops(s)[row]) - top) / sum) : T(0);
  }

  void differentiate(std::int64_t group) {
    T* by_logits = scratch_logits();
    const Block<T> by_hidden{sums_of_groups_.data_ptr<T>() + group * cut_.rows * width_, int(rows_), int(width_), int(width_)};
    const std::int64_t begin = cut_.slices * group / cut_.groups, end = cut_.slices * (group + 1) / cut_.groups;
    for (std::int64_t number = begin; number < end; ++number) {
      const Slice<T> at = slice(number);
      const Block<const T> by{by_logits, int(at.words), int(rows_), int(rows_)};
      scale(at, sums(number), by_logits);
      at.for_targets([&](std::int64_t row, std::int64_t word) {
        const T t = at.softcap > 0 ? chosen_[row] / at.softcap : T(0);
        by_logits[word * rows_ + row] -= share_ * (T(1) - t * t);
      });
      if (wanted_.hidden)
        linear::multiply(T(1), by, Transpose::yes, weights(at), Transpose::no, number == begin ? Into::set : Into::add,
                         by_hidden);
      if (wanted_.weight)
        linear::multiply_packed(
            T(1), by, Transpose::no, packed_.data_ptr<T>(), first_ == 0 ? Into::set : Into::add,
            Block<T>{out_.weight.data_ptr<T>() + at.first * width_, int(at.words), int(width_), int(width_)});
      for (std::int64_t word = 0; wanted_.bias && word < at.words; ++word)
        columns_[at.first + word] += sum_of(by_logits + word * rows_, rows_);
    }
  }

  void gather() {
    at::parallel_for(0, rows_, 16, [&](std::int64_t from, std::int64_t to) {
      T* out = out_.hidden.data_ptr<T>() + first_ * width_;
      std::copy(sums_of_groups_.data_ptr<T>() + from * width_, sums_of_groups_.data_ptr<T>() + to * width_,
                out + from * width_);
      for (std::int64_t group = 1; group < cut_.groups; ++group) {
        const T* sum = sums_of_groups_.data_ptr<T>() + group * cut_.rows * width_;
        for (std::int64_t i = from * width_; i < to * width_; ++i) out[i] += sum[i];
      }
    });
  }

  const Inputs& in_;
  Wanted wanted_;
  const Outcome& out_;
  std::int64_t words_, width_;
  Cut cut_;
  T share_;
  at::Tensor logits_, turned_, packed_, tops_, sums_, sums_of_groups_;
  std::vector<T> chosen_;
  std::vector<double> losses_, columns_;
  std::int64_t first_ = 0, rows_ = 0;  // of the chunk
};

template <class T>
Outcome compute(const Inputs& given, Wanted wanted) {
  const at::NoGradGuard off;
  const Inputs in{given.hidden.contiguous(), given.weight.contiguous(),
                  given.bias.defined() ? given.bias.contiguous() : given.bias, given.target.contiguous(), given.softcap};
  const std::int64_t count = count_of(in.target);
  const at::TensorOptions options = in.hidden.options().requires_grad(false);
  const auto made = [&](bool want, const at::Tensor& like) {
    return !want ? at::Tensor() : count == 0 ? at::zeros(like.sizes(), options) : at::empty(like.sizes(), options);
  };
  Outcome out{{}, made(wanted.hidden, in.hidden), made(wanted.weight, in.weight), made(wanted.bias, in.bias)};
  const double total = count == 0 ? 0 : Chunks<T>(in, wanted, count, out).run() / static_cast<double>(count);
  out.loss = at::scalar_tensor(total, options);
  return out;
}

}  // namespace

Outcome compute_loss(const Inputs& in, Wanted wanted) {
  return in.hidden.scalar_type() == at::kFloat ? compute<float>(in, wanted) : compute<double>(in, wanted);
}

}  // namespace cautious::model::ops
