// A decoder-only Transformer as plain data, its presets, and what follows from the numbers alone. Knows no libtorch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <cautious/detail/field.h>

namespace cautious::model {

enum class Activation { silu, gelu };  // gelu: the tanh form
// rms_offset stores the scale minus 1; layer has no parameters, layer_affine a scale and a bias.
enum class NormKind { rms, rms_offset, layer, layer_affine };
enum class RopeScaling { none, linear, llama3 };
enum class Init { truncated_normal, xavier, mitchell };

constexpr auto names_of(Activation) { return std::array<std::string_view, 2>{"silu", "gelu"}; }
constexpr auto names_of(NormKind) { return std::array<std::string_view, 4>{"rms", "rms-offset", "layer", "layer-affine"}; }
constexpr auto names_of(RopeScaling) { return std::array<std::string_view, 3>{"none", "linear", "llama3"}; }
constexpr auto names_of(Init) { return std::array<std::string_view, 3>{"truncated-normal", "xavier", "mitchell"}; }

struct ModelConfig {
  static constexpr std::string_view name = "the model";  // in messages: "vocab of the model is ..."
  static constexpr Range kSize{1, 1e9, false, false};
  static constexpr Range kLayers{1, 1e4, false, false};
  static constexpr Range kCount{0, 1e9, false, false};
  static constexpr Range kEps{0, 1, true, true};

  std::int64_t vocab = 256;
  std::int64_t width = 64;  // d
  std::int64_t layers = 2;
  std::int64_t heads = 2;
  std::int64_t kv_heads = 2;
  std::int64_t head_size = 32;
  std::int64_t hidden = 176;
  std::int64_t context = 128;  // T
  NormKind norm = NormKind::rms;
  bool post_norm = false;
  bool qk_norm = false;
  bool query_scale = false;
  bool ffn_bias = false;
  bool output_bias = false;
  bool tied = true;
  Activation activation = Activation::silu;
  double rope_base = 10000;
  double attention_softcap = 0;
  double logit_softcap = 0;
  double norm_eps = 1e-6;
  Init init = Init::truncated_normal;
  // What models of others have.
  bool qkv_bias = false;
  bool o_bias = false;
  bool gated = true;
  bool embedding_scale = false;
  bool learned_positions = false;
  double score_size = 0;
  std::int64_t window = 0;
  std::int64_t full_every = 0;
  RopeScaling rope_scaling = RopeScaling::none;
  double rope_factor = 1;
  double rope_low = 1;
  double rope_high = 4;
  std::int64_t rope_original = 8192;

  static constexpr auto fields() {
    using M = ModelConfig;
    return std::tuple{Field{"vocab", &M::vocab, kSize, "number of tokens, at least the tokenizer's"},
                      Field{"width", &M::width, kSize, "width of the residual stream"},
                      Field{"layers", &M::layers, kLayers, "number of layers"},
                      Field{"heads", &M::heads, kSize, "attention heads"},
                      Field{"kv_heads", &M::kv_heads, kSize, "heads of keys and values; divides heads"},
                      Field{"head_size", &M::head_size, kSize, "entries of one head; even with rotary positions"},
                      Field{"hidden", &M::hidden, kSize, "inner width of the feed-forward network"},
                      Field{"context", &M::context, kSize, "tokens that it is meant for"},
                      Choice{"norm", &M::norm, "kind of normalization; rms-offset stores the scale minus 1"},
                      Flag{"post_norm", &M::post_norm, "a norm after each sub-layer too"},
                      Flag{"qk_norm", &M::qk_norm, "an RMSNorm of each head's query and key"},
                      Flag{"query_scale", &M::query_scale, "a learned factor per dimension of a head"},
                      Flag{"ffn_bias", &M::ffn_bias, "biases in the feed-forward network"},
                      Flag{"output_bias", &M::output_bias, "a bias of the output"},
                      Flag{"tied", &M::tied, "the output matrix is the embedding"},
                      Choice{"activation", &M::activation, "of the feed-forward network"},
                      Field{"rope_base", &M::rope_base, kNonnegative, "of rotary positions; 0: none"},
                      Field{"attention_softcap", &M::attention_softcap, kNonnegative, "bound of the attention scores; 0: none"},
                      Field{"logit_softcap", &M::logit_softcap, kNonnegative, "bound of the logits; 0: none"},
                      Field{"norm_eps", &M::norm_eps, kEps, "added to a norm's mean square"},
                      Choice{"init", &M::init, "distribution of the initial weights"},
                      Flag{"qkv_bias", &M::qkv_bias, "biases of queries, keys and values"},
                      Flag{"o_bias", &M::o_bias, "a bias of attention's output"},
                      Flag{"gated", &M::gated, "a gate in the feed-forward network; otherwise two matrices"},
                      Flag{"embedding_scale", &M::embedding_scale, "embeddings times the root of width"},
                      Flag{"learned_positions", &M::learned_positions, "a learned vector per position, up to context"},
                      Field{"score_size", &M::score_size, kNonnegative, "its root divides the scores; 0: head_size"},
                      Field{"window", &M::window, kCount, "a query sees this many tokens, itself included; 0: all"},
                      Field{"full_every", &M::full_every, kCount, "with a window, each n-th layer sees all; 0: none does"},
                      Choice{"rope_scaling", &M::rope_scaling, "of rotary positions, for longer contexts"},
                      Field{"rope_factor", &M::rope_factor, kPositive, "by which scaling slows rotation down"},
                      Field{"rope_low", &M::rope_low, kPositive, "llama3: turns in rope_original that are slowed fully"},
                      Field{"rope_high", &M::rope_high, kPositive, "llama3: turns in rope_original that are not slowed"},
                      Field{"rope_original", &M::rope_original, kSize, "llama3: the context before scaling"}};
  }
};

std::vector<std::string> preset_names();
// An unknown name is an Error with a suggestion.
ModelConfig preset(std::string_view name);

// Throws an Error if the numbers do not go together.
void check(const ModelConfig& config);

struct Shape {
  std::string name;
  std::vector<std::int64_t> sides;

  bool operator==(const Shape&) const = default;
};
// The product of the sides; of more than 64 bits too, when it is rounded.
double entries(const Shape& shape);

// Every parameter with its name, in the order the model registers them.
std::vector<Shape> parameter_shapes(const ModelConfig& config);

struct ModelSize {
  std::int64_t parameters;        // all
  std::int64_t embedding;         // of the embedding (once, if tied) and the output matrix and bias
  double flops_per_token;         // forward and backward at `sequence`: 6 per matrix entry, and attention's products
  std::int64_t parameter_bytes;   // f32: parameters, gradients and two moments
  std::int64_t activation_bytes;  // kept for the backward pass at this batch
};
ModelSize size_of(const ModelConfig& config, std::int64_t batch, std::int64_t sequence, bool recompute);

}  // namespace cautious::model
