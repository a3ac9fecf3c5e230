// A decoder-only Transformer as plain data, its presets, and what follows from the numbers alone. Knows no libtorch.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cautious::model {

enum class Activation { silu, gelu };            // gelu: the tanh form
enum class NormKind { rms, rms_offset, layer };  // rms_offset stores the scale minus 1; layer has no parameters
enum class Init { truncated_normal, xavier, mitchell };

constexpr auto names_of(Activation) { return std::array<std::string_view, 2>{"silu", "gelu"}; }
constexpr auto names_of(NormKind) { return std::array<std::string_view, 3>{"rms", "rms-offset", "layer"}; }
constexpr auto names_of(Init) { return std::array<std::string_view, 3>{"truncated-normal", "xavier", "mitchell"}; }

struct ModelConfig {
  std::int64_t vocab = 256;
  std::int64_t width = 64;  // d
  std::int64_t layers = 2;
  std::int64_t heads = 2;
  std::int64_t kv_heads = 2;
  std::int64_t head_size = 32;
  std::int64_t hidden = 176;   // of the gated feed-forward part
  std::int64_t context = 128;  // T it is meant for
  NormKind norm = NormKind::rms;
  bool post_norm = false;    // a norm after each sub-layer too
  bool qk_norm = false;      // RMSNorm of each head's query and key
  bool query_scale = false;  // a learned factor per dimension of a head
  bool ffn_bias = false;
  bool output_bias = false;
  bool tied = true;  // the output matrix is the embedding
  Activation activation = Activation::silu;
  double rope_base = 10000;
  double attention_softcap = 0;  // 0 is off
  double logit_softcap = 0;
  double norm_eps = 1e-6;
  Init init = Init::truncated_normal;
};

std::vector<std::string> preset_names();
// An unknown name is an Error with a suggestion.
ModelConfig preset(std::string_view name);

// Throws an Error if the numbers do not go together.
void check(const ModelConfig& config);

struct Shape {
  std::string name;
  std::vector<std::int64_t> sides;
};
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
