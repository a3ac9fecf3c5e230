// A model's config.json: the names and meanings of a known family where the architecture is one (Llama, OLMo, Qwen3), so that
// other tools load the checkpoint; otherwise our own "cautious" model type with the fields of ModelConfig. Knows no libtorch.
#pragma once

#include <string>
#include <string_view>

#include "model/config.h"

namespace cautious::model {

// "llama", "olmo", "qwen3" or "cautious".
std::string_view family_of(const ModelConfig& config);

// The text of config.json.
std::string to_config_json(const ModelConfig& config, std::int64_t document_end);

// The model that a config.json describes. Unknown model types, options that our model does not have (attention bias, sliding
// windows, scaled rotary positions, ...), missing or ill-typed keys: an Error(Fault::data) that begins with `file`.
ModelConfig from_config_json(std::string_view text, const std::string& file);

}  // namespace cautious::model
