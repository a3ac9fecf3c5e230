// Reading: keys and defaults are those of the families' own config.json. Where a file can say what our model does not do, it is
// refused, and so is every key that we do not know: the weights would load and mean something else.
#include "model/family.h"

#include <array>
#include <string>
#include <string_view>
#include <type_traits>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/text.h"
#include "model/json_keys.h"

namespace cautious::model {
namespace {

// What changes nothing that a model computes from its tokens, once it is trained.
constexpr auto kPassedOver = std::to_array<std::string_view>(
    {"architectures", "model_type", "transformers_version", "torch_dtype", "dtype", "use_cache", "_name_or_path",
     // tokens
     "bos_token_id", "eos_token_id", "pad_token_id", "unk_token_id", "sep_token_id", "decoder_start_token_id",
     // training
     "initializer_range", "attention_dropout", "hidden_dropout", "residual_dropout", "embedding_dropout", "attn_pdrop",
     "embd_pdrop", "resid_pdrop", "gradient_checkpointing", "pretraining_tp",
     // how others compute and report it
     "_attn_implementation", "attn_implementation", "cache_implementation", "output_attentions", "output_hidden_states",
     "return_dict", "reorder_and_upcast_attn", "is_llama_config", "transformers.js_config", "unsloth_version",
     // heads of other tasks
     "task_specific_params", "id2label", "label2id", "summary_type", "summary_use_proj", "summary_activation",
     "summary_proj_to_labels", "summary_first_dropout"});

void read_scaling(const Keys& keys, const char* name, const Json& value, ModelConfig& c) {
  const Keys inner(value);
  std::string kind = "default";
  inner.maybe("type", kind);
  inner.maybe("rope_type", kind);
  inner.maybe("rope_theta", c.rope_base);
  inner.only("partial_rotary_factor", 1.0);
  if (kind == "linear" || kind == "llama3") {
    c.rope_scaling = kind == "linear" ? RopeScaling::linear : RopeScaling::llama3;
    inner.require("factor", c.rope_factor);
  } else if (kind != "default") {
    keys.unsupported(name, value, "rope_type default, linear, llama3");
  }
  if (kind == "llama3") {
    inner.require("low_freq_factor", c.rope_low);
    inner.require("high_freq_factor", c.rope_high);
    inner.require("original_max_position_embeddings", c.rope_original);
  }
  inner.no_others(name, {});
}

// Newer files have the base of the rotation in an object of its own, older ones beside it.
void read_rotation(const Keys& keys, ModelConfig& c) {
  keys.maybe("rope_theta", c.rope_base);
  keys.only("partial_rotary_factor", 1.0);
  keys.only("rope_interleaved", false);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    if (const Json* found = keys.find(key)) read_scaling(keys, key, *found, c);
  }
  if (c.rope_base <= 0) Keys::wrong("rope_theta", c.rope_base, "a number > 0");  // ours with 0 have no rotation at all
}

void read_activation(const Keys& keys, const char* key, std::string name, ModelConfig& c) {
  keys.maybe(key, name);
  if (name == "silu" || name == "swish") {
    c.activation = Activation::silu;
  } else if (name == "gelu_pytorch_tanh" || name == "gelu_new") {
    c.activation = Activation::gelu;
  } else {
    keys.unsupported(key, name, "silu, gelu_pytorch_tanh");
  }
}

void read_attention_bias(const Keys& keys, ModelConfig& c) {
  keys.maybe("attention_bias", c.qkv_bias);
  c.o_bias = c.qkv_bias;
}

// The sizes, in words that all but GPT-2 have in common, and rotary positions.
ModelConfig read_sides(const Keys& keys) {
  ModelConfig c;
  keys.require("vocab_size", c.vocab);
  keys.require("hidden_size", c.width);
  keys.require("intermediate_size", c.hidden);
  keys.require("num_hidden_layers", c.layers);
  keys.require("num_attention_heads", c.heads);
  keys.require("max_position_embeddings", c.context);
  c.kv_heads = c.heads;
  keys.maybe("num_key_value_heads", c.kv_heads);
  c.head_size = c.width / c.heads;
  keys.maybe("head_dim", c.head_size);
  c.tied = false;
  keys.maybe("tie_word_embeddings", c.tied);
  keys.maybe(kInitKey, c.init);
  read_rotation(keys, c);
  return c;
}

ModelConfig read_llama(const Keys& keys) {
  ModelConfig c = read_sides(keys);
  keys.require("rms_norm_eps", c.norm_eps);
  read_activation(keys, "hidden_act", "silu", c);
  read_attention_bias(keys, c);
  keys.maybe("mlp_bias", c.ffn_bias);
  return c;
}

ModelConfig read_mistral(const Keys& keys) {
  ModelConfig c = read_sides(keys);
  keys.require("rms_norm_eps", c.norm_eps);
  read_activation(keys, "hidden_act", "silu", c);
  keys.only("attention_bias", false);
  if (!keys.contains("sliding_window")) c.window = 4096;  // its default; null is none
  keys.maybe("sliding_window", c.window);
  return c;
}

// Layers from max_window_layers on have the window, if it is used at all.
void read_qwen_window(const Keys& keys, ModelConfig& c) {
  bool used = false;
  std::int64_t window = 0, full = c.layers;
  keys.maybe("use_sliding_window", used);
  keys.maybe("sliding_window", window);
  keys.maybe("max_window_layers", full, {0, 1e9, false, false});
  if (!used || full >= c.layers) return;
  if (full > 0) keys.unsupported("max_window_layers", full, fmt::format("0, or all {} layers", c.layers));
  keys.require("sliding_window", c.window);
}

ModelConfig read_qwen2(const Keys& keys) {
  ModelConfig c = read_sides(keys);
  keys.require("rms_norm_eps", c.norm_eps);
  read_activation(keys, "hidden_act", "silu", c);
  c.qkv_bias = true;
  read_qwen_window(keys, c);
  keys.only("use_mrope", false);
  return c;
}

ModelConfig read_qwen3(const Keys& keys) {
  ModelConfig c = read_sides(keys);
  if (keys.find("head_dim") == nullptr) c.head_size = 128;
  keys.require("rms_norm_eps", c.norm_eps);
  read_activation(keys, "hidden_act", "silu", c);
  read_attention_bias(keys, c);
  c.qk_norm = true;
  read_qwen_window(keys, c);
  return c;
}

ModelConfig read_olmo(const Keys& keys) {
  ModelConfig c = read_sides(keys);
  c.norm = NormKind::layer;
  c.norm_eps = kOlmoEps;
  read_activation(keys, "hidden_act", "silu", c);
  read_attention_bias(keys, c);
  keys.only("clip_qkv", nullptr);
  return c;
}

ModelConfig read_gemma(const Keys& keys) {
  ModelConfig c = read_sides(keys);
  c.tied = true;
  keys.maybe("tie_word_embeddings", c.tied);
  keys.require("head_dim", c.head_size);
  keys.require("rms_norm_eps", c.norm_eps);
  (void)keys.find("hidden_act");  // in older files; it was never in effect
  read_activation(keys, "hidden_activation", "gelu_pytorch_tanh", c);
  read_attention_bias(keys, c);
  c.norm = NormKind::rms_offset;
  c.embedding_scale = true;
  return c;
}

ModelConfig read_gemma2(const Keys& keys) {
  ModelConfig c = read_gemma(keys);
  c.post_norm = true;
  keys.require("query_pre_attn_scalar", c.score_size);
  keys.require("sliding_window", c.window);
  (void)keys.find("sliding_window_size");  // the same in older files
  c.full_every = kGemma2FullEvery;
  keys.maybe("attn_logit_softcapping", c.attention_softcap);
  keys.maybe("final_logit_softcapping", c.logit_softcap);
  return c;
}

ModelConfig read_gpt2(const Keys& keys) {
  ModelConfig c;
  keys.require("vocab_size", c.vocab);
  keys.require("n_embd", c.width);
  keys.require("n_layer", c.layers);
  keys.require("n_head", c.heads);
  keys.require("n_positions", c.context);
  keys.only("n_ctx", c.context);
  c.kv_heads = c.heads;
  c.head_size = c.width / c.heads;
  c.hidden = 4 * c.width;
  keys.maybe("n_inner", c.hidden);
  c.norm_eps = 1e-5;
  keys.maybe("layer_norm_epsilon", c.norm_eps);
  read_activation(keys, "activation_function", "gelu_new", c);
  keys.only("scale_attn_weights", true);
  keys.only("scale_attn_by_inverse_layer_idx", false);
  keys.only("add_cross_attention", false);
  keys.maybe("tie_word_embeddings", c.tied);
  c.norm = NormKind::layer_affine;
  c.rope_base = 0;
  c.gated = false;
  c.learned_positions = c.qkv_bias = c.o_bias = c.ffn_bias = true;
  return c;
}

ModelConfig read_cautious(const Keys& keys) {
  ModelConfig c;
  bool later = false;  // than the first checkpoints, which lack the key
  base::each_field(c, [&](auto& of, const auto& field) {
    const std::string name(field.name);
    later = later || name == "qkv_bias";
    if (!later) keys.demand(name.c_str());
    if constexpr (std::is_same_v<decltype(of.*field.member), std::int64_t&>) {
      keys.maybe(name.c_str(), of.*field.member, field.range);
    } else {
      keys.maybe(name.c_str(), of.*field.member);
    }
  });
  if (keys.find("embedding_scale") == nullptr) c.embedding_scale = c.norm == NormKind::rms_offset;
  return c;
}

// Where a file lists the layers' kinds, they are those that its other keys say.
void check_layer_types(const Keys& keys, const ModelConfig& c) {
  const Json* const kinds = keys.find("layer_types");
  if (kinds == nullptr) return;
  Json expected = Json::array();
  for (std::int64_t layer = 1; layer <= c.layers; ++layer) {
    const bool full = c.window == 0 || (c.full_every > 0 && layer % c.full_every == 0);
    expected.push_back(full ? "full_attention" : "sliding_attention");
  }
  if (*kinds != expected) keys.unsupported("layer_types", *kinds, expected.dump());
}

struct Family {
  std::string_view name;
  ModelConfig (*read)(const Keys& keys);
};
constexpr std::array kFamilies{
    Family{"llama", read_llama},   Family{"mistral", read_mistral}, Family{"qwen2", read_qwen2},
    Family{"qwen3", read_qwen3},   Family{"olmo", read_olmo},       Family{"gemma", read_gemma},
    Family{"gemma2", read_gemma2}, Family{"gpt2", read_gpt2},       Family{"cautious", read_cautious}};

ModelConfig read_model(const Keys& keys) {
  std::array<std::string_view, kFamilies.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kFamilies[i].name;
  std::string type;
  keys.require("model_type", type);
  const Family& family = kFamilies[base::index_of_name("model_type", type, names)];
  const ModelConfig c = family.read(keys);
  check(c);
  check_layer_types(keys, c);
  keys.only("quantization_config", nullptr);
  keys.no_others("a model of the type " + type, kPassedOver);
  return c;
}

}  // namespace

ModelConfig from_config_json(std::string_view text, const std::string& file) {
  return read_described<ModelConfig>(text, file, read_model);
}

}  // namespace cautious::model
