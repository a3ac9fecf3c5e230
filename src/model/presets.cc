// The models of the paper's experiments (Gemma-like, OLMo, Qwen3) and small ones that a CPU trains.
#include <array>
#include <cstddef>

#include "base/text.h"
#include "model/config.h"

namespace cautious::model {
namespace {

constexpr ModelConfig gemma(std::int64_t width, std::int64_t layers, std::int64_t head_size) {
  ModelConfig c;
  c.vocab = 100864;
  c.width = width;
  c.layers = layers;
  c.heads = c.kv_heads = 8;
  c.head_size = head_size;
  c.hidden = 8 * width;
  c.context = 2048;
  c.norm = NormKind::rms_offset;
  c.post_norm = c.query_scale = c.ffn_bias = c.output_bias = c.embedding_scale = true;
  c.activation = Activation::gelu;
  c.attention_softcap = 50;
  c.logit_softcap = 30;
  c.init = Init::xavier;
  return c;
}

constexpr ModelConfig olmo_1b() {
  ModelConfig c;
  c.vocab = 50304;
  c.width = 2048;
  c.layers = 16;
  c.heads = c.kv_heads = 16;
  c.head_size = 128;
  c.hidden = 8192;
  c.context = 2048;
  c.norm = NormKind::layer;
  c.norm_eps = 1e-5;
  c.init = Init::mitchell;
  return c;
}

constexpr ModelConfig qwen3_600m() {
  ModelConfig c;
  c.vocab = 151936;
  c.width = 1024;
  c.layers = 28;
  c.heads = 16;
  c.kv_heads = 8;
  c.head_size = 128;
  c.hidden = 3072;
  c.context = 2048;
  c.qk_norm = true;
  c.rope_base = 1e6;
  return c;
}

struct Sides {
  std::int64_t vocab, width, layers, heads, head_size, hidden, context;
};

constexpr ModelConfig nano(const Sides& sides) {
  ModelConfig c;
  c.vocab = sides.vocab;
  c.width = sides.width;
  c.layers = sides.layers;
  c.heads = c.kv_heads = sides.heads;
  c.head_size = sides.head_size;
  c.hidden = sides.hidden;
  c.context = sides.context;
  return c;
}

struct Preset {
  std::string_view name;
  ModelConfig config;
};

// The number in a nano's name is its size without the embedding.
constexpr std::array kPresets{
    Preset{"nano-100k", nano({256, 64, 2, 2, 32, 176, 128})},
    Preset{"nano-300k", nano({256, 96, 3, 3, 32, 224, 128})},
    Preset{"nano-1m", nano({256, 128, 5, 4, 32, 352, 256})},
    Preset{"nano-3m", nano({4096, 192, 7, 6, 32, 496, 256})},
    Preset{"nano-10m", nano({4096, 320, 8, 5, 64, 864, 256})},
    Preset{"gemma-15m", gemma(128, 4, 16)},
    Preset{"gemma-41m", gemma(256, 8, 32)},
    Preset{"gemma-111m", gemma(512, 8, 64)},
    Preset{"gemma-338m", gemma(1024, 8, 128)},
    Preset{"gemma-986m", gemma(1536, 12, 256)},
    Preset{"gemma-2.3b", gemma(2048, 18, 256)},
    Preset{"olmo-1b", olmo_1b()},
    Preset{"qwen3-0.6b", qwen3_600m()},
};

constexpr auto kNames = [] {
  std::array<std::string_view, kPresets.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i) names[i] = kPresets[i].name;
  return names;
}();

}  // namespace

std::vector<std::string> preset_names() { return {kNames.begin(), kNames.end()}; }

ModelConfig preset(std::string_view name) { return kPresets[base::index_of_name("model", name, kNames)].config; }

}  // namespace cautious::model
