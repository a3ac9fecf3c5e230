// An architecture of llama.cpp is a program of its own: what is not in it cannot be said in a file.
#include "model/gguf_model.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"

namespace cautious::model {
namespace {

// Which of them it is meant to be, by what only that one has.
std::string_view nearest_architecture(const ModelConfig& c) {
  if (c.learned_positions) return "gpt2";
  if (c.norm == NormKind::layer) return "olmo";
  if (c.post_norm) return "gemma2";
  if (c.norm == NormKind::rms_offset && c.embedding_scale) return "gemma";
  if (c.qk_norm) return "qwen3";
  const bool whole_heads = c.heads * c.head_size == c.width;
  if (c.qkv_bias && !c.o_bias && !c.ffn_bias && whole_heads) return "qwen2";
  return "llama";
}

bool is_windowed(const ModelConfig& c) { return c.window > 0 && c.window < c.context; }

// What is the same in all but gpt2.
void fit_rotated(ModelConfig& c) {
  c.learned_positions = false;
  c.gated = true;
  if (c.norm != NormKind::rms_offset) c.norm = NormKind::rms;  // its scales are written as they are meant
  if (c.rope_base == 0) c.rope_base = 10000;
}

// The model that the architecture has with these sizes; it differs from `c` in what cannot be written.
ModelConfig fitted(ModelConfig c, std::string_view architecture) {
  const bool gemma = architecture == "gemma" || architecture == "gemma2", second = architecture == "gemma2";
  const bool any_bias = architecture == "llama";
  c.query_scale = c.output_bias = false;
  c.qk_norm = architecture == "qwen3";
  c.post_norm = second;
  c.embedding_scale = gemma;
  c.activation = gemma ? Activation::gelu : Activation::silu;
  if (!any_bias) c.qkv_bias = architecture == "qwen2";
  if (!any_bias) c.o_bias = c.ffn_bias = false;
  if (gemma) c.tied = true;
  if (!second) c.attention_softcap = c.logit_softcap = 0;
  if (second && c.attention_softcap == 0) c.attention_softcap = 50;
  if (second && c.logit_softcap == 0) c.logit_softcap = 30;
  if (is_windowed(c)) second ? c.full_every = 2 : c.window = 0;
  const bool by_width = second && c.layers == 46;  // the 27B model
  if (by_width) c.score_size = static_cast<double>(c.width / c.heads);
  if (!by_width && c.score_size != static_cast<double>(c.head_size)) c.score_size = 0;
  if (c.rope_scaling == RopeScaling::llama3 && architecture != "llama") c.rope_scaling = RopeScaling::none;
  if (architecture == "olmo" || architecture == "qwen2") c.head_size = c.width / c.heads;
  if (architecture == "gpt2") {
    c.norm = NormKind::layer_affine;
    c.gated = false;
    c.qkv_bias = c.o_bias = c.ffn_bias = true;
    c.activation = Activation::gelu;
    c.head_size = c.width / c.heads;
    c.kv_heads = c.heads;
    return c;
  }
  const NormKind norm = c.norm;
  fit_rotated(c);
  if (architecture == "olmo") c.norm = norm;
  return c;
}

template <class Value>
std::string field_text(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(cautious::name_of(value));
  } else {
    return fmt::format("{}", value);
  }
}

struct Renamed {
  std::string_view ours, theirs;
};
constexpr std::array kGgufEnds{Renamed{"model.embed_tokens", "token_embd"},
                               Renamed{"model.position_embeddings", "position_embd"}, Renamed{"model.norm", "output_norm"},
                               Renamed{"lm_head", "output"}};
constexpr std::array kGgufLayer{Renamed{"input_layernorm", "attn_norm"},
                                Renamed{"self_attn.q_proj", "attn_q"},
                                Renamed{"self_attn.k_proj", "attn_k"},
                                Renamed{"self_attn.v_proj", "attn_v"},
                                Renamed{"self_attn.o_proj", "attn_output"},
                                Renamed{"self_attn.q_norm", "attn_q_norm"},
                                Renamed{"self_attn.k_norm", "attn_k_norm"},
                                Renamed{"pre_feedforward_layernorm", "ffn_norm"},
                                Renamed{"post_feedforward_layernorm", "post_ffw_norm"},
                                Renamed{"mlp.gate_proj", "ffn_gate"},
                                Renamed{"mlp.up_proj", "ffn_up"},
                                Renamed{"mlp.down_proj", "ffn_down"}};

// "model.layers.3.mlp.up_proj.weight" to "blk.3.ffn_up.weight".
std::string gguf_name(std::string_view name, const ModelConfig& c) {
  constexpr std::string_view kLayers = "model.layers.";
  const std::size_t end = name.rfind('.');
  std::string_view module = name.substr(0, end);
  const std::string_view kind = name.substr(end);
  const auto find = [&](std::string_view before, const auto& names) {
    const auto at = std::find_if(names.begin(), names.end(), [&](const Renamed& one) { return one.ours == module; });
    return fmt::format("{}{}{}", before, at->theirs, kind);
  };
  if (!module.starts_with(kLayers)) return find("", kGgufEnds);
  module.remove_prefix(kLayers.size());
  const std::size_t dot = module.find('.');
  const std::string before = fmt::format("blk.{}.", module.substr(0, dot));
  module.remove_prefix(dot + 1);
  if (module == "post_attention_layernorm")
    return before + (c.post_norm ? "post_attention_norm" : "ffn_norm") + std::string(kind);
  return find(before, kGgufLayer);
}

GgufPart part_of(const Shape& shape, const ModelConfig& c, std::string_view architecture) {
  const bool pairs = architecture == "llama" || architecture == "olmo";
  const bool query = shape.name.find(".q_proj.") != shape.name.npos, key = shape.name.find(".k_proj.") != shape.name.npos;
  GgufPart part{gguf_name(shape.name, c), {shape}, shape.sides};
  if (pairs && (query || key)) part.rotated_heads = query ? c.heads : c.kv_heads;
  if (c.norm == NormKind::rms_offset && shape.name.ends_with("norm.weight")) part.added = 1;
  return part;
}

// Queries, keys and values of gpt2 are one tensor.
void join_products(std::vector<GgufPart>& parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t at = parts[i].name.find(".attn_q.");
    if (at == std::string::npos) continue;
    const std::string layer = parts[i].name.substr(0, at), kind = parts[i].name.substr(at + 8);
    for (const char* name : {".attn_k.", ".attn_v."}) {
      const auto other =
          std::find_if(parts.begin(), parts.end(), [&](const GgufPart& part) { return part.name == layer + name + kind; });
      parts[i].from.push_back(other->from.front());
      parts[i].sides[0] += other->sides[0];
      parts.erase(other);
    }
    parts[i].name = layer + ".attn_qkv." + kind;
  }
}

}  // namespace

