// config.json of published models, with what their files have beside the numbers: the parameters are as many as published.
#include <gtest/gtest.h>

#include "model/family.h"

namespace cautious::model {
namespace published_models_test {

TEST(PublishedModels, AreUnderstood) {
  const auto read = [](const char* text) { return model::from_config_json(text, "config.json"); };
  const auto parameters = [](const model::ModelConfig& c) { return model::size_of(c, 1, 1, false).parameters; };
  const model::ModelConfig llama = read(R"({"architectures": ["LlamaForCausalLM"], "attention_bias": false,
    "attention_dropout": 0.0, "bos_token_id": 128000, "eos_token_id": [128001, 128008], "head_dim": 64, "hidden_act": "silu",
    "hidden_size": 2048, "initializer_range": 0.02, "intermediate_size": 8192, "max_position_embeddings": 131072,
    "mlp_bias": false, "model_type": "llama", "num_attention_heads": 32, "num_hidden_layers": 16, "num_key_value_heads": 8,
    "pretraining_tp": 1, "rms_norm_eps": 1e-05, "rope_scaling": {"factor": 32.0, "high_freq_factor": 4.0,
    "low_freq_factor": 1.0, "original_max_position_embeddings": 8192, "rope_type": "llama3"}, "rope_theta": 500000.0,
    "tie_word_embeddings": true, "torch_dtype": "bfloat16", "use_cache": true, "vocab_size": 128256})");
  EXPECT_EQ(parameters(llama), 1235814400);
  EXPECT_EQ(llama.rope_scaling, model::RopeScaling::llama3);
  EXPECT_EQ(llama.rope_factor, 32);
  EXPECT_EQ(llama.rope_original, 8192);
  const model::ModelConfig mistral = read(R"({"architectures": ["MistralForCausalLM"], "hidden_act": "silu",
    "hidden_size": 4096, "intermediate_size": 14336, "max_position_embeddings": 32768, "model_type": "mistral",
    "num_attention_heads": 32, "num_hidden_layers": 32, "num_key_value_heads": 8, "rms_norm_eps": 1e-05,
    "rope_theta": 10000.0, "sliding_window": 4096, "tie_word_embeddings": false, "vocab_size": 32000})");
  EXPECT_EQ(parameters(mistral), 7241732096);
  EXPECT_EQ(mistral.window, 4096);
  EXPECT_EQ(mistral.full_every, 0);
  const model::ModelConfig qwen = read(R"({"architectures": ["Qwen2ForCausalLM"], "attention_dropout": 0.0,
    "hidden_act": "silu", "hidden_size": 896, "intermediate_size": 4864, "max_position_embeddings": 32768,
    "max_window_layers": 24, "model_type": "qwen2", "num_attention_heads": 14, "num_hidden_layers": 24,
    "num_key_value_heads": 2, "rms_norm_eps": 1e-06, "rope_theta": 1000000.0, "sliding_window": 32768,
    "tie_word_embeddings": true, "use_mrope": false, "use_sliding_window": false, "vocab_size": 151936})");
  EXPECT_EQ(parameters(qwen), 494032768);
  EXPECT_EQ(qwen.window, 0);
  const model::ModelConfig gemma = read(R"({"architectures": ["GemmaForCausalLM"], "attention_bias": false,
    "head_dim": 256, "hidden_act": "gelu", "hidden_activation": null, "hidden_size": 2048, "intermediate_size": 16384,
    "max_position_embeddings": 8192, "model_type": "gemma", "num_attention_heads": 8, "num_hidden_layers": 18,
    "num_key_value_heads": 1, "rms_norm_eps": 1e-06, "rope_scaling": null, "rope_theta": 10000.0, "vocab_size": 256000})");
  EXPECT_EQ(parameters(gemma), 2506172416);
  EXPECT_TRUE(gemma.tied && gemma.embedding_scale);
  EXPECT_EQ(gemma.activation, model::Activation::gelu);
  const model::ModelConfig gemma2 = read(R"({"architectures": ["Gemma2ForCausalLM"], "attention_bias": false,
    "attn_logit_softcapping": 50.0, "cache_implementation": "hybrid", "final_logit_softcapping": 30.0, "head_dim": 256,
    "hidden_act": "gelu_pytorch_tanh", "hidden_activation": "gelu_pytorch_tanh", "hidden_size": 2304,
    "intermediate_size": 9216, "max_position_embeddings": 8192, "model_type": "gemma2", "num_attention_heads": 8,
    "num_hidden_layers": 26, "num_key_value_heads": 4, "query_pre_attn_scalar": 256, "rms_norm_eps": 1e-06,
    "rope_theta": 10000.0, "sliding_window": 4096, "vocab_size": 256000})");
  EXPECT_EQ(parameters(gemma2), 2614341888);
  EXPECT_EQ(gemma2.full_every, 2);
  EXPECT_EQ(gemma2.score_size, 256);
  EXPECT_EQ(model::family_of(gemma2), "gemma2");
  const model::ModelConfig gpt2 = read(R"({"activation_function": "gelu_new", "architectures": ["GPT2LMHeadModel"],
    "attn_pdrop": 0.1, "bos_token_id": 50256, "embd_pdrop": 0.1, "eos_token_id": 50256, "initializer_range": 0.02,
    "layer_norm_epsilon": 1e-05, "model_type": "gpt2", "n_ctx": 1024, "n_embd": 768, "n_head": 12, "n_layer": 12,
    "n_positions": 1024, "resid_pdrop": 0.1, "summary_activation": null, "summary_first_dropout": 0.1,
    "summary_proj_to_labels": true, "summary_type": "cls_index", "summary_use_proj": true, "task_specific_params":
    {"text-generation": {"do_sample": true, "max_length": 50}}, "vocab_size": 50257})");
  EXPECT_EQ(parameters(gpt2), 124439808);
  EXPECT_EQ(gpt2.hidden, 3072);
}

}  // namespace published_models_test
}  // namespace cautious::model
