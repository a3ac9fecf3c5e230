// Presets and their published sizes, the list of parameters, sizes by hand, and the words of the error messages.
#include "model/config.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "usage_message.h"

namespace cautious::model {
namespace model_config_test {

std::map<std::string, std::vector<std::int64_t>> shapes_by_name(const model::ModelConfig& config) {
  std::map<std::string, std::vector<std::int64_t>> result;
  for (const Shape& shape : model::parameter_shapes(config)) {
    EXPECT_TRUE(result.emplace(shape.name, shape.sides).second) << shape.name << " is listed twice";
  }
  return result;
}

std::string fault_of(const std::function<void(model::ModelConfig&)>& change) {
  model::ModelConfig config;
  change(config);
  return message([&] { check(config); });
}

using Sides = std::vector<std::int64_t>;

TEST(ModelConfig, PresetsHaveTheirPublishedNumberOfParameters) {
  const std::map<std::string, std::int64_t> published{
      {"gemma-15m", 14857408},   {"gemma-41m", 40645632},    {"gemma-111m", 110550528}, {"gemma-338m", 338440704},
      {"gemma-986m", 985891840}, {"gemma-2.3b", 2321380352}, {"olmo-1b", 1176764416},   {"qwen3-0.6b", 596049920},
  };
  for (const auto& [name, count] : published) EXPECT_EQ(size_of(model::preset(name), 1, 1, false).parameters, count) << name;
}

TEST(ModelConfig, GemmaFollowsTheFormula) {
  for (const std::string& name : model::preset_names()) {
    if (!name.starts_with("gemma-")) continue;
    const model::ModelConfig c = model::preset(name);
    const std::int64_t d = c.width, h = c.heads * c.head_size;
    EXPECT_EQ(c.hidden, 8 * d);
    EXPECT_EQ(size_of(c, 1, 1, false).parameters,
              c.vocab * d + c.vocab + d + c.layers * (4 * d * h + c.head_size + 24 * d * d + 16 * d + d + 4 * d));
    EXPECT_EQ(size_of(c, 1, 1, false).embedding, c.vocab * d + c.vocab);
  }
}

TEST(ModelConfig, NanosAreAsLargeAsTheirNames) {
  const std::map<std::string, double> wanted{
      {"nano-100k", 1e5}, {"nano-300k", 3e5}, {"nano-1m", 1e6}, {"nano-3m", 3e6}, {"nano-10m", 1e7}};
  for (const auto& [name, count] : wanted) {
    const model::ModelSize size = size_of(model::preset(name), 1, 1, false);
    EXPECT_NEAR(static_cast<double>(size.parameters - size.embedding) / count, 1, 0.03) << name;
  }
}

TEST(ModelConfig, PresetsAreValidAndNamedOnce) {
  const std::vector<std::string> names = model::preset_names();
  EXPECT_EQ(std::set<std::string>(names.begin(), names.end()).size(), names.size());
  EXPECT_EQ(names.size(), 13U);
  for (const std::string& name : names) EXPECT_NO_THROW(check(model::preset(name))) << name;
  EXPECT_NO_THROW(check(model::ModelConfig{}));
}

TEST(ModelConfig, UnknownPresetSuggests) {
  const std::string words = message([] { model::preset("gema-111m"); });
  EXPECT_NE(words.find("no model named 'gema-111m'; did you mean 'gemma-111m'? choices: nano-100k"), std::string::npos)
      << words;
}

TEST(ModelConfig, NamesOfPreNormModels) {
  const auto shapes = shapes_by_name(model::preset("qwen3-0.6b"));
  EXPECT_EQ(shapes.size(), 2U + 28 * 11);
  EXPECT_EQ(shapes.at("model.embed_tokens.weight"), (Sides{151936, 1024}));
  EXPECT_EQ(shapes.at("model.norm.weight"), (Sides{1024}));
  const std::string layer = "model.layers.27.";
  EXPECT_EQ(shapes.at(layer + "input_layernorm.weight"), (Sides{1024}));
  EXPECT_EQ(shapes.at(layer + "post_attention_layernorm.weight"), (Sides{1024}));
  EXPECT_EQ(shapes.at(layer + "self_attn.q_proj.weight"), (Sides{2048, 1024}));
  EXPECT_EQ(shapes.at(layer + "self_attn.k_proj.weight"), (Sides{1024, 1024}));
  EXPECT_EQ(shapes.at(layer + "self_attn.v_proj.weight"), (Sides{1024, 1024}));
  EXPECT_EQ(shapes.at(layer + "self_attn.o_proj.weight"), (Sides{1024, 2048}));
  EXPECT_EQ(shapes.at(layer + "self_attn.q_norm.weight"), (Sides{128}));
  EXPECT_EQ(shapes.at(layer + "self_attn.k_norm.weight"), (Sides{128}));
  EXPECT_EQ(shapes.at(layer + "mlp.gate_proj.weight"), (Sides{3072, 1024}));
  EXPECT_EQ(shapes.at(layer + "mlp.up_proj.weight"), (Sides{3072, 1024}));
  EXPECT_EQ(shapes.at(layer + "mlp.down_proj.weight"), (Sides{1024, 3072}));
}

TEST(ModelConfig, NamesOfModelsWithNormsOnBothSides) {
  const auto shapes = shapes_by_name(model::preset("gemma-15m"));
  EXPECT_EQ(shapes.size(), 3U + 4 * 15);
  EXPECT_EQ(shapes.at("lm_head.bias"), (Sides{100864}));
  const std::string layer = "model.layers.3.";
  for (const char* norm : {"input", "post_attention", "pre_feedforward", "post_feedforward"}) {
    EXPECT_EQ(shapes.at(layer + norm + "_layernorm.weight"), (Sides{128})) << norm;
  }
  EXPECT_EQ(shapes.at(layer + "self_attn.query_scale"), (Sides{16}));
  EXPECT_EQ(shapes.at(layer + "mlp.gate_proj.bias"), (Sides{1024}));
  EXPECT_EQ(shapes.at(layer + "mlp.up_proj.bias"), (Sides{1024}));
  EXPECT_EQ(shapes.at(layer + "mlp.down_proj.bias"), (Sides{128}));
}

TEST(ModelConfig, LayerNormHasNoParameters) {
  const auto shapes = shapes_by_name(model::preset("olmo-1b"));
  EXPECT_EQ(shapes.size(), 1U + 16 * 7);
  for (const auto& [name, sides] : shapes) EXPECT_EQ(sides.size(), 2U) << name;
}

TEST(ModelConfig, UntiedOutputIsAnotherMatrix) {
  model::ModelConfig config;
  const model::ModelSize tied = size_of(config, 2, 64, false);
  config.tied = false;
  EXPECT_EQ(shapes_by_name(config).at("lm_head.weight"), (Sides{256, 64}));
  const model::ModelSize untied = size_of(config, 2, 64, false);
  EXPECT_EQ(untied.parameters - tied.parameters, 256 * 64);
  EXPECT_EQ(untied.embedding, 2 * tied.embedding);
  EXPECT_EQ(untied.flops_per_token, tied.flops_per_token);  // the embedding is looked up, not multiplied
}

TEST(ModelConfig, ModelsOfOthersHaveTheirParameters) {
  model::ModelConfig config;
  config.norm = model::NormKind::layer_affine;
  config.rope_base = 0;
  config.gated = false;
  config.learned_positions = config.qkv_bias = config.o_bias = config.ffn_bias = true;
  const auto shapes = shapes_by_name(config);
  EXPECT_EQ(shapes.size(), 2U + 2 * 16 + 2);
  EXPECT_EQ(shapes.at("model.position_embeddings.weight"), (Sides{128, 64}));
  EXPECT_EQ(shapes.at("model.norm.bias"), (Sides{64}));
  const std::string layer = "model.layers.1.";
  for (const char* name : {"input_layernorm.bias", "post_attention_layernorm.bias", "self_attn.q_proj.bias",
                           "self_attn.k_proj.bias", "self_attn.v_proj.bias", "self_attn.o_proj.bias", "mlp.down_proj.bias"}) {
    EXPECT_EQ(shapes.at(layer + name), (Sides{64})) << name;
  }
  EXPECT_EQ(shapes.at(layer + "mlp.up_proj.bias"), (Sides{176}));
  EXPECT_EQ(shapes.count(layer + "mlp.gate_proj.weight"), 0U);
  const model::ModelSize size = size_of(config, 1, 10, false);
  EXPECT_EQ(size.embedding, (256 + 128) * 64);
  // Positions are looked up.
  const std::int64_t matrices = 2 * (4 * 64 * 64 + 2 * 64 * 176) + 256 * 64;
  EXPECT_EQ(size.flops_per_token, static_cast<double>(6 * matrices + 12 * 2 * 64 * 10 / 2));
}

TEST(ModelConfig, AWindowSavesOperations) {
  model::ModelConfig config;
  config.layers = 4;
  const auto attention = [&](std::int64_t window, std::int64_t full_every) {
    model::ModelConfig other = config;
    other.window = window, other.full_every = full_every;
    return (size_of(other, 1, 100, false).flops_per_token - size_of(config, 1, 100, false).flops_per_token) / (12.0 * 64);
  };
  EXPECT_EQ(attention(100, 0), 0);
  EXPECT_EQ(attention(200, 2), 0);
  EXPECT_NEAR(attention(20, 0), 4 * (18 - 50), 1e-9);  // 18 of 100 tokens on average
  EXPECT_NEAR(attention(20, 2), 2 * (18 - 50), 1e-9);
}

TEST(ModelConfig, SizesByHand) {
  const model::ModelConfig config = model::preset("nano-100k");
  const model::ModelSize size = size_of(config, 3, 10, false);
  const std::int64_t matrices = 2 * (4 * 64 * 64 + 3 * 64 * 176) + 256 * 64;
  EXPECT_EQ(size.parameters, matrices + 5 * 64);
  EXPECT_EQ(size.embedding, 256 * 64);
  EXPECT_EQ(size.flops_per_token, static_cast<double>(6 * matrices + 12 * 2 * 64 * 10 / 2));
  EXPECT_EQ(size.parameter_bytes, 16 * size.parameters);
  // A layer: 4 tensors of norms and 2 factors, q, k, v and what was attended with 2 logarithms, 3 hidden ones.
  const std::int64_t layer = 4 * 64 + 2 + 4 * 64 + 2 + 3 * 176, end = 3 * 64 + 1;
  EXPECT_EQ(size.activation_bytes, 30 * (4 * (2 * layer + end) + 16));
  EXPECT_EQ(size_of(config, 3, 10, true).activation_bytes, 30 * (4 * (2 * 64 + layer + end) + 16));
}

TEST(ModelConfig, NonsenseIsOneLineWithFieldAndValue) {
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.vocab = 0; }), "vocab of the model is 0; valid: [1, 1000000000]");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.layers = -3; }), "layers of the model is -3; valid: [1, 10000]");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.heads = 6, c.kv_heads = 4; }),
            "heads of the model is 6, which kv_heads 4 does not divide");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.head_size = 33; }),
            "head_size of the model is 33; rotary positions (rope_base 10000) need an even number");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.head_size = 33, c.rope_base = 0; }), "");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.learned_positions = true; }),
            "the model has learned_positions and rotary ones (rope_base 10000); set rope_base to 0");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.full_every = 2; }),
            "full_every of the model is 2, but there is no window; set window too");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.rope_scaling = model::RopeScaling::linear, c.rope_base = 0; }),
            "rope_scaling of the model is linear, but rope_base is 0; valid: none");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.rope_scaling = model::RopeScaling::llama3, c.rope_low = 4; }),
            "rope_low of the model is 4; valid: less than rope_high 4");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.attention_softcap = -1; }),
            "attention_softcap of the model is -1; valid: [0, inf)");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.logit_softcap = -0.5; }),
            "logit_softcap of the model is -0.5; valid: [0, inf)");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.norm_eps = 0; }), "norm_eps of the model is 0; valid: (0, 1)");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.rope_base = -1; }), "rope_base of the model is -1; valid: [0, inf)");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.init = static_cast<model::Init>(7); }),
            "init of the model is number 7; choices: truncated-normal, xavier, mitchell");
  EXPECT_EQ(fault_of([](model::ModelConfig& c) { c.vocab = c.width = 1000000000; }),
            "the model would have 1e+18 parameters; valid: at most 1e+15");
}

