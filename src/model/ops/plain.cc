// The operations of ops.h in ATen operations.
#include "model/ops/fused.h"

#include <limits>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/core/Reduction.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/batch_norm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/gelu.h>
#include <ATen/ops/layer_norm.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/nll_loss.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/pow.h>
#include <ATen/ops/silu.h>
#include <ATen/ops/softmax.h>

namespace cautious::model::ops {
namespace {

at::Tensor capped(const at::Tensor& x, double softcap) { return softcap > 0 ? (x / softcap).tanh() * softcap : x; }

// Cosine and sine [T, 1, head_size / 2], of angles in f64.
std::pair<at::Tensor, at::Tensor> rotation(const at::Tensor& like, std::int64_t tokens, std::int64_t head_size, double base,
                                           std::int64_t first) {
  const at::TensorOptions options = like.options().dtype(at::kDouble).requires_grad(false);
  const at::Tensor exponent = at::arange(0, head_size / 2, options) * (-2.0 / static_cast<double>(head_size));
  const at::Tensor angle = at::arange(first, first + tokens, options).unsqueeze(1) * at::pow(base, exponent);
  return {angle.cos().to(like.scalar_type()).unsqueeze(1), angle.sin().to(like.scalar_type()).unsqueeze(1)};
}

// x [B, T, heads, head_size].
at::Tensor rotated(const at::Tensor& x, const std::pair<at::Tensor, at::Tensor>& by) {
  const std::int64_t half = x.size(-1) / 2;
  const at::Tensor x1 = x.narrow(-1, 0, half), x2 = x.narrow(-1, half, half);
  return at::cat({x1 * by.first - x2 * by.second, x2 * by.first + x1 * by.second}, -1);
}

at::Tensor by_heads(const at::Tensor& x, std::int64_t head_size) {
  return x.unflatten(-1, {x.size(-1) / head_size, head_size});
}

}  // namespace

at::Tensor rope(const at::Tensor& x, std::int64_t head_size, double base, std::int64_t first) {
  return rotated(by_heads(x, head_size), rotation(x, x.size(1), head_size, base, first)).flatten(2);
}

namespace plain {

at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& scale, double offset, double eps) {
  return x * (x.pow(2).mean(-1, true) + eps).rsqrt() * (scale + offset);
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

at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape) {
  const std::int64_t tokens = q.size(1), group = shape.heads / shape.kv_heads;
  at::Tensor queries = by_heads(q, shape.head_size), keys = by_heads(k, shape.head_size), values = by_heads(v, shape.head_size);
  if (shape.rope_base > 0) {
    const auto by = rotation(q, tokens, shape.head_size, shape.rope_base, 0);
    queries = rotated(queries, by);
    keys = rotated(keys, by);
  }
  if (group > 1) {
    keys = keys.repeat_interleave(group, 2);
    values = values.repeat_interleave(group, 2);
  }
  const at::Tensor scores = at::matmul((queries * shape.scale).transpose(1, 2), keys.permute({0, 2, 3, 1}));
  if (!shape.causal)
    return at::matmul(at::softmax(capped(scores, shape.softcap), -1), values.transpose(1, 2)).transpose(1, 2).flatten(2);
  const at::Tensor later = at::ones({tokens, tokens}, q.options().dtype(at::kBool).requires_grad(false)).triu(1);
  const at::Tensor masked = capped(scores, shape.softcap).masked_fill(later, -std::numeric_limits<double>::infinity());
  return at::matmul(at::softmax(masked, -1), values.transpose(1, 2)).transpose(1, 2).flatten(2);
}

at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& target,
                         double softcap) {
  const at::Tensor logits = capped(at::linear(hidden, weight, bias), softcap);
  return at::nll_loss(at::log_softmax(logits, 1), target, {}, at::Reduction::Mean, -1);
}

}  // namespace plain
}  // namespace cautious::model::ops
