// Writing: a family is only what its code in other tools computes.
#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "base/fields.h"
#include "model/family.h"
#include "model/json_keys.h"

namespace cautious::model {
namespace {

struct WrittenFamily {
  std::string_view name;
  const char* architecture;
  bool (*is)(const ModelConfig& c);
};

bool without_bias(const ModelConfig& c) { return !c.qkv_bias && !c.o_bias && !c.ffn_bias; }
// One option is for all four.
bool one_bias(const ModelConfig& c) { return c.qkv_bias == c.o_bias; }
// Some have no size of heads of their own.
bool whole_heads(const ModelConfig& c) { return c.heads * c.head_size == c.width; }
bool usual_scores(const ModelConfig& c) {
  const bool by_head = c.score_size == 0 || c.score_size == static_cast<double>(c.head_size);
  return by_head && c.attention_softcap == 0 && c.logit_softcap == 0;
}
// Llama but for biases and windows.
bool like_llama(const ModelConfig& c) {
  return c.norm == NormKind::rms && !c.post_norm && !c.embedding_scale && usual_scores(c);
}
bool like_gemma(const ModelConfig& c) {
  return c.norm == NormKind::rms_offset && c.embedding_scale && !c.qk_norm && one_bias(c) && !c.ffn_bias;
}

constexpr std::array kWritten{
    WrittenFamily{"llama", "LlamaForCausalLM",
                  [](const ModelConfig& c) { return like_llama(c) && !c.qk_norm && one_bias(c) && c.window == 0; }},
    WrittenFamily{"mistral", "MistralForCausalLM",
                  [](const ModelConfig& c) { return like_llama(c) && !c.qk_norm && without_bias(c) && c.full_every == 0; }},
    WrittenFamily{"qwen2", "Qwen2ForCausalLM",
                  [](const ModelConfig& c) {
                    const bool biases = c.qkv_bias && !c.o_bias && !c.ffn_bias;
                    return like_llama(c) && !c.qk_norm && biases && c.full_every == 0 && whole_heads(c);
                  }},
    WrittenFamily{
        "qwen3", "Qwen3ForCausalLM",
        [](const ModelConfig& c) { return like_llama(c) && c.qk_norm && one_bias(c) && !c.ffn_bias && c.full_every == 0; }},
    WrittenFamily{"olmo", "OlmoForCausalLM",
                  [](const ModelConfig& c) {
                    const bool plain = !c.post_norm && !c.qk_norm && !c.embedding_scale && usual_scores(c) && c.window == 0;
                    return plain && c.norm == NormKind::layer && c.norm_eps == kOlmoEps && one_bias(c) && !c.ffn_bias &&
                           whole_heads(c);
                  }},
    WrittenFamily{"gemma", "GemmaForCausalLM",
                  [](const ModelConfig& c) { return like_gemma(c) && !c.post_norm && usual_scores(c) && c.window == 0; }},
    WrittenFamily{"gemma2", "Gemma2ForCausalLM", [](const ModelConfig& c) {
                    return like_gemma(c) && c.post_norm && c.window > 0 && c.full_every == kGemma2FullEvery;
                  }}};

const WrittenFamily* find_family(const ModelConfig& c) {
  if (c.query_scale || c.output_bias || c.rope_base == 0 || !c.gated) return nullptr;
  const auto* const found = std::ranges::find_if(kWritten, [&](const WrittenFamily& family) { return family.is(c); });
  return found == kWritten.end() ? nullptr : found;
}

Json scaling_json(const ModelConfig& c) {
  if (c.rope_scaling == RopeScaling::none) return nullptr;
  const std::string kind(cautious::name_of(c.rope_scaling));
  Json json{{"rope_type", kind}, {"type", kind}, {"factor", c.rope_factor}};
  if (c.rope_scaling == RopeScaling::llama3) {
    json["low_freq_factor"] = c.rope_low;
    json["high_freq_factor"] = c.rope_high;
    json["original_max_position_embeddings"] = c.rope_original;
  }
  return json;
}

void add_window(Json& json, const ModelConfig& c, std::string_view family) {
  const Json window = c.window > 0 ? Json(c.window) : Json(nullptr);
  if (family.starts_with("qwen")) {
    json["use_sliding_window"] = c.window > 0;
    json["max_window_layers"] = c.window > 0 ? 0 : c.layers;
  }
  if (family != "llama" && family != "olmo" && family != "gemma") json["sliding_window"] = window;
}

Json known_json(const ModelConfig& c, const WrittenFamily& family) {
  const char* const activation = c.activation == Activation::silu ? "silu" : "gelu_pytorch_tanh";
  Json json{{"architectures", {family.architecture}},
            {"model_type", family.name},
            {"vocab_size", c.vocab},
            {"hidden_size", c.width},
            {"intermediate_size", c.hidden},
            {"num_hidden_layers", c.layers},
            {"num_attention_heads", c.heads},
            {"num_key_value_heads", c.kv_heads},
            {"head_dim", c.head_size},
            {"max_position_embeddings", c.context},
            {"hidden_act", activation},
            {"rope_theta", c.rope_base},
            {"rope_scaling", scaling_json(c)},
            {"attention_dropout", 0.0},
            {"tie_word_embeddings", c.tied}};
  if (family.name.starts_with("gemma")) json["hidden_activation"] = activation;
  if (family.name != "mistral" && family.name != "qwen2") json["attention_bias"] = c.qkv_bias;
  if (family.name == "llama") json["mlp_bias"] = c.ffn_bias;
  if (family.name == "olmo") {
    json["clip_qkv"] = nullptr;
  } else {
    json["rms_norm_eps"] = c.norm_eps;
  }
  if (family.name == "gemma2") {
    const auto cap = [](double value) { return value > 0 ? Json(value) : Json(nullptr); };
    json["query_pre_attn_scalar"] = c.score_size > 0 ? c.score_size : static_cast<double>(c.head_size);
    json["attn_logit_softcapping"] = cap(c.attention_softcap);
    json["final_logit_softcapping"] = cap(c.logit_softcap);
  }
  add_window(json, c, family.name);
  json["initializer_range"] = 0.02;
  json[kInitKey] = std::string(cautious::name_of(c.init));
  json["use_cache"] = true;
  return json;
}

}  // namespace

std::string_view family_of(const ModelConfig& config) {
  const WrittenFamily* const family = find_family(config);
  return family == nullptr ? "cautious" : family->name;
}

std::string to_config_json(const ModelConfig& config, std::int64_t beginning, std::int64_t end) {
  check(config);
  Json json;
  if (const WrittenFamily* const family = find_family(config)) {
    json = known_json(config, *family);
  } else {
    json = {{"architectures", {"CautiousForCausalLM"}}, {"model_type", "cautious"}};
    base::each_field(config, [&](auto& of, const auto& field) { json[std::string(field.name)] = to_json(of.*field.member); });
  }
  json["torch_dtype"] = "float32";
  json["bos_token_id"] = beginning;
  json["eos_token_id"] = end;
  json["pad_token_id"] = nullptr;
  return json.dump(2) + "\n";
}

}  // namespace cautious::model
