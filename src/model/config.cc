// Checks, the list of parameters, and sizes. The module, the counts and the initial values all come from the one list.
#include "model/config.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/text.h"

namespace cautious::model {
namespace {

constexpr double kMostParameters = 1e15;  // keeps every count inside 64 bits

void add_norm(std::vector<Shape>& list, const ModelConfig& c, const std::string& name) {
  if (c.norm != NormKind::layer) list.push_back({name + ".weight", {c.width}});
  if (c.norm == NormKind::layer_affine) list.push_back({name + ".bias", {c.width}});
}

// The parameters of one layer, in the order in which a tree of modules lists them: a module's own before its children's.
void add_layer(std::vector<Shape>& list, const ModelConfig& c, std::int64_t number) {
  const std::string layer = fmt::format("model.layers.{}.", number);
  const std::int64_t queries = c.heads * c.head_size, keys = c.kv_heads * c.head_size;
  const auto add = [&](std::string_view name, std::vector<std::int64_t> sides) {
    list.push_back({layer + std::string(name), std::move(sides)});
  };
  const auto add_linear = [&](const std::string& name, std::int64_t out, std::int64_t in, bool bias) {
    add(name + ".weight", {out, in});
    if (bias) add(name + ".bias", {out});
  };
  add_norm(list, c, layer + "input_layernorm");
  if (c.query_scale) add("self_attn.query_scale", {c.head_size});
  add_linear("self_attn.q_proj", queries, c.width, c.qkv_bias);
  add_linear("self_attn.k_proj", keys, c.width, c.qkv_bias);
  add_linear("self_attn.v_proj", keys, c.width, c.qkv_bias);
  add_linear("self_attn.o_proj", c.width, queries, c.o_bias);
  if (c.qk_norm) add("self_attn.q_norm.weight", {c.head_size});
  if (c.qk_norm) add("self_attn.k_norm.weight", {c.head_size});
  add_norm(list, c, layer + "post_attention_layernorm");
  if (c.post_norm) add_norm(list, c, layer + "pre_feedforward_layernorm");
  if (c.gated) add_linear("mlp.gate_proj", c.hidden, c.width, c.ffn_bias);
  add_linear("mlp.up_proj", c.hidden, c.width, c.ffn_bias);
  add_linear("mlp.down_proj", c.width, c.hidden, c.ffn_bias);
  if (c.post_norm) add_norm(list, c, layer + "post_feedforward_layernorm");
}

std::vector<Shape> list_parameters(const ModelConfig& c) {
  std::vector<Shape> list{{"model.embed_tokens.weight", {c.vocab, c.width}}};
  if (c.learned_positions) list.push_back({"model.position_embeddings.weight", {c.context, c.width}});
  for (std::int64_t number = 0; number < c.layers; ++number) add_layer(list, c, number);
  add_norm(list, c, "model.norm");
  if (!c.tied) list.push_back({"lm_head.weight", {c.vocab, c.width}});
  if (c.output_bias) list.push_back({"lm_head.bias", {c.vocab}});
  return list;
}

bool is_position(const Shape& shape) { return shape.name.starts_with("model.position_embeddings."); }

bool belongs_to_ends(const Shape& shape) {
  return shape.name.starts_with("model.embed_tokens.") || is_position(shape) || shape.name.starts_with("lm_head.");
}

// What a norm keeps of a row besides its input: the factor, and a layer norm the mean.
double per_row(const ModelConfig& c) { return c.norm == NormKind::layer || c.norm == NormKind::layer_affine ? 2 : 1; }

// Keys that a query sees on average over a sequence, summed over the layers.
double seen_keys(const ModelConfig& c, double sequence) {
  const auto layers = static_cast<double>(c.layers), window = static_cast<double>(c.window);
  if (c.window == 0 || window >= sequence) return layers * sequence / 2;  // half: causal
  const auto full = static_cast<double>(c.full_every == 0 ? 0 : c.layers / c.full_every);
  return full * sequence / 2 + (layers - full) * window * (1 - window / (2 * sequence));
}

// Numbers per token that the fused operations of one layer keep for its backward pass. Each tensor counts once, however many
// operations keep it: the output of a norm, for one, is kept by the products that follow.
double kept_by_layer(const ModelConfig& c) {
  const auto width = static_cast<double>(c.width), hidden = static_cast<double>(c.hidden);
  const auto heads = static_cast<double>(c.heads), kv_heads = static_cast<double>(c.kv_heads);
  const double queries = heads * static_cast<double>(c.head_size), keys = kv_heads * static_cast<double>(c.head_size);
  double kept = 0;
  kept += 2 * (width + per_row(c) + width);                  // inputs of the norms before the sub-layers, and their outputs
  kept += queries + 2 * keys + queries + heads;              // attention: q, k, v, its output, logarithms of the softmax's sums
  if (c.qk_norm) kept += queries + keys + heads + kv_heads;  // q and k before their norms
  if (c.query_scale) kept += queries;                        // q before its factor
  kept += (c.gated ? 3 : 2) * hidden;                        // gate, up, their gated product
  if (c.post_norm) kept += 2 * (width + per_row(c));         // inputs of the norms after the sub-layers
  return kept;
}

// The same for what follows the layers: the final norm's input and output, the loss's gradient by the latter (made with the
// loss). The gradient of the output matrix counts with the gradients.
double kept_by_end(const ModelConfig& c) { return 3 * static_cast<double>(c.width) + per_row(c); }

void check_positions(const ModelConfig& c) {
  const auto refuse_model = [](const std::string& what) { throw Error(Fault::usage, what); };
  if (c.learned_positions && c.rope_base > 0) {
    refuse_model(
        fmt::format("the model has learned_positions and rotary ones (rope_base {}); set rope_base to 0", c.rope_base));
  }
  if (c.full_every > 0 && c.window == 0) {
    refuse_model(fmt::format("full_every of the model is {}, but there is no window; set window too", c.full_every));
  }
  if (c.rope_scaling == RopeScaling::none) return;
  if (c.rope_base == 0) {
    refuse_model(fmt::format("rope_scaling of the model is {}, but rope_base is 0; valid: none", name_of(c.rope_scaling)));
  }
  if (c.rope_scaling == RopeScaling::llama3 && c.rope_low >= c.rope_high) {
    refuse_model(fmt::format("rope_low of the model is {}; valid: less than rope_high {}", c.rope_low, c.rope_high));
  }
}

std::int64_t to_whole(double number) { return static_cast<std::int64_t>(std::min(number, 9e18)); }

}  // namespace

double entries(const Shape& shape) {
  double product = 1;
  for (const std::int64_t side : shape.sides) product *= static_cast<double>(side);
  return product;
}

void check(const ModelConfig& c) {
  base::check_fields(c);
  if (c.heads % c.kv_heads != 0) {
    throw Error(Fault::usage, fmt::format("heads of the model is {}, which kv_heads {} does not divide", c.heads, c.kv_heads),
                {.key = "heads"});
  }
  if (c.rope_base > 0 && c.head_size % 2 != 0) {
    throw Error(Fault::usage, fmt::format("head_size of the model is {}; rotary positions (rope_base {}) need an even number",
                                          c.head_size, c.rope_base));
  }
  check_positions(c);
  double parameters = 0;
  for (const Shape& shape : list_parameters(c)) parameters += entries(shape);
  if (parameters > kMostParameters) {
    throw Error(Fault::usage,
                fmt::format("the model would have {:.3g} parameters; valid: at most {:.3g}", parameters, kMostParameters));
  }
}

std::vector<Shape> parameter_shapes(const ModelConfig& config) {
  check(config);
  return list_parameters(config);
}

ModelSize size_of(const ModelConfig& config, std::int64_t batch, std::int64_t sequence, bool recompute) {
  base::check_range("batch", static_cast<double>(batch), {1, 1e9, false, false});
  base::check_range("sequence", static_cast<double>(sequence), {1, 1e9, false, false});
  const auto layers = static_cast<double>(config.layers), width = static_cast<double>(config.width);
  double parameters = 0, ends = 0, factors = 0;
  for (const Shape& shape : parameter_shapes(config)) {
    const double count = entries(shape);
    parameters += count;
    if (belongs_to_ends(shape)) ends += count;
    // Tied, the embedding is a factor of the output product; else it is only looked up.
    const bool looked_up = is_position(shape) || (!config.tied && shape.name.starts_with("model.embed_tokens."));
    if (shape.sides.size() == 2 && !looked_up) factors += count;
  }
  const auto queries = static_cast<double>(config.heads * config.head_size);
  const double attention = 12 * queries * seen_keys(config, static_cast<double>(sequence));

  // Recomputing keeps the layers' inputs, and in the backward pass one layer's all. Tokens and targets have 8 bytes.
  const double layer = kept_by_layer(config);
  const double kept = (recompute ? layers * width + layer : layers * layer) + kept_by_end(config);
  const double tokens = static_cast<double>(batch) * static_cast<double>(sequence);
  return {to_whole(parameters), to_whole(ends), 6 * factors + attention, to_whole(16 * parameters),
          to_whole(tokens * (4 * kept + 16))};
}

}  // namespace cautious::model