TEST(ModelConfig, EverySizeMustBePositiveAndEveryNumberFinite) {
  for (auto size : {&model::ModelConfig::vocab, &model::ModelConfig::width, &model::ModelConfig::layers,
                    &model::ModelConfig::heads, &model::ModelConfig::kv_heads, &model::ModelConfig::head_size,
                    &model::ModelConfig::hidden, &model::ModelConfig::context}) {
    for (const std::int64_t value : {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
      EXPECT_NE(fault_of([&](model::ModelConfig& c) { c.*size = value; }), "") << value;
    }
  }
  for (auto number : {&model::ModelConfig::rope_base, &model::ModelConfig::attention_softcap,
                      &model::ModelConfig::logit_softcap, &model::ModelConfig::norm_eps}) {
    for (const double value : {std::nan(""), std::numeric_limits<double>::infinity(), -1.0}) {
      EXPECT_NE(fault_of([&](model::ModelConfig& c) { c.*number = value; }), "") << value;
    }
  }
}

TEST(ModelConfig, SizesNeedABatchAndASequence) {
  EXPECT_EQ(message([] { size_of({}, 0, 1, false); }), "batch is 0; valid: [1, 1000000000]");
  EXPECT_EQ(message([] { size_of({}, 1, -2, false); }), "sequence is -2; valid: [1, 1000000000]");
}

}  // namespace model_config_test
}  // namespace cautious::model
