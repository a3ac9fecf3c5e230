// The operations of ops.h in ATen operations.
#include "model/ops/fused.h"

#include <limits>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>

namespace cautious::model::ops {
namespace {

at::Tensor capped(const at::Tensor& x, double softcap) { return softcap > 0 ? (x / softcap).tanh() * softcap : x; }

// At least f32, for what bf16 would spoil: sums and exponentials over many entries.
at::Tensor wide(const at::Tensor& x) { return x.scalar_type() == at::kBFloat16 ? x.to(at::kFloat) : x; }

at::Tensor by_heads(const at::Tensor& x, std::int64_t head_size) {
  return x.unflatten(-1, {x.size(-1) / head_size, head_size});
}

at::Tensor softmax_of(const at::Tensor& scores, const at::Tensor& like) {
  return at::softmax(scores, -1).to(like.scalar_type());
}

// Which keys a query does not look at, [B or 1, 1, T, T].
at::Tensor unseen(const at::Tensor& q, const at::Tensor& starts, std::int64_t window) {
  const at::Tensor key = at::arange(q.size(1), q.options().dtype(at::kLong).requires_grad(false)), query = key.unsqueeze(1);
  at::Tensor mask = (key > query).view({1, 1, q.size(1), q.size(1)});
  if (window > 0) mask = mask.logical_or(key <= query - window);
  return starts.defined() ? mask.logical_or(key < starts.to(key.device()).unsqueeze(1).unsqueeze(3)) : mask;
}

}  // namespace

namespace plain {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& scale, double offset, double eps) {
  const at::Tensor y = wide(x);
  return (y * (y.pow(2).mean(-1, true) + eps).rsqrt() * (wide(scale) + offset)).to(x.scalar_type());
}

at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias, double eps) {
  return at::layer_norm(x, {x.size(-1)}, scale, bias, eps);
}

at::Tensor linear_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias) {
  return at::gelu(at::linear(x, weight, bias));
}

at::Tensor batch_norm(const at::Tensor& x, const BatchNorm& norm, const at::Tensor& added, Then then, bool training) {
  at::Tensor y = at::batch_norm(x, norm.scale, norm.bias, norm.mean, norm.variance, training, kBatchMomentum, kBatchEps, false);
  if (added.defined()) y = y + added;
  return then == Then::relu ? y.relu() : y;
}

at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation) {
  return (activation == Activation::silu ? at::silu(gate) : at::gelu(gate, "tanh")) * up;
}

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const at::Tensor& starts,
                     const AttentionShape& shape) {
  const std::int64_t group = shape.heads / shape.kv_heads;
  const auto rotated = [&](const at::Tensor& x) { return shape.rope.base > 0 ? rope(x, shape.head_size, shape.rope) : x; };
  const at::Tensor queries = by_heads(rotated(q), shape.head_size);
  at::Tensor keys = by_heads(rotated(k), shape.head_size), values = by_heads(v, shape.head_size);
  if (group > 1) {
    keys = keys.repeat_interleave(group, 2);
    values = values.repeat_interleave(group, 2);
  }
  const at::Tensor scores = at::matmul((queries * shape.scale).transpose(1, 2), keys.permute({0, 2, 3, 1}));
  if (!shape.causal)
    return at::matmul(softmax_of(capped(wide(scores), shape.softcap), v), values.transpose(1, 2)).transpose(1, 2).flatten(2);
  const at::Tensor masked = capped(wide(scores), shape.softcap)
                                .masked_fill(unseen(q, starts, shape.window), -std::numeric_limits<double>::infinity());
  return at::matmul(softmax_of(masked, v), values.transpose(1, 2)).transpose(1, 2).flatten(2);
}

at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& target,
                         double softcap) {
  const at::Tensor logits = capped(wide(at::linear(hidden, weight, bias)), softcap);
  return at::nll_loss(at::log_softmax(logits, 1), target, {}, at::Reduction::Mean, -1);
}

}  // namespace plain
}  // namespace cautious::model::ops
