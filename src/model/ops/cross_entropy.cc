// The loss from hidden states, a chunk of rows at a time: product, softmax and gradients while the logits are in the cache.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/scalar_tensor.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

constexpr std::int64_t kChunkBytes = 4 << 20;  // of logits: they stay in the last cache from one product to the next
constexpr std::int64_t kChunkRows = 256;       // at least: each chunk takes the weight's gradient through memory
constexpr std::int64_t kColumns = 256;         // of one job that adds up columns

template <class T>
struct Chunk {
  T* logits;                   // [rows, words]; become the loss's gradient by the logits, if wanted
  const T* bias;               // [words] or null
  const std::int64_t* target;  // [rows]
  double* loss;                // [rows], out
  std::int64_t words;
  T softcap, share;  // share: 1 / number of rows that count
  bool gradient;
};

// z becomes share * softmax(z), in its place, times the soft-cap's slope; `top` and `sum` are those of the softmax. What is too
// small for a normal number becomes 0, because products with denormal numbers are slow; NaN stays.
template <class T>
CAUTIOUS_INLINE void to_gradient(T* __restrict z, std::int64_t words, T top, T sum, T share, T softcap) {
  constexpr T tiny = std::numeric_limits<T>::min();
  const T factor = share / sum;
  if (softcap > 0) {
    const T inverse = T(1) / softcap;
    for (std::int64_t j = 0; j < words; ++j) {
      const T t = z[j] * inverse;
      const T by = fast_exp(z[j] - top) * factor * (T(1) - t * t);
      z[j] = by < tiny ? T(0) : by;
    }
  } else {  // z is exp(z - top) already
    for (std::int64_t j = 0; j < words; ++j) {
      const T by = z[j] * factor;
      z[j] = by < tiny ? T(0) : by;
    }
  }
}

template <class T>
CAUTIOUS_INLINE void row_loop(const Chunk<T>& chunk, std::int64_t begin, std::int64_t end) {
  const std::int64_t words = chunk.words;
  const T softcap = chunk.softcap;
  for (std::int64_t row = begin; row < end; ++row) {
    T* __restrict z = chunk.logits + row * words;
    const std::int64_t target = chunk.target[row];
    chunk.loss[row] = 0;
    if (target < 0) {
      if (chunk.gradient)
        for (std::int64_t j = 0; j < words; ++j) z[j] = 0;
      continue;
    }
    if (const T* __restrict bias = chunk.bias)
      for (std::int64_t j = 0; j < words; ++j) z[j] += bias[j];
    if (softcap > 0) {
      const T inverse = T(1) / softcap;
      for (std::int64_t j = 0; j < words; ++j) z[j] = softcap * fast_tanh(z[j] * inverse);
    }
    T top = -std::numeric_limits<T>::infinity();
#pragma omp simd reduction(max : top)
    for (std::int64_t j = 0; j < words; ++j) top = z[j] > top ? z[j] : top;
    const T chosen = z[target];
    T sum = 0;
    if (chunk.gradient && !(softcap > 0)) {
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < words; ++j) sum += z[j] = fast_exp(z[j] - top);
    } else {
#pragma omp simd reduction(+ : sum)
      for (std::int64_t j = 0; j < words; ++j) sum += fast_exp(z[j] - top);
    }
    chunk.loss[row] = std::log(double(sum)) + (double(top) - double(chosen));
    if (!chunk.gradient) continue;
    to_gradient(z, words, top, sum, chunk.share, softcap);
    const T t = softcap > 0 ? chosen / softcap : T(0);
    z[target] -= chunk.share * (T(1) - t * t);
  }
}

// sums [words] += the sums over the rows of columns [begin, end).
template <class T>
CAUTIOUS_INLINE void column_loop(const T* from, std::int64_t rows, std::int64_t words, std::int64_t begin, std::int64_t end,
                                 double* __restrict sums) {
  for (std::int64_t row = 0; row < rows; ++row) {
    const T* __restrict z = from + row * words;
    for (std::int64_t j = begin; j < end; ++j) sums[j] += double(z[j]);
  }
}

CAUTIOUS_CLONES void judge_rows(const Chunk<float>& chunk, std::int64_t begin, std::int64_t end) {
  row_loop(chunk, begin, end);
}
CAUTIOUS_CLONES void judge_rows(const Chunk<double>& chunk, std::int64_t begin, std::int64_t end) {
  row_loop(chunk, begin, end);
}
CAUTIOUS_CLONES void add_columns(const float* from, std::int64_t rows, std::int64_t words, std::int64_t begin, std::int64_t end,
                                 double* sums) {
  column_loop(from, rows, words, begin, end, sums);
}
CAUTIOUS_CLONES void add_columns(const double* from, std::int64_t rows, std::int64_t words, std::int64_t begin,
                                 std::int64_t end, double* sums) {
  column_loop(from, rows, words, begin, end, sums);
}

