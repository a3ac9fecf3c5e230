// The decoder-only Transformer of config.h as a libtorch module. Parameters carry the names other tools know
// (model.layers.0.self_attn.q_proj.weight ...).
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <torch/nn/module.h>

#include "model/config.h"
#include "model/ops/ops.h"

namespace cautious::model {

struct RunOptions {
  ops::Path path = ops::Path::fused;
  bool recompute = false;  // keep only each layer's input and compute the rest again in the backward pass
};

// Initial values of a parameter. They depend on the seed, the parameter's name and the position in the tensor alone: neither on
// threads nor on the other parameters. In f32 the values are those of f64, rounded.
void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<float> values);
void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<double> values);

ops::AttentionShape attention_shape(const ModelConfig& config);

class Transformer : public ::torch::nn::Module {
 public:
  // Parameters as the config's init says, from `seed` alone; on the CPU, in f32 or f64.
  Transformer(const ModelConfig& config, std::uint64_t seed, RunOptions options = {}, at::ScalarType type = at::kFloat);

  // Mean loss of predicting target[b, t] from tokens[b, 0..t]; both int64 [B, T]. A target of -1 does not count.
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& target);

  // [B, T, vocab], for sampling and evaluation.
  at::Tensor logits(const at::Tensor& tokens);

  // The two halves of logits(): [B * T, width] after the final norm, and [N, vocab] of such rows.
  at::Tensor hidden(const at::Tensor& tokens) const;
  at::Tensor logits_of(const at::Tensor& rows) const;

  // hidden() with another attention, such as one that knows earlier tokens: of rows of queries [B * T, heads * head_size], keys
  // and values [B * T, kv_heads * head_size], all before their rotation, to rows like the queries'.
  using Attend = std::function<at::Tensor(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;
  at::Tensor hidden(const at::Tensor& tokens, const Attend& attend) const;

  const ModelConfig& config() const { return config_; }

 private:
  struct Layer;
  struct Recomputed;
  at::Tensor embedded(const at::Tensor& tokens) const;  // [B * T, width]

  ModelConfig config_;
  RunOptions options_;
  at::Tensor embedding_, output_, output_bias_, final_norm_;
  std::vector<std::shared_ptr<const Layer>> layers_;
};

}  // namespace cautious::model
