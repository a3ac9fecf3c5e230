// Keys and defaults are those of the families' own config.json. Where a file can say what our model does not do, it is refused:
// the weights would load and mean something else.
#include "model/family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/text.h"
#include "model/json_keys.h"

namespace cautious::model {
namespace {

constexpr double kOlmoEps = 1e-5;  // part of that architecture, not of its config.json
constexpr std::array<std::string_view, 4> kFamilies{"llama", "olmo", "qwen3", "cautious"};
constexpr const char* kInitKey = "cautious_init";  // ours; other tools pass over it

// Newer files have the base of the rotation in an object of its own, older ones beside it.
void read_rotation(const Keys& keys, ModelConfig& c) {
  keys.maybe("rope_theta", c.rope_base);
  for (const char* key : {"rope_scaling", "rope_parameters"}) {
    const Json* found = keys.find(key);
    if (found == nullptr) continue;
    const auto plain = [&](const char* name) { return !found->contains(name) || (*found)[name] == "default"; };
    if (!found->is_object() || !plain("type") || !plain("rope_type")) keys.unsupported(key, *found, "rope_type default");
    const Keys inner(*found);
    inner.maybe("rope_theta", c.rope_base);
    inner.only("partial_rotary_factor", 1.0);
  }
  keys.only("partial_rotary_factor", 1.0);
}

void read_activation(const Keys& keys, ModelConfig& c) {
  std::string name = "silu";
  keys.maybe("hidden_act", name);
  if (name == "silu" || name == "swish") {
    c.activation = Activation::silu;
  } else if (name == "gelu_pytorch_tanh" || name == "gelu_new") {
    c.activation = Activation::gelu;
  } else {
    keys.unsupported("hidden_act", name, "silu, gelu_pytorch_tanh");
  }
}

void refuse_what_we_lack(const Keys& keys) {
  keys.only("attention_bias", false);
  keys.only("use_sliding_window", false);
  keys.only("clip_qkv", nullptr);
  keys.only("quantization_config", nullptr);
  const Json* kinds = keys.find("layer_types");
  const auto full = [](const Json& kind) { return kind == "full_attention"; };
  if (kinds != nullptr && !(kinds->is_array() && std::all_of(kinds->begin(), kinds->end(), full))) {
    keys.unsupported("layer_types", *kinds, "full_attention in every layer");
  }
}

ModelConfig read_known(const Keys& keys, std::string_view family) {
  ModelConfig c;
  c.tied = false;  // the families' own default
  refuse_what_we_lack(keys);
  keys.require("vocab_size", c.vocab);
  keys.require("hidden_size", c.width);
  keys.require("intermediate_size", c.hidden);
  keys.require("num_hidden_layers", c.layers);
  keys.require("num_attention_heads", c.heads);
  keys.require("max_position_embeddings", c.context);
  c.kv_heads = c.heads;
  keys.maybe("num_key_value_heads", c.kv_heads);
  c.head_size = family == "qwen3" ? 128 : c.width / c.heads;
  keys.maybe("head_dim", c.head_size);
  keys.maybe("tie_word_embeddings", c.tied);
  keys.maybe(kInitKey, c.init);
  read_activation(keys, c);
  read_rotation(keys, c);
  if (family == "llama") {
    keys.maybe("mlp_bias", c.ffn_bias);
  } else {
    keys.only("mlp_bias", false);
  }
  if (family == "olmo") {
    c.norm = NormKind::layer;
    c.norm_eps = kOlmoEps;
  } else {
    keys.require("rms_norm_eps", c.norm_eps);
  }
  c.qk_norm = family == "qwen3";
  return c;
}

ModelConfig read_model(const Keys& keys) {
  std::string type;
  keys.require("model_type", type);
  const std::string_view family = kFamilies[base::index_of_name("model_type", type, kFamilies)];
  ModelConfig c;
  if (family == "cautious") {
    base::each_field(c, [&](auto& of, const auto& field) { keys.require(std::string(field.name).c_str(), of.*field.member); });
  } else {
    c = read_known(keys, family);
  }
  check(c);
  return c;
}

Json known_json(const ModelConfig& c, std::string_view family) {
  const char* architecture = family == "llama"   ? "LlamaForCausalLM"
                             : family == "qwen3" ? "Qwen3ForCausalLM"
                                                 : "OlmoForCausalLM";
  Json json{{"architectures", {architecture}},
            {"model_type", family},
            {"vocab_size", c.vocab},
            {"hidden_size", c.width},
            {"intermediate_size", c.hidden},
            {"num_hidden_layers", c.layers},
            {"num_attention_heads", c.heads},
            {"num_key_value_heads", c.kv_heads},
            {"head_dim", c.head_size},
            {"max_position_embeddings", c.context},
            {"hidden_act", c.activation == Activation::silu ? "silu" : "gelu_pytorch_tanh"},
            {"rope_theta", c.rope_base},
            {"rope_scaling", nullptr},
            {"attention_bias", false},
            {"attention_dropout", 0.0},
            {"tie_word_embeddings", c.tied}};
  if (family == "llama") json["mlp_bias"] = c.ffn_bias;
  if (family == "qwen3") json["use_sliding_window"] = false;
  if (family == "olmo") {
    json["clip_qkv"] = nullptr;
  } else {
    json["rms_norm_eps"] = c.norm_eps;
  }
  json["initializer_range"] = 0.02;
  json[kInitKey] = std::string(cautious::name_of(c.init));
  json["use_cache"] = true;
  return json;
}

}  // namespace

std::string_view family_of(const ModelConfig& c) {
  const bool plain =
      !c.post_norm && !c.query_scale && !c.output_bias && c.rope_base > 0 && c.attention_softcap == 0 && c.logit_softcap == 0;
  if (plain && c.norm == NormKind::rms && !c.qk_norm) return "llama";
  if (plain && c.norm == NormKind::rms && !c.ffn_bias) return "qwen3";
  const bool whole_heads = c.heads * c.head_size == c.width;  // OLMo has no head_dim of its own
  if (plain && c.norm == NormKind::layer && c.norm_eps == kOlmoEps && !c.qk_norm && !c.ffn_bias && whole_heads) return "olmo";
  return "cautious";
}

std::string to_config_json(const ModelConfig& config, std::int64_t document_end) {
  check(config);
  const std::string_view family = family_of(config);
  Json json;
  if (family == "cautious") {
    json = {{"architectures", {"CautiousForCausalLM"}}, {"model_type", family}};
    base::each_field(config, [&](auto& of, const auto& field) { json[std::string(field.name)] = to_json(of.*field.member); });
  } else {
    json = known_json(config, family);
  }
  json["torch_dtype"] = "float32";
  json["bos_token_id"] = document_end;
  json["eos_token_id"] = document_end;
  json["pad_token_id"] = nullptr;
  return json.dump(2) + "\n";
}

ModelConfig from_config_json(std::string_view text, const std::string& file) {
  return read_described<ModelConfig>(text, file, read_model);
}

}  // namespace cautious::model
