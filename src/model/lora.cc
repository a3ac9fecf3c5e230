// Names, shapes and the description of adapters.
#include "model/lora.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "model/json_keys.h"

namespace cautious::model {
namespace {

constexpr std::string_view kBefore = "base_model.model.", kA = ".lora_A.weight", kB = ".lora_B.weight", kWeight = ".weight";

// "q_proj" of "model.layers.0.self_attn.q_proj.weight"; nothing of what can have no adapter.
std::string target_of(const Shape& shape) {
  if (shape.sides.size() != 2 || !shape.name.starts_with("model.layers.") || !shape.name.ends_with("_proj.weight")) return "";
  const std::string module = shape.name.substr(0, shape.name.size() - kWeight.size());
  return module.substr(module.rfind('.') + 1);
}

// What PEFT writes besides, and the one value of each that means what ours do.
void refuse_other_kinds(const Keys& keys) {
  constexpr std::array<std::string_view, 34> kKnown{"peft_type",
                                                    "task_type",
                                                    "base_model_name_or_path",
                                                    "r",
                                                    "lora_alpha",
                                                    "lora_dropout",
                                                    "target_modules",
                                                    "use_rslora",
                                                    "bias",
                                                    "fan_in_fan_out",
                                                    "use_dora",
                                                    "modules_to_save",
                                                    "layers_to_transform",
                                                    "layers_pattern",
                                                    "layer_replication",
                                                    "rank_pattern",
                                                    "alpha_pattern",
                                                    "lora_bias",
                                                    "trainable_token_indices",
                                                    "exclude_modules",
                                                    "target_parameters",
                                                    "inference_mode",
                                                    "init_lora_weights",
                                                    "revision",
                                                    "auto_mapping",
                                                    "loftq_config",
                                                    "megatron_config",
                                                    "megatron_core",
                                                    "eva_config",
                                                    "corda_config",
                                                    "qalora_group_size",
                                                    "use_qalora",
                                                    "peft_version",
                                                    "ensure_weight_tying"};
  keys.all_among(kKnown);
  keys.only("peft_type", "LORA");
  keys.only("bias", "none");
  for (const char* key : {"fan_in_fan_out", "use_dora", "lora_bias", "use_qalora"}) keys.only(key, false);
  for (const char* key : {"modules_to_save", "layers_to_transform", "layers_pattern", "layer_replication",
                          "trainable_token_indices", "exclude_modules", "target_parameters"}) {
    keys.only(key, nullptr);
  }
  for (const char* key : {"rank_pattern", "alpha_pattern"}) keys.only(key, Json::object());
}

AdapterDescription read_adapter(const Keys& keys) {
  AdapterDescription adapter;
  std::string type;
  keys.require("peft_type", type);
  refuse_other_kinds(keys);
  keys.require("r", adapter.lora.rank);
  keys.require("lora_alpha", adapter.lora.alpha);
  keys.maybe("lora_dropout", adapter.lora.dropout);
  keys.maybe("use_rslora", adapter.lora.rslora);
  keys.require("target_modules", adapter.lora.targets);
  keys.maybe("base_model_name_or_path", adapter.base);
  return adapter;
}

}  // namespace

std::vector<std::string> adapter_targets(const ModelConfig& config) {
  std::vector<std::string> found;
  for (const Shape& shape : parameter_shapes(config)) {
    const std::string target = target_of(shape);
    if (!target.empty() && std::ranges::find(found, target) == found.end()) found.push_back(target);
  }
  return found;
}

double scale_of(const LoraConfig& lora) {
  const auto rank = static_cast<double>(lora.rank);
  return lora.alpha / (lora.rslora ? std::sqrt(rank) : rank);
}

std::vector<Shape> adapter_shapes(const ModelConfig& config, const LoraConfig& lora) {
  const std::vector<std::string> known = adapter_targets(config);
  const std::vector<std::string_view> names(known.begin(), known.end());
  for (const std::string& target : lora.targets) (void)base::index_of_name("lora.targets", target, names);
  std::vector<Shape> shapes;
  for (const Shape& shape : parameter_shapes(config)) {
    const std::string target = target_of(shape);
    if (target.empty()) continue;
    if (!lora.targets.empty() && std::ranges::find(lora.targets, target) == lora.targets.end()) continue;
    const std::string module = std::string(kBefore) + shape.name.substr(0, shape.name.size() - kWeight.size());
    shapes.push_back({module + std::string(kA), {lora.rank, shape.sides[1]}});
    shapes.push_back({module + std::string(kB), {shape.sides[0], lora.rank}});
  }
  return shapes;
}

std::string adapted_weight(std::string_view parameter) {
  parameter.remove_prefix(kBefore.size());
  parameter.remove_suffix(kA.size());
  return std::string(parameter) + std::string(kWeight);
}

std::string to_adapter_json(const AdapterDescription& adapter, const ModelConfig& config) {
  const LoraConfig& lora = adapter.lora;
  const Json json{{"peft_type", "LORA"},
                  {"task_type", "CAUSAL_LM"},
                  {"base_model_name_or_path", adapter.base},
                  {"r", lora.rank},
                  {"lora_alpha", lora.alpha},
                  {"lora_dropout", lora.dropout},
                  {"use_rslora", lora.rslora},
                  {"target_modules", lora.targets.empty() ? adapter_targets(config) : lora.targets},
                  {"bias", "none"},
                  {"fan_in_fan_out", false},
                  {"modules_to_save", nullptr},
                  {"inference_mode", true}};
  return json.dump(2) + "\n";
}

AdapterDescription from_adapter_json(std::string_view text, const std::string& file) {
  return read_described<AdapterDescription>(text, file, read_adapter);
}

}  // namespace cautious::model
