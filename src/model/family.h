// A model's config.json: the names and meanings of a known family where the architecture is one (Llama, Mistral, Qwen2, Qwen3,
// OLMo, Gemma, Gemma 2), so that other tools load the checkpoint; otherwise our own "cautious" model type with the fields of
// ModelConfig. GPT-2 is read, not written: its weights have other names and layouts than ours. Knows no libtorch.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "model/config.h"

namespace cautious::model {

inline constexpr double kOlmoEps = 1e-5;                  // part of that architecture, not of its config.json
inline constexpr const char* kInitKey = "cautious_init";  // ours; other tools pass over it
inline constexpr std::int64_t kGemma2FullEvery = 2;       // even layers have the window

// The model_type that to_config_json() writes: "llama", "mistral", "qwen2", "qwen3", "olmo", "gemma", "gemma2" or "cautious".
std::string_view family_of(const ModelConfig& config);

// The text of config.json, with the tokens that begin and end a document.
std::string to_config_json(const ModelConfig& config, std::int64_t beginning, std::int64_t end);

// The model that a config.json describes; families are those above and "gpt2". Unknown model types, keys that we do not know,
// options that our model does not have (quantized weights, other scalings of rotary positions, ...), missing or ill-typed
// keys: an Error(Fault::data) that begins with `file`.
ModelConfig from_config_json(std::string_view text, const std::string& file);

}  // namespace cautious::model
