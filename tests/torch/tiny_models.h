// Models small enough for a naive comparison that have every switch on and off between them, and tokens for them.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/GradMode.h>

#include "model/transformer.h"

namespace cautious::tiny {

inline std::map<std::string, model::ModelConfig> models() {
  model::ModelConfig llama;
  llama.vocab = 50;
  llama.width = 16;
  llama.heads = llama.kv_heads = 2;
  llama.head_size = 8;
  llama.hidden = 24;
  llama.context = 16;
  model::ModelConfig gemma = llama;
  gemma.norm = model::NormKind::rms_offset;
  gemma.post_norm = gemma.query_scale = gemma.ffn_bias = gemma.output_bias = gemma.embedding_scale = true;
  gemma.activation = model::Activation::gelu;
  gemma.attention_softcap = 0.5;
  gemma.logit_softcap = 1;
  model::ModelConfig olmo = llama;
  olmo.norm = model::NormKind::layer;
  olmo.init = model::Init::mitchell;
  model::ModelConfig qwen = llama;
  qwen.heads = 4;
  qwen.qk_norm = true;
  qwen.rope_base = 1e6;
  model::ModelConfig untied = llama;
  untied.tied = false;
  untied.output_bias = true;
  untied.rope_base = 0;
  untied.heads = untied.kv_heads = 3;
  untied.head_size = 5;
  model::ModelConfig all = gemma;
  all.qk_norm = true;
  all.tied = false;
  all.heads = 6;
  all.kv_heads = 2;
  model::ModelConfig layer = olmo;
  layer.post_norm = layer.qk_norm = layer.query_scale = layer.ffn_bias = true;
  model::ModelConfig window = qwen;
  window.layers = 3;
  window.window = 5;
  window.full_every = 2;
  window.score_size = 3;
  window.rope_scaling = model::RopeScaling::llama3;  // of four speeds one is kept, two between, one slowed
  window.rope_base = 100;
  window.rope_factor = 8;
  window.rope_original = 70;
  model::ModelConfig linear = llama;
  linear.window = 1;
  linear.full_every = 2;
  linear.rope_scaling = model::RopeScaling::linear;
  linear.rope_factor = 4;
  model::ModelConfig gpt2 = llama;
  gpt2.norm = model::NormKind::layer_affine;
  gpt2.activation = model::Activation::gelu;
  gpt2.rope_base = 0;
  gpt2.gated = false;
  gpt2.learned_positions = gpt2.qkv_bias = gpt2.o_bias = gpt2.ffn_bias = true;
  return {{"gpt2", gpt2}, {"window", window}, {"linear", linear}, {"llama", llama}, {"gemma", gemma},
          {"olmo", olmo}, {"qwen", qwen},     {"untied", untied}, {"all", all},     {"layer", layer}};
}

// Moves the initial values apart, so that scales, biases and masks matter.
inline void shake(model::Transformer& model) {
  const at::NoGradGuard guard;
  double phase = 0;
  for (at::Tensor& p : model.parameters()) {
    p.add_(at::arange(p.numel(), p.options()).mul(1.7).add(phase += 0.3).sin().view(p.sizes()), 0.2);
  }
}

inline std::vector<std::int64_t> words(std::int64_t count, std::int64_t vocab) {
  std::vector<std::int64_t> result;
  for (std::int64_t i = 1; i <= count; ++i) result.push_back((i * i * 7 + i * 3) % vocab);
  return result;
}

// [1, count].
inline at::Tensor row(std::vector<std::int64_t> tokens) {
  return at::from_blob(tokens.data(), {1, std::int64_t(tokens.size())}, at::kLong).clone();
}

}  // namespace cautious::tiny