struct Wanted {
  bool hidden, weight, bias;
  bool any() const { return hidden || weight || bias; }
};

struct Outcome {
  at::Tensor loss, hidden, weight, bias;  // the gradients that are wanted
};

struct Inputs {
  at::Tensor hidden, weight, bias, target;  // bias may be undefined
  double softcap;
};

std::int64_t count_of(const at::Tensor& target) {
  const std::int64_t* at = target.data_ptr<std::int64_t>();
  return std::count_if(at, at + target.numel(), [](std::int64_t word) { return word >= 0; });
}

// All rows, chunk by chunk. The products are the BLAS's on all its threads, and so are their bits; what is added up here is
// added in an order that does not depend on threads.
template <class T>
Outcome compute(const Inputs& in, Wanted wanted) {
  const at::NoGradGuard off;
  const at::Tensor hidden = in.hidden.contiguous(), weight = in.weight.contiguous(), target = in.target.contiguous();
  const at::Tensor bias = in.bias.defined() ? in.bias.contiguous() : in.bias;
  const std::int64_t rows = hidden.size(0), words = weight.size(0), count = count_of(target);
  const at::TensorOptions options = hidden.options().requires_grad(false);
  Outcome out;
  if (count == 0) {
    if (wanted.hidden) out.hidden = at::zeros(hidden.sizes(), options);
    if (wanted.weight) out.weight = at::zeros(weight.sizes(), options);
    if (wanted.bias) out.bias = at::zeros({words}, options);
    out.loss = at::zeros({}, options);
    return out;
  }
  if (wanted.hidden) out.hidden = at::empty(hidden.sizes(), options);
  if (wanted.weight) out.weight = at::empty(weight.sizes(), options);
  if (wanted.bias) out.bias = at::empty({words}, options);

  const auto row_bytes = static_cast<std::int64_t>(sizeof(T)) * words;
  const std::int64_t most = std::max(kChunkRows, kChunkBytes / row_bytes), chunks = (rows + most - 1) / most;
  const std::int64_t step = (rows + chunks - 1) / chunks;
  const at::Tensor buffer = at::empty({step, words}, options);
  std::vector<double> losses(static_cast<std::size_t>(step)), columns(wanted.bias ? words : 0, 0.0);
  double total = 0;
  for (std::int64_t first = 0; first < rows; first += step) {
    const std::int64_t here = std::min(step, rows - first);
    const at::Tensor some = hidden.narrow(0, first, here);
    at::Tensor logits = buffer.narrow(0, 0, here);
    at::mm_out(logits, some, weight.t());
    const Chunk<T> chunk{logits.data_ptr<T>(),
                         bias.defined() ? bias.data_ptr<T>() : nullptr,
                         target.data_ptr<std::int64_t>() + first,
                         losses.data(),
                         words,
                         static_cast<T>(in.softcap),
                         static_cast<T>(1.0 / static_cast<double>(count)),
                         wanted.any()};
    at::parallel_for(0, here, std::max<std::int64_t>(1, 8192 / words),
                     [&](std::int64_t begin, std::int64_t end) { judge_rows(chunk, begin, end); });
    for (std::int64_t row = 0; row < here; ++row) total += losses[row];
    if (wanted.hidden) {
      at::Tensor part = out.hidden.narrow(0, first, here);
      at::mm_out(part, logits, weight);
    }
    if (wanted.weight) {
      if (first == 0)
        at::mm_out(out.weight, logits.t(), some);
      else
        at::addmm_out(out.weight, out.weight, logits.t(), some);
    }
    if (wanted.bias)
      at::parallel_for(0, (words + kColumns - 1) / kColumns, 1, [&](std::int64_t begin, std::int64_t end) {
        add_columns(chunk.logits, here, words, begin * kColumns, std::min(words, end * kColumns), columns.data());
      });
  }
  if (wanted.bias)
    std::transform(columns.begin(), columns.end(), out.bias.data_ptr<T>(), [](double sum) { return static_cast<T>(sum); });
  out.loss = at::scalar_tensor(total / static_cast<double>(count), options);
  return out;
}

Outcome compute(const Inputs& in, Wanted wanted) {
  return in.hidden.scalar_type() == at::kFloat ? compute<float>(in, wanted) : compute<double>(in, wanted);
}

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;