std::string_view gguf_architecture(const ModelConfig& config) {
  check(config);
  const std::string_view architecture = nearest_architecture(config);
  const ModelConfig possible = fitted(config, architecture);
  base::each_field(config, [&](const auto& of, const auto& field) {
    if (of.*field.member == possible.*field.member) return;
    throw Error(Fault::usage,
                fmt::format("{} of the model is {}, which cannot be written as GGUF: '{}', the nearest of llama.cpp's "
                            "architectures, has {}",
                            field.name, field_text(of.*field.member), architecture, field_text(possible.*field.member)),
                {.key = std::string(field.name)});
  });
  return architecture;
}

base::GgufMetadata gguf_hyperparameters(const ModelConfig& c) {
  const std::string architecture(gguf_architecture(c));
  base::GgufMetadata out;
  const auto add = [&](std::string_view key, base::GgufValue value) {
    out.emplace_back(fmt::format("{}.{}", architecture, key), std::move(value));
  };
  const auto count = [&](std::string_view key, std::int64_t value) { add(key, static_cast<std::uint32_t>(value)); };
  const auto number = [&](std::string_view key, double value) { add(key, static_cast<float>(value)); };
  count("vocab_size", c.vocab);
  count("context_length", c.context);
  count("embedding_length", c.width);
  count("block_count", c.layers);
  count("feed_forward_length", c.hidden);
  count("attention.head_count", c.heads);
  count("attention.head_count_kv", c.kv_heads);
  count("attention.key_length", c.head_size);
  count("attention.value_length", c.head_size);
  const bool rms = c.norm == NormKind::rms || c.norm == NormKind::rms_offset;
  number(rms ? "attention.layer_norm_rms_epsilon" : "attention.layer_norm_epsilon", c.norm_eps);
  if (c.rope_base > 0) count("rope.dimension_count", c.head_size);
  if (c.rope_base > 0) number("rope.freq_base", c.rope_base);
  if (c.rope_scaling == RopeScaling::linear) add("rope.scaling.type", std::string("linear"));
  if (c.rope_scaling == RopeScaling::linear) number("rope.scaling.factor", c.rope_factor);
  if (architecture == "gemma2") {
    number("attn_logit_softcapping", c.attention_softcap);
    number("final_logit_softcapping", c.logit_softcap);
    count("attention.sliding_window", is_windowed(c) ? c.window : c.context);
  }
  return out;
}

std::vector<GgufPart> gguf_parts(const ModelConfig& config) {
  const std::string_view architecture = gguf_architecture(config);
  std::vector<GgufPart> parts;
  for (const Shape& shape : parameter_shapes(config)) parts.push_back(part_of(shape, config, architecture));
  if (architecture == "gpt2") join_products(parts);
  if (config.rope_scaling == RopeScaling::llama3) parts.push_back({"rope_freqs.weight", {}, {config.head_size / 2}});
  return parts;
}

std::vector<float> rotation_factors(const ModelConfig& c) {
  std::vector<float> factors;
  const auto original = static_cast<double>(c.rope_original);
  for (std::int64_t i = 0; i < c.head_size / 2; ++i) {
    const double angle = std::pow(c.rope_base, -2 * static_cast<double>(i) / static_cast<double>(c.head_size));
    const double turns = original * angle / (2 * std::numbers::pi);
    const double kept = std::clamp((turns - c.rope_low) / (c.rope_high - c.rope_low), 0.0, 1.0);
    factors.push_back(static_cast<float>(1 / (kept + (1 - kept) / c.rope_factor)));
  }
  return factors;
}

void rotate_rows(std::span<float> values, std::int64_t rows, std::int64_t heads, Rotation direction) {
  const auto length = values.size() / static_cast<std::size_t>(rows), size = static_cast<std::size_t>(rows / heads);
  std::vector<float> head(size * length);
  for (std::size_t start = 0; start < values.size(); start += head.size()) {
    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(start), head.size(), head.begin());
    for (std::size_t row = 0; row < size; ++row) {
      const std::size_t halves = row % 2 * (size / 2) + row / 2, pairs = row % (size / 2) * 2 + row / (size / 2);
      const std::size_t from = direction == Rotation::there ? halves : pairs;
      std::copy_n(head.begin() + static_cast<std::ptrdiff_t>(from * length), length,
                  values.begin() + static_cast<std::ptrdiff_t>(start + row * length));
    }
  }
}

}  // namespace cautious::model
