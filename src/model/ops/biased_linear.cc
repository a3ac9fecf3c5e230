// A product with its bias, and what surrounds it in a layer: the sum that it is added to, or the GELU that follows. A piece of
// the result is finished while it is in the cache.
#include <algorithm>
#include <cstdint>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/ops/fused.h"
#include "model/ops/linear_pieces.h"
#include "model/ops/ops.h"

namespace cautious::model::ops {
namespace {

// y = bias in every row, or that plus the rows of `sum`.
template <class T>
CAUTIOUS_CLONES void start_rows(std::int64_t rows, std::int64_t columns, const T* __restrict bias, const T* __restrict sum,
                                T* __restrict y) {
  for (std::int64_t r = 0; r < rows; ++r, y += columns) {
    if (sum == nullptr) {
      for (std::int64_t j = 0; j < columns; ++j) y[j] = bias[j];
    } else {
      for (std::int64_t j = 0; j < columns; ++j) y[j] = bias[j] + sum[r * columns + j];
    }
  }
}

template <class T>
CAUTIOUS_INLINE T normal_share(T x) {  // P(z < x)
  return T(0.5) + T(0.5) * fast_erf(x * T(0.70710678118654752440));
}

template <class T>
CAUTIOUS_CLONES void gelu_entries(std::int64_t count, const T* __restrict x, T* __restrict y) {
  for (std::int64_t i = 0; i < count; ++i) y[i] = x[i] * normal_share(x[i]);
}

// by_x = y times the slope at x.
template <class T>
CAUTIOUS_CLONES void gelu_slopes(std::int64_t count, const T* __restrict x, const T* __restrict y, T* __restrict by_x) {
  constexpr T density = T(0.39894228040143267794);  // of a normal number at 0
  constexpr T far = T(16);                          // beyond it the density is 0, and a square might overflow
  for (std::int64_t i = 0; i < count; ++i) {
    T near = x[i] < -far ? -far : x[i];
    near = near > far ? far : near;
    by_x[i] = y[i] * (normal_share(x[i]) + near * density * fast_exp(near * near * T(-0.5)));
  }
}

// sums = those of the columns.
template <class T>
CAUTIOUS_CLONES void add_columns(std::int64_t rows, std::int64_t columns, const T* __restrict x, T* __restrict sums) {
  for (std::int64_t j = 0; j < columns; ++j) sums[j] = 0;
  for (std::int64_t r = 0; r < rows; ++r, x += columns)
    for (std::int64_t j = 0; j < columns; ++j) sums[j] += x[j];
}

struct Biased {
  at::Tensor x, weight, bias, sum;  // sum may be undefined
};

// y = x weight^T + bias (+ sum); `curved`, if defined, its GELU.
template <class T>
void biased_products(const Biased& in, const at::Tensor& y, const at::Tensor& curved) {
  const at::Tensor ready = packed<T>(in.weight, Transpose::yes);
  const std::int64_t rows = in.x.size(0), columns = y.size(1);
  parallel(pieces_of(rows, kRows), [&](std::int64_t piece) {
    const std::int64_t first = piece * kRows, count = std::min(kRows, rows - first), at = first * columns;
    T* const to = y.data_ptr<T>() + at;
    start_rows<T>(count, columns, in.bias.data_ptr<T>(), in.sum.defined() ? in.sum.data_ptr<T>() + at : nullptr, to);
    multiply_packed(T(1), rows_of<T>(in.x, first, count), Transpose::no, ready.data_ptr<T>(), Into::add,
                    rows_to<T>(y, first, count));
    if (curved.defined()) gelu_entries<T>(count * columns, to, curved.data_ptr<T>() + at);
  });
}

// The gradient by the bias from that by y, which first is made from that by the GELU's outcome if `before` it is defined.
template <class T>
at::Tensor bias_slopes(const at::Tensor& before, const at::Tensor& by_curved, const at::Tensor& by_y) {
  const std::int64_t rows = by_y.size(0), columns = by_y.size(1), pieces = pieces_of(rows, kRows);
  const at::Tensor sums = at::empty({pieces, columns}, by_y.options()), total = at::empty({columns}, by_y.options());
  parallel(pieces, [&](std::int64_t piece) {
    const std::int64_t first = piece * kRows, count = std::min(kRows, rows - first), at = first * columns;
    T* const from = by_y.data_ptr<T>() + at;
    if (before.defined()) gelu_slopes<T>(count * columns, before.data_ptr<T>() + at, by_curved.data_ptr<T>() + at, from);
    add_columns<T>(count, columns, from, sums.data_ptr<T>() + piece * columns);
  });
  add_in_order(sums.data_ptr<T>(), pieces, columns, total.data_ptr<T>());
  return total;
}

using ::torch::autograd::AutogradContext;

struct BiasedLinear : ::torch::autograd::Function<BiasedLinear> {
  static at::Tensor forward(AutogradContext* context, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                            const c10::optional<at::Tensor>& sum, bool curve) {
    const Biased in{x, weight, bias, sum.value_or(at::Tensor())};
    const at::Tensor y = at::empty({x.size(0), weight.size(0)}, x.options());
    const at::Tensor curved = curve ? at::empty(y.sizes(), y.options()) : at::Tensor();
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear", [&] { biased_products<scalar_t>(in, y, curved); });
    context->save_for_backward({x, weight, curve ? y : at::Tensor()});
    context->saved_data["sum"] = in.sum.defined();
    return curve ? curved : y;
  }