Wanted wanted_by(const Inputs& in) {
  return {in.hidden.requires_grad(), in.weight.requires_grad(), in.bias.defined() && in.bias.requires_grad()};
}

// The gradients are made with the loss. The first backward() takes them away, so that they become the parameters' gradients
// without a copy; a further one through the same graph computes them again.
class CrossEntropy : public ::torch::autograd::Function<CrossEntropy> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& hidden, const at::Tensor& weight,
                            const c10::optional<at::Tensor>& bias, const at::Tensor& target, double softcap) {
    const Inputs in{hidden, weight, bias ? *bias : at::Tensor(), target, softcap};
    Outcome out = compute(in, wanted_by(in));
    context->save_for_backward({in.hidden, in.weight, in.bias, in.target});
    context->saved_data["softcap"] = softcap;
    context->saved_data["gradients"] = std::vector<at::Tensor>{out.hidden, out.weight, out.bias};
    return out.loss;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    not_twice("cross_entropy");
    variable_list gradients;
    if (const auto kept = context->saved_data.find("gradients"); kept != context->saved_data.end()) {
      gradients = kept->second.toTensorVector();
      context->saved_data.erase(kept);
    } else {
      const variable_list saved = context->get_saved_variables();
      const Inputs in{saved[0], saved[1], saved[2], saved[3], context->saved_data["softcap"].toDouble()};
      const Outcome out = compute(in, wanted_by(in));
      gradients = {out.hidden, out.weight, out.bias};
    }
    if (const double by = incoming[0].item<double>(); by != 1)
      for (at::Tensor& gradient : gradients)
        if (gradient.defined()) gradient.mul_(by);
    return {gradients[0], gradients[1], gradients[2], at::Tensor(), at::Tensor()};
  }
};

std::string sides(const at::Tensor& tensor) {
  return tensor.defined() ? fmt::format("[{}]", fmt::join(tensor.sizes(), ", ")) : "none";
}

void check_inputs(const Inputs& in) {
  const bool fits = in.hidden.dim() == 2 && in.weight.dim() == 2 && in.target.dim() == 1 &&
                    in.hidden.size(1) == in.weight.size(1) && in.hidden.size(0) == in.target.size(0) &&
                    (!in.bias.defined() || (in.bias.dim() == 1 && in.bias.size(0) == in.weight.size(0)));
  if (!fits)
    throw Error(Fault::usage, fmt::format("cross_entropy: hidden {}, weight {}, bias {} and target {} do not fit together; "
                                          "expected [N, d], [V, d], [V] or none, and [N]",
                                          sides(in.hidden), sides(in.weight), sides(in.bias), sides(in.target)));
  if (in.target.scalar_type() != at::kLong)
    throw Error(Fault::usage,
                fmt::format("cross_entropy: the targets are {}; they must be int64", c10::toString(in.target.scalar_type())));
  if (!(in.softcap >= 0 && std::isfinite(in.softcap)))
    throw Error(Fault::usage, fmt::format("cross_entropy: the soft-cap is {}; it must be positive, or 0 for off", in.softcap));
}

// `target` contiguous on the CPU.
void check_words(const at::Tensor& target, std::int64_t words) {
  const std::int64_t* at = target.data_ptr<std::int64_t>();
  for (std::int64_t row = 0; row < target.numel(); ++row)
    if (at[row] < -1 || at[row] >= words)
      throw Error(Fault::data, fmt::format("cross_entropy: target {} of row {} is outside [-1, {})", at[row], row, words));
}

}  // namespace

at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& target,
                         double softcap, Path path) {
  Inputs in{hidden, weight, bias, target, softcap};
  check_inputs(in);
  const at::Tensor words = target.to(at::kCPU).contiguous();
  check_words(words, weight.size(0));
  if (path == Path::plain || !can_fuse({hidden, weight, bias})) {
    if (count_of(words) > 0) return plain::cross_entropy(hidden, weight, bias, target, softcap);
    const at::Tensor all = hidden.sum().add(weight.sum());  // no mean of no rows: 0, and so are the gradients
    return (bias.defined() ? all.add(bias.sum()) : all).mul(0);
  }
  in.target = words;
  if (at::GradMode::is_enabled() && wanted_by(in).any())
    return CrossEntropy::apply(hidden, weight, bias.defined() ? c10::optional<at::Tensor>(bias) : c10::nullopt, words, softcap);
  return compute(in, {false, false, false}).loss;
}

}  // namespace cautious::model::ops
