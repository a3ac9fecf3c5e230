// Keys and defaults are those of the families' own config.json. Where a file can say what our model does not do, it is refused:
// the weights would load and mean something else.
#include "model/family.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/text.h"

namespace cautious::model {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kOlmoEps = 1e-5;  // part of that architecture, not of its config.json
constexpr Range kSize{1, 1e9, false, false};
constexpr std::array<std::string_view, 4> kFamilies{"llama", "olmo", "qwen3", "cautious"};
constexpr int kDeepest = 64;                       // printing a value takes stack by its depth
constexpr const char* kInitKey = "cautious_init";  // ours; other tools pass over it

template <class Value>
Json to_json(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(cautious::name_of(value));
  } else {
    return value;
  }
}

[[noreturn]] void refuse(const std::string& what) { throw Error(Fault::usage, what); }

// One object of the file. null counts as absent. Errors have no file yet; from_config_json() adds it.
class Keys {
 public:
  explicit Keys(const Json& object) : object_(object) {}

  const Json* find(const char* key) const {
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }

  // A missing key leaves the value as it is.
  void maybe(const char* key, std::int64_t& value) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    const bool inside = found->is_number_integer() && kSize.contains(found->get<double>());
    if (!inside) wrong(key, *found, "a whole number in " + to_string(kSize));
    value = found->get<std::int64_t>();
  }
  void maybe(const char* key, double& value) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number()) wrong(key, *found, "a number");
    value = found->get<double>();
  }
  void maybe(const char* key, bool& value) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) wrong(key, *found, "true or false");
    value = found->get<bool>();
  }
  void maybe(const char* key, std::string& value) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_string()) wrong(key, *found, "a text");
    value = found->get<std::string>();
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void maybe(const char* key, Enum& value) const {
    std::string name = std::string(cautious::name_of(value));
    maybe(key, name);
    value = base::named<Enum>(key, name);
  }

  template <class Value>
  void require(const char* key, Value& value) const {
    if (find(key) == nullptr) refuse(fmt::format("there is no key '{}'", key));
    maybe(key, value);
  }

  // Absent, or the one value that means what our model does.
  void only(const char* key, const Json& valid) const {
    const Json* found = find(key);
    if (found != nullptr && *found != valid) unsupported(key, *found, valid.is_null() ? "absent" : valid.dump());
  }

  [[noreturn]] static void unsupported(const char* key, const Json& value, const std::string& valid) {
    refuse(fmt::format("'{}' is {}, which our models do not have; valid: {}", key, base::in_quotes(value.dump()), valid));
  }

 private:
  [[noreturn]] static void wrong(const char* key, const Json& value, const std::string& valid) {
    refuse(fmt::format("'{}' is {}; valid: {}", key, base::in_quotes(value.dump()), valid));
  }

  const Json& object_;
};

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

ModelConfig read_model(const Json& json) {
  if (!json.is_object()) refuse(fmt::format("it is {}, not an object", base::in_quotes(json.dump())));
  const Keys keys(json);
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
  const auto not_too_deep = [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepest) refuse(fmt::format("values are nested deeper than {}", kDeepest));
    return true;
  };
  try {
    return read_model(Json::parse(text, not_too_deep));
  } catch (const nlohmann::json::exception& error) {
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    what.remove_prefix(what.find(']') + 2);
    throw Error(Fault::data, fmt::format("{}: not JSON: {}", file, base::in_quotes(what)));
  } catch (const Error& error) {
    throw Error(Fault::data, fmt::format("{}: {}", file, error.what()));
  }
}

}  // namespace cautious::model
