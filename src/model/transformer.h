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

#include "model/adapters.h"
#include "model/config.h"
#include "model/ops/ops.h"
#include "model/weight_source.h"

namespace cautious::model {

struct RunOptions {
  ops::Path path = ops::Path::fused;
  bool recompute = false;              // keep only each layer's input and compute the rest again in the backward pass
  const Adapters* adapters = nullptr;  // trained instead of the own parameters; they must outlive the model
  at::TensorOptions place = {};        // device and type of the parameters, where they are others than those they begin with
};

// Initial values of a parameter. They depend on the seed, the parameter's name and the position in the tensor alone: neither on
// threads nor on the other parameters. In f32 the values are those of f64, rounded.
void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<float> values);
void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<double> values);
// Of all parameters, in the order of parameter_shapes(); type is f32 or f64.
std::vector<at::Tensor> initial_values(const ModelConfig& config, std::uint64_t seed, at::ScalarType type);
// Those of a file, in f32. Where `config` is not the file's, it has parameters of the same names and shapes, or it is an Error.
std::vector<at::Tensor> stored_values(const WeightSource& source, const ModelConfig& config);

ops::AttentionShape attention_shape(const ModelConfig& config, std::int64_t layer);

class Transformer : public ::torch::nn::Module {
 public:
  // Parameters as the config's init says, from `seed` alone; on the CPU, in f32 or f64.
  Transformer(const ModelConfig& config, std::uint64_t seed, RunOptions options = {}, at::ScalarType type = at::kFloat);
  // Parameters as stored_values() has them.
  Transformer(const WeightSource& source, const ModelConfig& config, RunOptions options = {});

  // Mean loss of predicting target[b, t] from tokens[b, 0..t]; both int64 [B, T]. A target of -1 does not count. `starts`,
  // int64 [B, T] if defined, is where the document of each token begins: nothing before that is seen, and learned positions
  // count from there.
  at::Tensor loss(const at::Tensor& tokens, const at::Tensor& target, const at::Tensor& starts = {});

  // [B, T, vocab], for sampling and evaluation.
  at::Tensor logits(const at::Tensor& tokens);

  // The two halves of logits(): [B * T, width] after the final norm, and [N, vocab] of such rows.
  at::Tensor hidden(const at::Tensor& tokens, const at::Tensor& starts = {}) const;
  at::Tensor logits_of(const at::Tensor& rows) const;

  // hidden() with another attention, such as one that knows earlier tokens: of rows of queries [B * T, heads * head_size], keys
  // and values [B * T, kv_heads * head_size], all before their rotation, to rows like the queries'. `positions`, int64 [T] or
  // [B, T], are for models that have learned some.
  using Attend = std::function<at::Tensor(std::int64_t layer, const at::Tensor& q, const at::Tensor& k, const at::Tensor& v)>;
  at::Tensor hidden(const at::Tensor& tokens, const at::Tensor& positions, const Attend& attend) const;

  const ModelConfig& config() const { return config_; }
  const RunOptions& options() const { return options_; }

 private:
  struct Layer;
  struct Recomputed;
  Transformer(const ModelConfig& config, const std::vector<at::Tensor>& values, RunOptions options);
  // [B * T, width]; positions are [T] or [B, T].
  at::Tensor embedded(const at::Tensor& tokens, const at::Tensor& positions) const;

  ModelConfig config_;
  RunOptions options_;
  at::Tensor embedding_, positions_, output_, output_bias_, final_norm_, final_norm_bias_;
  std::vector<std::shared_ptr<const Layer>> layers_;
};

}  // namespace cautious::model
