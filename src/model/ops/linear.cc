// Products of one input with several weights. Each thread multiplies rows of its own with a single-threaded BLAS: the threads
// of a threaded one wait for each other inside every product, which costs a tenth at width 320 and a third at width 128.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/mm.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "linear/blas.h"
#include "model/ops/fused.h"
#include "model/ops/ops.h"

namespace cautious::model::ops {
namespace {

using linear::Block;
using linear::multiply;
using linear::Transpose;
using ::torch::autograd::variable_list;

constexpr std::int64_t kRows = 256;  // of a piece; by shape alone, so that bits do not depend on threads

template <class T>
Block<const T> rows_of(const at::Tensor& matrix, std::int64_t first, std::int64_t count) {
  const auto cols = static_cast<int>(matrix.size(1));
  return {matrix.data_ptr<T>() + first * cols, static_cast<int>(count), cols, cols};
}

template <class T>
Block<T> rows_to(at::Tensor& matrix, std::int64_t first, std::int64_t count) {
  const auto cols = static_cast<int>(matrix.size(1));
  return {matrix.data_ptr<T>() + first * cols, static_cast<int>(count), cols, cols};
}

// body(first, count) for pieces of rows, in parallel.
template <class Body>
void by_rows(std::int64_t rows, const Body& body) {
  parallel((rows + kRows - 1) / kRows, [&](std::int64_t piece) {
    const std::int64_t first = piece * kRows;
    body(first, std::min(kRows, rows - first));
  });
}

struct Linear : ::torch::autograd::Function<Linear> {
  static variable_list forward(::torch::autograd::AutogradContext* context, const at::Tensor& x, at::TensorList weights) {
    variable_list kept{x}, results;
    kept.insert(kept.end(), weights.begin(), weights.end());
    for (const at::Tensor& weight : weights) results.push_back(at::empty({x.size(0), weight.size(0)}, x.options()));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear", [&] {
      by_rows(x.size(0), [&](std::int64_t first, std::int64_t count) {
        for (std::size_t i = 0; i < weights.size(); ++i) {
          multiply(scalar_t(1), rows_of<scalar_t>(x, first, count), Transpose::no,
                   rows_of<scalar_t>(weights[i], 0, weights[i].size(0)), Transpose::yes, scalar_t(0),
                   rows_to<scalar_t>(results[i], first, count));
        }
      });
    });
    context->save_for_backward(std::move(kept));
    context->set_materialize_grads(false);
    return results;
  }

  static variable_list backward(::torch::autograd::AutogradContext* context, variable_list gradients) {
    not_twice("linear");
    const variable_list kept = context->get_saved_variables();
    const at::Tensor& x = kept[0];
    variable_list results(kept.size());
    std::vector<std::size_t> seen;  // outputs that the loss depends on
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      gradients[i] = gradients[i].contiguous();
      seen.push_back(i);
      if (kept[i + 1].requires_grad()) results[i + 1] = at::mm(gradients[i].t(), x);
    }
    if (!x.requires_grad() || seen.empty()) return results;
    results[0] = at::empty(x.sizes(), x.options());
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_backward", [&] {
      by_rows(x.size(0), [&](std::int64_t first, std::int64_t count) {
        for (const std::size_t i : seen) {
          multiply(scalar_t(1), rows_of<scalar_t>(gradients[i], first, count), Transpose::no,
                   rows_of<scalar_t>(kept[i + 1], 0, kept[i + 1].size(0)), Transpose::no, scalar_t(i == seen.front() ? 0 : 1),
                   rows_to<scalar_t>(results[0], first, count));
        }
      });
    });
    return results;
  }
};

}  // namespace

std::vector<at::Tensor> linears(const at::Tensor& x, at::TensorList weights, Path path) {
  bool fits = path == Path::fused && can_fuse({x});
  for (const at::Tensor& weight : weights) {
    if (x.dim() != 2 || weight.dim() != 2 || x.size(1) != weight.size(1)) {
      throw Error(Fault::usage,
                  fmt::format("linear: x has {} sides and weight {}, or their last sides differ; valid: [N, in] and [out, in]",
                              x.dim(), weight.dim()));
    }
    fits = fits && can_fuse({x, weight});
  }
  if (fits) {
    std::vector<at::Tensor> dense;
    for (const at::Tensor& weight : weights) dense.push_back(weight.contiguous());
    return Linear::apply(x.contiguous(), at::TensorList(dense));
  }
  std::vector<at::Tensor> results;
  for (const at::Tensor& weight : weights) results.push_back(at::linear(x, weight));
  return results;
}

}  // namespace cautious::model::ops