  static variable_list backward(AutogradContext* context, const variable_list& incoming) {
    not_twice("linear");
    const variable_list kept = context->get_saved_variables();
    const at::Tensor &x = kept[0], &weight = kept[1], &before = kept[2], gradient = incoming[0].contiguous();
    const at::TensorOptions options = x.options().requires_grad(false);
    const at::Tensor by_y = before.defined() ? at::empty(gradient.sizes(), options) : gradient;
    const at::Tensor by_x = context->needs_input_grad(0) ? at::empty(x.sizes(), options) : at::Tensor();
    const at::Tensor by_weight = at::empty(weight.sizes(), options);
    at::Tensor by_bias;
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_backward", [&] {
      by_bias = bias_slopes<scalar_t>(before, gradient, by_y);
      backward_products<scalar_t>(x, {{weight, by_y, by_weight}}, by_x);
    });
    const bool has_sum = context->saved_data["sum"].toBool();
    return {by_x, by_weight, by_bias, has_sum ? gradient : at::Tensor(), at::Tensor()};
  }
};

std::vector<std::int64_t> sides_made(const at::Tensor& x, const at::Tensor& weight) {
  std::vector<std::int64_t> sides = x.sizes().vec();
  sides.back() = weight.size(0);
  return sides;
}

void check_biased(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& sum) {
  const bool fits = x.dim() > 0 && weight.dim() == 2 && bias.dim() == 1 && x.size(-1) == weight.size(1) &&
                    bias.size(0) == weight.size(0) && (!sum.defined() || sum.sizes() == sides_made(x, weight));
  if (!fits) {
    throw Error(Fault::usage,
                fmt::format("linear: x is [{}], the weight [{}], the bias [{}]; valid: [..., in], [out, in], [out], and a sum "
                            "[..., out]",
                            fmt::join(x.sizes(), ", "), fmt::join(weight.sizes(), ", "), fmt::join(bias.sizes(), ", ")));
  }
}

at::Tensor fused_linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& sum,
                        bool curve) {
  const auto rows = [](const at::Tensor& of) { return of.reshape({-1, of.size(-1)}).contiguous(); };
  const c10::optional<at::Tensor> onto = sum.defined() ? c10::make_optional(rows(sum)) : c10::nullopt;
  return BiasedLinear::apply(rows(x), weight.contiguous(), bias.contiguous(), onto, curve).view(sides_made(x, weight));
}

}  // namespace

at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Path path) {
  check_biased(x, weight, bias, {});
  if (path == Path::plain || !can_fuse({x, weight, bias})) return at::linear(x, weight, bias);
  return fused_linear(x, weight, bias, {}, false);
}

at::Tensor linear_onto(const at::Tensor& sum, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias,
                       Path path) {
  check_biased(x, weight, bias, sum);
  if (path == Path::plain || !can_fuse({sum, x, weight, bias})) return sum + at::linear(x, weight, bias);
  return fused_linear(x, weight, bias, sum, false);
}

at::Tensor linear_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Path path) {
  check_biased(x, weight, bias, {});
  if (path == Path::plain || !can_fuse({x, weight, bias})) return plain::linear_gelu(x, weight, bias);
  return fused_linear(x, weight, bias, {}, true);
}

}  // namespace cautious::model::ops
