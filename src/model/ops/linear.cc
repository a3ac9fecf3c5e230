// Products of one input with several weights.
#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include <ATen/Dispatch.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <fmt/format.h>
#include <torch/csrc/autograd/custom_function.h>

#include <cautious/error.h>

#include "model/ops/fused.h"
#include "model/ops/linear_pieces.h"
#include "model/ops/ops.h"

namespace cautious::model::ops {
namespace {

template <class T>
void forward_products(const at::Tensor& x, at::TensorList weights, const variable_list& results) {
  variable_list ready;
  for (const at::Tensor& weight : weights) ready.push_back(packed<T>(weight, Transpose::yes));
  parallel(pieces_of(x.size(0), kRows), [&](std::int64_t piece) {
    const std::int64_t first = piece * kRows, count = std::min(kRows, x.size(0) - first);
    for (std::size_t i = 0; i < weights.size(); ++i)
      multiply_packed(T(1), rows_of<T>(x, first, count), Transpose::no, ready[i].data_ptr<T>(), Into::set,
                      rows_to<T>(results[i], first, count));
  });
}

struct Linear : ::torch::autograd::Function<Linear> {
  static variable_list forward(::torch::autograd::AutogradContext* context, const at::Tensor& x, at::TensorList weights) {
    variable_list kept{x}, results;
    kept.insert(kept.end(), weights.begin(), weights.end());
    for (const at::Tensor& weight : weights) results.push_back(at::empty({x.size(0), weight.size(0)}, x.options()));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear", [&] { forward_products<scalar_t>(x, weights, results); });
    context->save_for_backward(std::move(kept));
    context->set_materialize_grads(false);
    return results;
  }

  static variable_list backward(::torch::autograd::AutogradContext* context, const variable_list& gradients) {
    not_twice("linear");
    const variable_list kept = context->get_saved_variables();
    const at::Tensor& x = kept[0];
    variable_list results(kept.size());
    std::vector<Seen> all;
    for (std::size_t i = 0; i < gradients.size(); ++i) {
      if (!gradients[i].defined()) continue;
      const at::Tensor& weight = kept[i + 1];
      if (weight.requires_grad()) results[i + 1] = at::empty(weight.sizes(), weight.options().requires_grad(false));
      all.push_back({weight, gradients[i].contiguous(), results[i + 1]});
    }
    if (x.requires_grad() && !all.empty()) results[0] = at::empty(x.sizes(), x.options().requires_grad(false));
    AT_DISPATCH_FLOATING_TYPES(x.scalar_type(), "linear_backward", [&] { backward_products<scalar_t>(x, all, results[0]); });
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
