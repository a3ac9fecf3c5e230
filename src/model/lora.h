// Low-rank adapters: of a frozen weight W [out, in], W + scale B A is used, and A [rank, in] and B [out, rank] are trained. As
// plain data, with the layout of PEFT. Knows no libtorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <cautious/detail/field.h>

#include "model/config.h"
#include "model/weight_source.h"

namespace cautious::model {

struct LoraConfig {
  static constexpr std::string_view name = "lora";

  std::int64_t rank = 0;
  double alpha = 16;
  double dropout = 0;
  bool rslora = false;
  std::vector<std::string> targets{};  // "q_proj", ...; empty: every matrix of the layers

  static constexpr auto fields() {
    using L = LoraConfig;
    return std::tuple{Field{"rank", &L::rank, Range{0, 1e5, false, false}, "of the adapters; 0: none, all weights are trained"},
                      Field{"alpha", &L::alpha, kPositive, "adapters count alpha / rank"},
                      Field{"dropout", &L::dropout, kMomentum, "chance that an input of an adapter is left out of a step"},
                      Flag{"rslora", &L::rslora, "adapters count alpha / sqrt(rank)"}};
  }
};

// The matrices that can have adapters, by the last part of their modules' names.
std::vector<std::string> adapter_targets(const ModelConfig& config);

double scale_of(const LoraConfig& lora);

// Every parameter of the adapters by PEFT's names, A before B, in the model's order: base_model.model.model.layers.0.self_attn.
// q_proj.lora_A.weight. A target that the model does not have is an Error(Fault::usage).
std::vector<Shape> adapter_shapes(const ModelConfig& config, const LoraConfig& lora);

// The name of the matrix that an adapter's parameter belongs to: model.layers.0.self_attn.q_proj.weight.
std::string adapted_weight(std::string_view parameter);

inline constexpr const char* kAdapterConfig = "adapter_config.json";
inline constexpr const char* kAdapterWeights = "adapter_model.safetensors";

struct AdapterDescription {
  LoraConfig lora;
  std::string base;  // folder or name of the model it was trained on
};
std::string to_adapter_json(const AdapterDescription& adapter, const ModelConfig& config);
// Kinds of adapters that ours are not (DoRA, biases, ranks by pattern, ...) are an Error(Fault::data) that names the field.
AdapterDescription from_adapter_json(std::string_view text, const std::string& file);

// The weights of `base` with the adapters of a folder added. One that was made for another model is an Error(Fault::data).
std::unique_ptr<const WeightSource> with_adapters(std::unique_ptr<const WeightSource> base,
                                                  const std::filesystem::path& folder);

}  // namespace cautious::model
