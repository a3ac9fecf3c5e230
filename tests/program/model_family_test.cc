// config.json: which family a model is, the keys other tools read, both ways for every preset, and what is refused.
#include "model/family.h"

#include <functional>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/fields.h"

namespace cautious::model {
namespace model_family_test {

using Json = nlohmann::json;

std::string fields(const model::ModelConfig& c) { return base::to_line(base::fields_of(c)); }

bool survives(const model::ModelConfig& c) {
  return fields(model::from_config_json(model::to_config_json(c, 0, 0), "config.json")) == fields(c);
}

Json written(const model::ModelConfig& c) { return Json::parse(model::to_config_json(c, 6, 7)); }

std::string fault(const std::string& text) {
  try {
    model::from_config_json(text, "run/config.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    return error.what();
  }
  return "";
}

// As another tool writes it.
Json foreign() {
  return Json::parse(R"({"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 32000,
    "hidden_size": 2048, "intermediate_size": 5632, "num_hidden_layers": 22, "num_attention_heads": 32,
    "num_key_value_heads": 4, "max_position_embeddings": 2048, "hidden_act": "silu", "rms_norm_eps": 1e-05,
    "rope_scaling": null, "rope_theta": 10000.0, "tie_word_embeddings": false, "initializer_range": 0.02,
    "pretraining_tp": 1, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16", "transformers_version": "4.35.0"})");
}

std::string fault_with(const char* key, const Json& value) {
  Json json = foreign();
  json[key] = value;
  return fault(json.dump());
}

TEST(ModelFamily, PresetsHaveTheirFamilies) {
  for (const std::string& name : model::preset_names()) {
    const std::string expected = name.starts_with("nano-")    ? "llama"
                                 : name.starts_with("olmo-")  ? "olmo"
                                 : name.starts_with("qwen3-") ? "qwen3"
                                                              : "cautious";
    EXPECT_EQ(model::family_of(model::preset(name)), expected) << name;
  }
}

TEST(ModelFamily, WhatIsWrittenReadsBackTheSame) {
  for (const std::string& name : model::preset_names()) EXPECT_TRUE(survives(model::preset(name))) << name;
  const std::vector<std::function<void(model::ModelConfig&)>> changes{
      [](model::ModelConfig& c) { c.tied = !c.tied; },
      [](model::ModelConfig& c) { c.heads = 4, c.kv_heads = 2; },
      [](model::ModelConfig& c) { c.head_size = 6; },
      [](model::ModelConfig& c) { c.norm = model::NormKind::rms_offset; },
      [](model::ModelConfig& c) { c.norm = model::NormKind::layer; },
      [](model::ModelConfig& c) { c.norm = model::NormKind::rms; },
      [](model::ModelConfig& c) { c.post_norm = !c.post_norm; },
      [](model::ModelConfig& c) { c.qk_norm = !c.qk_norm; },
      [](model::ModelConfig& c) { c.query_scale = !c.query_scale; },
      [](model::ModelConfig& c) { c.ffn_bias = !c.ffn_bias; },
      [](model::ModelConfig& c) { c.output_bias = !c.output_bias; },
      [](model::ModelConfig& c) { c.activation = model::Activation::gelu; },
      [](model::ModelConfig& c) { c.rope_base = 0; },
      [](model::ModelConfig& c) { c.rope_base = 1234.5678901234567; },
      [](model::ModelConfig& c) { c.attention_softcap = 0.1; },
      [](model::ModelConfig& c) { c.logit_softcap = 1e-3; },
      [](model::ModelConfig& c) { c.norm_eps = 3e-7; },
      [](model::ModelConfig& c) { c.init = model::Init::xavier; },
      [](model::ModelConfig& c) { c.vocab = 1, c.layers = 1, c.context = 1; },
      [](model::ModelConfig& c) { c.norm = model::NormKind::layer_affine; },
      [](model::ModelConfig& c) { c.qkv_bias = true; },
      [](model::ModelConfig& c) { c.qkv_bias = c.o_bias = true; },
      [](model::ModelConfig& c) { c.gated = false; },
      [](model::ModelConfig& c) { c.embedding_scale = !c.embedding_scale; },
      [](model::ModelConfig& c) { c.learned_positions = true, c.rope_base = 0; },
      [](model::ModelConfig& c) { c.score_size = 7.5; },
      [](model::ModelConfig& c) { c.window = 9; },
      [](model::ModelConfig& c) { c.window = 9, c.full_every = 2; },
      [](model::ModelConfig& c) { c.rope_scaling = model::RopeScaling::linear, c.rope_factor = 2.5; },
      [](model::ModelConfig& c) {
        c.rope_scaling = model::RopeScaling::llama3, c.rope_factor = 8, c.rope_low = 1.5, c.rope_high = 3, c.rope_original = 77;
      },
      [](model::ModelConfig& c) { c.norm = model::NormKind::rms_offset, c.query_scale = c.ffn_bias = c.output_bias = false; },
      [](model::ModelConfig& c) {
        c.norm = model::NormKind::rms_offset, c.query_scale = c.ffn_bias = c.output_bias = false, c.window = 5,
        c.full_every = 2;
        c.score_size = 12, c.activation = model::Activation::silu;
      },
  };
  for (const char* name : {"nano-100k", "gemma-15m", "olmo-1b", "qwen3-0.6b"}) {
    for (std::size_t i = 0; i < changes.size(); ++i) {
      model::ModelConfig config = model::preset(name);
      changes[i](config);
      EXPECT_TRUE(survives(config)) << name << " with change " << i << ": " << model::to_config_json(config, 0, 0);
    }
  }
}

TEST(ModelFamily, AFamilyIsOnlyWhatItsCodeComputes) {
  const auto family_with = [](const char* name, const std::function<void(model::ModelConfig&)>& change) {
    model::ModelConfig config = model::preset(name);
    change(config);
    return model::family_of(config);
  };
  EXPECT_EQ(family_with("olmo-1b", [](model::ModelConfig& c) { c.norm_eps = 1e-6; }), "cautious");
  EXPECT_EQ(family_with("olmo-1b", [](model::ModelConfig& c) { c.head_size = 64; }), "cautious");
  EXPECT_EQ(family_with("olmo-1b", [](model::ModelConfig& c) { c.ffn_bias = true; }), "cautious");
  EXPECT_EQ(family_with("qwen3-0.6b", [](model::ModelConfig& c) { c.ffn_bias = true; }), "cautious");
  EXPECT_EQ(family_with("nano-1m", [](model::ModelConfig& c) { c.ffn_bias = true; }), "llama");
  EXPECT_EQ(family_with("nano-1m", [](model::ModelConfig& c) { c.qk_norm = true; }), "qwen3");
  EXPECT_EQ(family_with("nano-1m", [](model::ModelConfig& c) { c.output_bias = true; }), "cautious");
  EXPECT_EQ(family_with("nano-1m", [](model::ModelConfig& c) { c.rope_base = 0; }), "cautious");
}

TEST(ModelFamily, FamiliesOfOthersAreWrittenAsWhatTheyAre) {
  const auto family_with = [](const std::function<void(model::ModelConfig&)>& change) {
    model::ModelConfig config = model::preset("nano-100k");
    change(config);
    EXPECT_TRUE(survives(config)) << model::to_config_json(config, 0, 0);
    return std::string(model::family_of(config)) + " " + written(config).at("architectures").at(0).get<std::string>();
  };
  const auto to_gemma = [](model::ModelConfig& c) {
    c.norm = model::NormKind::rms_offset, c.embedding_scale = true, c.activation = model::Activation::gelu;
  };
  EXPECT_EQ(family_with([](auto& c) { c.qkv_bias = c.o_bias = true; }), "llama LlamaForCausalLM");
  EXPECT_EQ(family_with([](auto& c) { c.window = 64; }), "mistral MistralForCausalLM");
  EXPECT_EQ(family_with([](auto& c) { c.qkv_bias = true; }), "qwen2 Qwen2ForCausalLM");
  EXPECT_EQ(family_with([](auto& c) { c.qkv_bias = true, c.window = 64; }), "qwen2 Qwen2ForCausalLM");
  EXPECT_EQ(family_with([](auto& c) { c.qk_norm = true, c.window = 64; }), "qwen3 Qwen3ForCausalLM");
  EXPECT_EQ(family_with(to_gemma), "gemma GemmaForCausalLM");
  EXPECT_EQ(family_with([&](auto& c) {
              to_gemma(c);
              c.post_norm = true, c.window = 64, c.full_every = 2, c.score_size = 16, c.attention_softcap = 50;
            }),
            "gemma2 Gemma2ForCausalLM");
  EXPECT_EQ(family_with([](auto& c) { c.o_bias = true; }), "cautious CautiousForCausalLM");
  EXPECT_EQ(family_with([](auto& c) { c.window = 64, c.full_every = 2; }), "cautious CautiousForCausalLM");
  EXPECT_EQ(family_with([](auto& c) { c.norm = model::NormKind::layer_affine, c.gated = false; }),
            "cautious CautiousForCausalLM");
}

TEST(ModelFamily, LlamaHasTheKeysOfLlama) {
  const Json json = written(model::preset("nano-1m"));
  EXPECT_EQ(json.at("architectures"), Json::parse(R"(["LlamaForCausalLM"])"));
  EXPECT_EQ(json.at("model_type"), "llama");
  EXPECT_EQ(json.at("vocab_size"), 256);
  EXPECT_EQ(json.at("hidden_size"), 128);
  EXPECT_EQ(json.at("intermediate_size"), 352);
  EXPECT_EQ(json.at("num_hidden_layers"), 5);
  EXPECT_EQ(json.at("num_attention_heads"), 4);
  EXPECT_EQ(json.at("num_key_value_heads"), 4);
  EXPECT_EQ(json.at("head_dim"), 32);
  EXPECT_EQ(json.at("max_position_embeddings"), 256);
  EXPECT_EQ(json.at("rms_norm_eps"), 1e-6);
  EXPECT_EQ(json.at("rope_theta"), 10000);
  EXPECT_EQ(json.at("hidden_act"), "silu");
  EXPECT_EQ(json.at("tie_word_embeddings"), true);
  EXPECT_EQ(json.at("attention_bias"), false);
  EXPECT_EQ(json.at("mlp_bias"), false);
  EXPECT_EQ(json.at("torch_dtype"), "float32");
  EXPECT_EQ(json.at("bos_token_id"), 6);
  EXPECT_EQ(json.at("eos_token_id"), 7);
  EXPECT_EQ(json.at("cautious_init"), "truncated-normal");
}

TEST(ModelFamily, TheOthersHaveTheirArchitecture) {
  EXPECT_EQ(written(model::preset("olmo-1b")).at("architectures").at(0), "OlmoForCausalLM");
  EXPECT_FALSE(written(model::preset("olmo-1b")).contains("rms_norm_eps"));
  EXPECT_EQ(written(model::preset("qwen3-0.6b")).at("architectures").at(0), "Qwen3ForCausalLM");
  const Json gemma = written(model::preset("gemma-15m"));
  EXPECT_EQ(gemma.at("model_type"), "cautious");
  EXPECT_EQ(gemma.at("norm"), "rms-offset");
  EXPECT_EQ(gemma.at("attention_softcap"), 50);
}

TEST(ModelFamily, AForeignLlamaIsUnderstood) {
  const model::ModelConfig c = model::from_config_json(foreign().dump(), "config.json");
  EXPECT_EQ(c.kv_heads, 4);
  EXPECT_EQ(c.head_size, 64);  // it does not say: width over heads
  EXPECT_EQ(c.norm_eps, 1e-5);
  EXPECT_FALSE(c.tied);
  Json json = foreign();
  for (const char* key : {"tie_word_embeddings", "rope_theta", "hidden_act", "rope_scaling"}) json.erase(key);
  EXPECT_EQ(fields(model::from_config_json(json.dump(), "config.json")), fields(c));
  json["rope_parameters"] = {{"rope_type", "default"}, {"rope_theta", 5e5}};
  EXPECT_EQ(model::from_config_json(json.dump(), "config.json").rope_base, 5e5);
  json.erase("num_key_value_heads");
  EXPECT_EQ(model::from_config_json(json.dump(), "config.json").kv_heads, 32);
  json["mlp_bias"] = true;
  EXPECT_TRUE(model::from_config_json(json.dump(), "config.json").ffn_bias);
}

TEST(ModelFamily, WindowsAreThoseOfTheFamily) {
  Json json = foreign();
  json["model_type"] = "mistral";
  EXPECT_EQ(model::from_config_json(json.dump(), "config.json").window, 4096);  // where its file does not say
  json["sliding_window"] = nullptr;
  EXPECT_EQ(model::from_config_json(json.dump(), "config.json").window, 0);
  json["layer_types"] = Json::array();
  for (int i = 0; i < 22; ++i) json["layer_types"].push_back("full_attention");
  EXPECT_EQ(fault(json.dump()), "");
  json["sliding_window"] = 16;
  EXPECT_NE(fault(json.dump()).find("'layer_types' is"), std::string::npos);
  json.erase("layer_types");
  json["model_type"] = "qwen2";
  EXPECT_EQ(model::from_config_json(json.dump(), "config.json").window, 0);
  json["use_sliding_window"] = true;
  json["max_window_layers"] = 0;
  EXPECT_EQ(model::from_config_json(json.dump(), "config.json").window, 16);
  json["max_window_layers"] = 22;
  EXPECT_EQ(model::from_config_json(json.dump(), "config.json").window, 0);
  json["max_window_layers"] = 11;
  EXPECT_EQ(fault(json.dump()),
            "run/config.json: 'max_window_layers' is '11', which our models do not have; valid: 0, or all 22 layers");
}

TEST(ModelFamily, WhatOurModelsLackIsRefusedWithKeyAndValue) {
  EXPECT_EQ(fault_with("rope_scaling", {{"type", "dynamic"}, {"factor", 2.0}}),
            "run/config.json: 'rope_scaling' is '{\"factor\":2.0,\"type\":\"dynamic\"}', which our models do not have; "
            "valid: rope_type default, linear, llama3");
  EXPECT_EQ(fault_with("rope_parameters", {{"rope_type", "llama3"}}), "run/config.json: there is no key 'factor'");
  EXPECT_EQ(fault_with("rope_scaling", {{"type", "linear"}, {"factor", 2.0}, {"beta_fast", 32}}),
            "run/config.json: 'beta_fast' is not a key of rope_scaling that we know; remove it if the model computes the same "
            "without it");
  EXPECT_EQ(fault_with("hidden_act", "gelu"),
            "run/config.json: 'hidden_act' is '\"gelu\"', which our models do not have; valid: silu, gelu_pytorch_tanh");
  EXPECT_EQ(fault_with("rope_theta", 0), "run/config.json: 'rope_theta' is '0.0'; valid: a number > 0");
  EXPECT_NE(fault_with("partial_rotary_factor", 0.5).find("'partial_rotary_factor' is '0.5'"), std::string::npos);
  EXPECT_NE(fault_with("layer_types", {"full_attention", "sliding_attention"}).find("'layer_types' is"), std::string::npos);
  EXPECT_NE(fault_with("quantization_config", {{"bits", 4}}).find("valid: absent"), std::string::npos);
  EXPECT_EQ(fault_with("clip_qkv", nullptr), "");
  EXPECT_EQ(fault_with("partial_rotary_factor", 1), "");
}

TEST(ModelFamily, UnknownKeysAreRefusedByName) {
  for (const char* key :
       {"clip_qkv", "sliding_window", "use_sliding_window", "attn_logit_softcapping", "norm_scale", "qk_norm"}) {
    EXPECT_EQ(
        fault_with(key, 8),
        fmt::format("run/config.json: '{}' is not a key of a model of the type llama that we know; remove it if the model "
                    "computes the same without it",
                    key));
  }
  Json ours = written(model::preset("gemma-15m"));
  ours["activatoin"] = "silu";
  EXPECT_NE(fault(ours.dump()).find("'activatoin' is not a key of a model of the type cautious"), std::string::npos);
}

TEST(ModelFamily, OldDescriptionsOfOursMeanWhatTheyMeant) {
  const model::ModelConfig config = model::preset("gemma-15m");
  Json ours = written(config);
  for (const char* key : {"qkv_bias", "o_bias", "gated", "embedding_scale", "learned_positions", "score_size", "window",
                          "full_every", "rope_scaling", "rope_factor", "rope_low", "rope_high", "rope_original"}) {
    EXPECT_EQ(ours.erase(key), 1U) << key;
  }
  EXPECT_EQ(fields(model::from_config_json(ours.dump(), "config.json")), fields(config));
}

TEST(ModelFamily, MissingAndIllTypedKeysAreNamed) {
  for (const char* key : {"model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers",
                          "num_attention_heads", "max_position_embeddings", "rms_norm_eps"}) {
    Json json = foreign();
    json.erase(key);
    EXPECT_EQ(fault(json.dump()), std::string("run/config.json: there is no key '") + key + "'");
  }
  EXPECT_EQ(fault_with("hidden_size", "wide"),
            "run/config.json: 'hidden_size' is '\"wide\"'; valid: a whole number in [1, 1000000000]");
  EXPECT_EQ(fault_with("num_attention_heads", 0),
            "run/config.json: 'num_attention_heads' is '0'; valid: a whole number in [1, 1000000000]");
  EXPECT_EQ(fault_with("num_hidden_layers", 2.5),
            "run/config.json: 'num_hidden_layers' is '2.5'; valid: a whole number in [1, 1000000000]");
  EXPECT_EQ(fault_with("tie_word_embeddings", 1), "run/config.json: 'tie_word_embeddings' is '1'; valid: true or false");
  EXPECT_EQ(fault_with("rms_norm_eps", false), "run/config.json: 'rms_norm_eps' is 'false'; valid: a number");
  EXPECT_EQ(fault_with("num_key_value_heads", 5),
            "run/config.json: heads of the model is 32, which kv_heads 5 does not divide");
  EXPECT_EQ(fault_with("rms_norm_eps", 2), "run/config.json: norm_eps of the model is 2; valid: (0, 1)");
  EXPECT_EQ(fault_with("model_type", "lama"),
            "run/config.json: no model_type named 'lama'; did you mean 'llama'? choices: llama, mistral, "
            "qwen2, qwen3, olmo, gemma, gemma2, gpt2, cautious");
  EXPECT_EQ(fault_with("cautious_init", "zero"),
            "run/config.json: no cautious_init named 'zero'; choices: truncated-normal, xavier, mitchell");
  Json ours = written(model::preset("gemma-15m"));
  ours.erase("post_norm");
  EXPECT_EQ(fault(ours.dump()), "run/config.json: there is no key 'post_norm'");
}

TEST(ModelFamily, WhatIsNoConfigIsRefused) {
  EXPECT_NE(fault("").find("run/config.json: not JSON: 'parse error at line 1"), std::string::npos) << fault("");
  EXPECT_NE(fault("{\"model_type\": 1e999}").find("run/config.json: not JSON: 'number overflow"), std::string::npos);
  EXPECT_EQ(fault("[1]"), "run/config.json: it is '[1]', not an object");
  EXPECT_EQ(fault(std::string(100000, '[')), "run/config.json: values are nested deeper than 64");
}

}  // namespace model_family_test
}  // namespace cautious::model
