// RMSNorm, row by row.
#include <algorithm>
#include <cmath>
#include <cstdint>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

// Rows of d entries. Sums along a row are in f64: no square of an f32 overflows, and it costs nothing beside the memory. Their
// bits depend on the instruction set alone; those of the scale's gradient on the shape too, see norm_gradients_of().
template <class T>
struct NormForward {
  const T *x, *scale;
  T *y, *inverse;  // inverse: 1 / root per row
  std::int64_t d;
  double offset, eps;
};

template <class T>
CAUTIOUS_INLINE void norm_forward_loop(const NormForward<T>& at, std::int64_t begin, std::int64_t end) {
  const std::int64_t d = at.d;
  const T* __restrict scale = at.scale;
  const T offset = T(at.offset);
  for (std::int64_t row = begin; row < end; ++row) {
    const T* __restrict x = at.x + row * d;
    T* __restrict y = at.y + row * d;
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) sum += double(x[j]) * double(x[j]);
    const T inverse = T(1 / std::sqrt(sum / double(d) + at.eps));
    at.inverse[row] = inverse;
    for (std::int64_t j = 0; j < d; ++j) y[j] = x[j] * inverse * (offset + scale[j]);
  }
}

template <class T>
struct NormBackward {
  const T *x, *scale, *inverse, *y;  // y: the incoming gradient
  T *by_x, *by_scale;                // by_scale: a sum over the rows of this call
  std::int64_t d;
  double offset;
};

template <class T>
CAUTIOUS_INLINE void norm_backward_loop(const NormBackward<T>& at, std::int64_t begin, std::int64_t end) {
  const std::int64_t d = at.d;
  const T* __restrict scale = at.scale;
  T* __restrict by_scale = at.by_scale;
  const T offset = T(at.offset);
  for (std::int64_t j = 0; j < d; ++j) by_scale[j] = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* __restrict x = at.x + row * d;
    const T* __restrict y = at.y + row * d;
    T* __restrict by_x = at.by_x + row * d;
    const T inverse = at.inverse[row];
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) sum += double(y[j] * (offset + scale[j])) * double(x[j] * inverse);
    const T mean = T(sum / double(d));
    for (std::int64_t j = 0; j < d; ++j) {
      const T unit = x[j] * inverse;
      by_x[j] = inverse * (y[j] * (offset + scale[j]) - unit * mean);
      by_scale[j] += y[j] * unit;
    }
  }
}

CAUTIOUS_CLONES void norm_rows(const NormForward<float>& at, std::int64_t begin, std::int64_t end) {
  norm_forward_loop(at, begin, end);
}
CAUTIOUS_CLONES void norm_rows(const NormForward<double>& at, std::int64_t begin, std::int64_t end) {
  norm_forward_loop(at, begin, end);
}
CAUTIOUS_CLONES void norm_rows(const NormBackward<float>& at, std::int64_t begin, std::int64_t end) {
  norm_backward_loop(at, begin, end);
}
CAUTIOUS_CLONES void norm_rows(const NormBackward<double>& at, std::int64_t begin, std::int64_t end) {
  norm_backward_loop(at, begin, end);
}

std::int64_t row_count(const at::Tensor& x) { return x.numel() == 0 ? 0 : x.numel() / x.size(-1); }
std::int64_t rows_per_job(std::int64_t d) { return std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, d)); }

struct Normed {
  at::Tensor y, inverse;
};

// Of contiguous tensors.
template <class T>
Normed normed_of(const at::Tensor& x, const at::Tensor& scale, double offset, double eps) {
  const std::int64_t rows = row_count(x), d = x.size(-1);
  Normed normed{at::empty(x.sizes(), x.options()), at::empty({rows}, x.options())};
  const NormForward<T> at{
      x.data_ptr<T>(), scale.data_ptr<T>(), normed.y.data_ptr<T>(), normed.inverse.data_ptr<T>(), d, offset, eps};
  at::parallel_for(0, rows, rows_per_job(d), [&](std::int64_t begin, std::int64_t end) { norm_rows(at, begin, end); });
  return normed;
}

Normed normed_of(const at::Tensor& x, const at::Tensor& scale, double offset, double eps) {
  return x.scalar_type() == at::kFloat ? normed_of<float>(x, scale, offset, eps) : normed_of<double>(x, scale, offset, eps);
}

struct Gradients {
  at::Tensor x, scale;
};

// The rows are cut into blocks by the shape alone; each block has its sum for the scale, and these are added in their order. So
// the bits depend on the shape and the instruction set, not on the number of threads or on which thread took which block.
template <class T>
Gradients norm_gradients_of(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& inverse, const at::Tensor& y,
                            double offset) {
  const std::int64_t rows = row_count(x), d = x.size(-1);
  const std::int64_t per_block = std::max<std::int64_t>(16, (rows + 63) / 64), blocks = (rows + per_block - 1) / per_block;
  const Gradients by{at::empty(x.sizes(), x.options().requires_grad(false)),
                     at::empty({d}, scale.options().requires_grad(false))};
  const at::Tensor sums = at::empty({blocks, d}, by.scale.options());
  NormBackward<T> at{
      x.data_ptr<T>(), scale.data_ptr<T>(), inverse.data_ptr<T>(), y.data_ptr<T>(), by.x.data_ptr<T>(), sums.data_ptr<T>(), d,
      offset};
  const std::int64_t grain = std::max<std::int64_t>(1, rows_per_job(d) / per_block);
  at::parallel_for(0, blocks, grain, [&](std::int64_t first, std::int64_t last) {
    NormBackward<T> mine = at;
    for (std::int64_t block = first; block < last; ++block) {
      mine.by_scale = at.by_scale + block * d;
      norm_rows(mine, block * per_block, std::min(rows, (block + 1) * per_block));
    }
  });
  add_in_order(at.by_scale, blocks, d, by.scale.data_ptr<T>());
  return by;
}

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;

class RmsNorm : public ::torch::autograd::Function<RmsNorm> {
 public:
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale, double offset, double eps) {
    const at::Tensor whole = x.contiguous(), factors = scale.contiguous();
    const Normed normed = normed_of(whole, factors, offset, eps);
    context->save_for_backward({whole, factors, normed.inverse});
    context->saved_data["offset"] = offset;
    return normed.y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    not_twice("rms_norm");
    const variable_list saved = context->get_saved_variables();
    const double offset = context->saved_data["offset"].toDouble();
    const at::Tensor &x = saved[0], &scale = saved[1], &inverse = saved[2], y = incoming[0].contiguous();
    const Gradients by = x.scalar_type() == at::kFloat ? norm_gradients_of<float>(x, scale, inverse, y, offset)
                                                       : norm_gradients_of<double>(x, scale, inverse, y, offset);
    return {by.x, by.scale, at::Tensor(), at::Tensor()};
  }
};

}  // namespace

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& scale, double offset, double eps, Path path) {
  if (x.dim() == 0 || scale.dim() != 1 || x.size(-1) != scale.size(0))
    throw Error(Fault::usage, fmt::format("rms_norm: the scale is [{}] and x [{}]; the scale must have x's last side",
                                          fmt::join(scale.sizes(), ", "), fmt::join(x.sizes(), ", ")));
  if (path == Path::plain || !can_fuse({x, scale})) return plain::rms_norm(x, scale, offset, eps);
  if (at::GradMode::is_enabled() && (x.requires_grad() || scale.requires_grad())) return RmsNorm::apply(x, scale, offset, eps);
  return normed_of(x.contiguous(), scale.contiguous(), offset, eps).y;
}

}  // namespace cautious::model::ops
