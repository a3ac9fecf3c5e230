// LayerNorm with scale and bias, row by row.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/ops/fused.h"

namespace cautious::model::ops {
namespace {

// Rows of d entries. Sums along a row are in f64, as for the RMSNorm: a row's mean may be far larger than its deviation.
template <class T>
struct LayerForward {
  const T *x, *scale, *bias;
  T *y, *mean, *inverse;  // inverse: 1 / deviation; both per row
  std::int64_t d;
  double eps;
};

template <class T>
CAUTIOUS_CLONES void layer_rows(const LayerForward<T>& at, std::int64_t begin, std::int64_t end) {
  const std::int64_t d = at.d;
  const T* __restrict scale = at.scale;
  const T* __restrict bias = at.bias;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* __restrict x = at.x + row * d;
    T* __restrict y = at.y + row * d;
    double sum = 0, squares = 0;
#pragma omp simd reduction(+ : sum)
    for (std::int64_t j = 0; j < d; ++j) sum += double(x[j]);
    const double mean = sum / double(d);
#pragma omp simd reduction(+ : squares)
    for (std::int64_t j = 0; j < d; ++j) squares += (double(x[j]) - mean) * (double(x[j]) - mean);
    const T center = T(mean), inverse = T(1 / std::sqrt(squares / double(d) + at.eps));
    at.mean[row] = center;
    at.inverse[row] = inverse;
    for (std::int64_t j = 0; j < d; ++j) y[j] = (x[j] - center) * inverse * scale[j] + bias[j];
  }
}

template <class T>
struct LayerBackward {
  const T *x, *scale, *mean, *inverse, *y;  // y: the incoming gradient
  T *by_x, *sums;                           // sums: of this call's rows, d for the scale and d for the bias
  std::int64_t d;
};

template <class T>
CAUTIOUS_CLONES void layer_rows_back(const LayerBackward<T>& at, std::int64_t begin, std::int64_t end) {
  const std::int64_t d = at.d;
  const T* __restrict scale = at.scale;
  T* __restrict by_scale = at.sums;
  T* __restrict by_bias = at.sums + d;
  for (std::int64_t j = 0; j < d; ++j) by_scale[j] = by_bias[j] = 0;
  for (std::int64_t row = begin; row < end; ++row) {
    const T* __restrict x = at.x + row * d;
    const T* __restrict y = at.y + row * d;
    T* __restrict by_x = at.by_x + row * d;
    const T center = at.mean[row], inverse = at.inverse[row];
    double sum = 0, along = 0;
#pragma omp simd reduction(+ : sum, along)
    for (std::int64_t j = 0; j < d; ++j) {
      const T slope = y[j] * scale[j];
      sum += double(slope);
      along += double(slope) * double((x[j] - center) * inverse);
    }
    const T mean = T(sum / double(d)), tilt = T(along / double(d));
    for (std::int64_t j = 0; j < d; ++j) {
      const T unit = (x[j] - center) * inverse;
      by_x[j] = inverse * (y[j] * scale[j] - mean - unit * tilt);
      by_scale[j] += y[j] * unit;
      by_bias[j] += y[j];
    }
  }
}

using ::torch::autograd::AutogradContext;
using ::torch::autograd::variable_list;

constexpr std::int64_t kLayerRows = 64;  // of a job

struct LayerNormed {
  at::Tensor y, mean, inverse;
};

// Of contiguous tensors.
template <class T>
LayerNormed layer_normed(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias, double eps) {
  const std::int64_t d = x.size(-1), rows = d == 0 ? 0 : x.numel() / d;
  LayerNormed made{at::empty(x.sizes(), x.options()), at::empty({rows}, x.options()), at::empty({rows}, x.options())};
  const LayerForward<T> at{x.data_ptr<T>(),
                           scale.data_ptr<T>(),
                           bias.data_ptr<T>(),
                           made.y.data_ptr<T>(),
                           made.mean.data_ptr<T>(),
                           made.inverse.data_ptr<T>(),
                           d,
                           eps};
  parallel((rows + kLayerRows - 1) / kLayerRows,
           [&](std::int64_t job) { layer_rows(at, job * kLayerRows, std::min(rows, (job + 1) * kLayerRows)); });
  return made;
}

// Each job has its sums, which are added in order: bits do not depend on threads.
template <class T>
variable_list layer_slopes(const variable_list& saved, const at::Tensor& y) {
  const at::Tensor &x = saved[0], &scale = saved[1];
  const std::int64_t d = x.size(-1), rows = d == 0 ? 0 : x.numel() / d, jobs = (rows + kLayerRows - 1) / kLayerRows;
  const at::TensorOptions options = x.options().requires_grad(false);
  const at::Tensor by_x = at::empty(x.sizes(), options), sums = at::empty({jobs, 2 * d}, options);
  const at::Tensor both = at::empty({2, d}, options);
  const LayerBackward<T> at{x.data_ptr<T>(), scale.data_ptr<T>(), saved[2].data_ptr<T>(), saved[3].data_ptr<T>(),
                            y.data_ptr<T>(), by_x.data_ptr<T>(),  sums.data_ptr<T>(),     d};
  parallel(jobs, [&](std::int64_t job) {
    LayerBackward<T> mine = at;
    mine.sums += job * 2 * d;
    layer_rows_back<T>(mine, job * kLayerRows, std::min(rows, (job + 1) * kLayerRows));
  });
  add_in_order(sums.data_ptr<T>(), jobs, 2 * d, both.data_ptr<T>());
  return {by_x, both.select(0, 0), both.select(0, 1), at::Tensor()};
}

struct LayerNorm : ::torch::autograd::Function<LayerNorm> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias,
                            double eps) {
    const at::Tensor whole = x.contiguous(), factors = scale.contiguous(), shifts = bias.contiguous();
    const LayerNormed made = x.scalar_type() == at::kFloat ? layer_normed<float>(whole, factors, shifts, eps)
                                                           : layer_normed<double>(whole, factors, shifts, eps);
    context->save_for_backward({whole, factors, made.mean, made.inverse});
    return made.y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    not_twice("layer_norm");
    const variable_list saved = context->get_saved_variables();
    const at::Tensor y = incoming[0].contiguous();
    return y.scalar_type() == at::kFloat ? layer_slopes<float>(saved, y) : layer_slopes<double>(saved, y);
  }
};

}  // namespace

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias, double eps, Path path) {
  if (x.dim() == 0 || scale.dim() != 1 || x.size(-1) != scale.size(0) || bias.sizes() != scale.sizes())
    throw Error(Fault::usage,
                fmt::format("layer_norm: the scale is [{}], the bias [{}] and x [{}]; both must have x's last side",
                            fmt::join(scale.sizes(), ", "), fmt::join(bias.sizes(), ", "), fmt::join(x.sizes(), ", ")));
  if (path == Path::plain || !can_fuse({x, scale, bias})) return plain::layer_norm(x, scale, bias, eps);
  return LayerNorm::apply(x, scale, bias, eps);
}

}  // namespace cautious::model::ops
