// What a model is in a GGUF file: llama.cpp's architectures, names and layouts. Knows no libtorch.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/gguf.h"
#include "model/config.h"

namespace cautious::model {

// One of its tensors, and how it is made of ours.
struct GgufPart {
  std::string name;         // "blk.0.attn_q.weight"
  std::vector<Shape> from;  // ours, one behind the other; none: rotation_factors()
  std::vector<std::int64_t> sides;
  // Rows of so many heads, whose halves llama.cpp rotates as neighbours: i and i + half of a head become 2i and 2i + 1. 0: rows
  // are as ours.
  std::int64_t rotated_heads = 0;
  float added = 0;  // to every number: a scale whose distance from 1 we store
};

// "llama", "qwen2", "qwen3", "olmo", "gemma", "gemma2" or "gpt2". A model that is none of these is an Error(Fault::usage) that
// names the field which is not theirs.
std::string_view gguf_architecture(const ModelConfig& config);
// <architecture>.*
base::GgufMetadata gguf_hyperparameters(const ModelConfig& config);
std::vector<GgufPart> gguf_parts(const ModelConfig& config);

// By how much rotation is slowed down (rope_scaling llama3), per pair.
std::vector<float> rotation_factors(const ModelConfig& config);

// Reorders the rows of one tensor of ours for GgufPart::rotated_heads, or back.
enum class Rotation { there, back };
void rotate_rows(std::span<float> values, std::int64_t rows, std::int64_t heads, Rotation direction);

}  // namespace cautious::model
