// The operations of Transformers and image classifiers that plain libtorch does slowly on a CPU, each as one autograd function.
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

// x [..., in] weight^T + bias, weight [out, in], bias [out]; linear_onto() adds it to `sum` [..., out]; linear_gelu() makes
// each entry h into h P(z < h) of a normal z, with erf.
at::Tensor linear(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Path path);
at::Tensor linear_onto(const at::Tensor& sum, const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Path path);
at::Tensor linear_gelu(const at::Tensor& x, const at::Tensor& weight, const at::Tensor& bias, Path path);

// y = x / sqrt(mean(x^2) + eps) * (offset + scale) over the last side. scale [d].
at::Tensor rms_norm(const at::Tensor& x, const at::Tensor& scale, double offset, double eps, Path path);

// y = (x - mean) / sqrt(variance + eps) * scale + bias over the last side. scale and bias [d].
at::Tensor layer_norm(const at::Tensor& x, const at::Tensor& scale, const at::Tensor& bias, double eps, Path path);

// activation(gate) * up, of equal shapes.
at::Tensor gated(const at::Tensor& gate, const at::Tensor& up, Activation activation, Path path);

// Rotary positions: entries i and i + head_size / 2 of a head are turned by position * rope_speeds()[i].
struct Rope {
  double base = 0;  // 0 is off
  RopeScaling scaling = RopeScaling::none;
  double factor = 1, low = 1, high = 4, original = 8192;  // as in ModelConfig

  bool operator==(const Rope&) const = default;
};

// [head_size / 2]: base^(-2 i / head_size), over `factor` as the scaling says. llama3: over nothing for pairs that make at
// least `high` turns in `original` positions, over the whole factor for those with at most `low`, in proportion between them.
std::vector<double> rope_speeds(const Rope& rope, std::int64_t head_size);

struct AttentionShape {
  std::int64_t heads, kv_heads, head_size;  // kv_heads divides heads: query head h looks at key head h * kv_heads / heads
  double scale;                             // of the scores
  double softcap = 0;                       // scores <- softcap tanh(scores / softcap); 0 is off
  Rope rope = {};                           // of queries and keys
  bool causal = true;                       // a query looks at the keys up to its own position; otherwise at all
  std::int64_t window = 0;                  // and at the last so many of them alone, its own among them; 0 is off
};

// Attention. q [B, T, heads * head_size], k and v [B, T, kv_heads * head_size] -> [B, T, heads * head_size]. Neither
// scores nor their softmax are kept. `starts`, if defined, are whole numbers [B, T]: the first key that each query may look at,
// such as the first token of its document; none is later than the query itself, nor earlier than the one before it.
at::Tensor attention(const at::Tensor& q, const at::Tensor& k, const at::Tensor& v, const AttentionShape& shape, Path path,
                     const at::Tensor& starts = {});

// The same of queries, keys and values side by side, [B, T, 3 * heads * head_size], for equally many heads of each.
at::Tensor self_attention(const at::Tensor& qkv, const AttentionShape& shape, Path path);

// Rotates x [B, T, heads * head_size] by position, from `first` on: the halves convention, (x1, x2) -> (x1 c - x2 s, x2 c + x1
// s). Plain operations; attention() does it by itself.
at::Tensor rope(const at::Tensor& x, std::int64_t head_size, const Rope& rope, std::int64_t first = 0);

// Mean over the rows of -log softmax(hidden weight^T + bias)[target], with logits soft-capped as above. hidden [N, d], weight
// [V, d], bias [V] or undefined, target int64 [N]; a target of -1 leaves its row out. The logits are never all in memory.
at::Tensor cross_entropy(const at::Tensor& hidden, const at::Tensor& weight, const at::Tensor& bias, const at::Tensor& target,
                         double softcap, Path path);

// Scales, biases and running statistics of the channels, [C] each.
struct BatchNorm {
  at::Tensor scale, bias, mean, variance;
};
constexpr double kBatchMomentum = 0.1;  // how far a batch moves the running statistics, as everywhere

// Images [N, C, H, W] -> relu((x - mean) / sqrt(variance + 1e-5) * scale + bias + added), `added` being undefined or like x,
// and relu left out if so said. Training takes mean and variance of the batch and moves the running ones a tenth of the way to
// them; otherwise the running ones are taken.
enum class Then { nothing, relu };
at::Tensor batch_norm(const at::Tensor& x, const BatchNorm& norm, const at::Tensor& added, Then then, bool training, Path path);

}  // namespace cautious::model::ops
