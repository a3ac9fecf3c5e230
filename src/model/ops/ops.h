// The operations of a Transformer that plain libtorch does slowly on a CPU, each as one autograd function.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/core/Tensor.h>

#include "model/config.h"

namespace cautious::model::ops {

// plain: the same in ATen operations; the oracle, and the path of tensors that are not f32 or f64 on the CPU, which take it by
// themselves.
enum class Path { fused, plain };

// x [N, in] times each weight [out, in] transposed.
std::vector<at::Tensor> linears(const at::Tensor& x, at::TensorList weights, Path path);

// y = x / sqrt(mean(x^2) + eps) * (offset + scale) over the last side. scale [d].
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& scale, double offset, double eps, Path path);

// activation(gate) * up, of equal shapes.
at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation, Path path);

struct AttentionShape {
  std::int64_t heads, kv_heads, head_size;  // kv_heads divides heads: query head h looks at key head h * kv_heads / heads
  double scale;                             // of the scores
  double softcap = 0;                       // scores <- softcap tanh(scores / softcap); 0 is off
  double rope_base = 0;                     // queries and keys are rotated by their position, halves convention; 0 is off
};

// Causal attention. q [B, T, heads * head_size], k and v [B, T, kv_heads * head_size] -> [B, T, heads * head_size]. Neither
// scores nor their softmax are kept.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape, Path path);

// Rotates x [B, T, heads * head_size] by position, from `first` on: the halves convention, (x1, x2) -> (x1 c - x2 s, x2 c + x1
// s) with angle position * base^(-2 i / head_size). Plain operations; attention() does it by itself.
at::Tensor rope(const at::Tensor& x, std::int64_t head_size, double base, std::int64_t first = 0);

// Mean over the rows of -log softmax(hidden weight^T + bias)[target], with logits soft-capped as above. hidden [N, d], weight
// [V, d], bias [V] or undefined, target int64 [N]; a target of -1 leaves its row out. The logits are never all in memory.
at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& target,
                         double softcap, Path path);

}  // namespace cautious::model::ops
