// The weights of a model as a file or folder holds them, whoever wrote it: tensor by tensor, under our names and in f32,
// without the whole in memory. Knows no libtorch.
//   a folder with config.json and model.safetensors, or its shards and model.safetensors.index.json: of Hugging Face, and our
//     checkpoints, whose averaged weights are taken where there are some; GPT-2's names and layouts too
//   a GGUF file (.gguf) of f32, f16, bf16 or q8_0 tensors
//   a file of llama2.c (.bin, versions 0 and 1), or a folder with one
//   a folder with an adapter (lora.h), on top of the model that it names
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

#include "model/config.h"

namespace cautious::model {

// Beside model.safetensors in a checkpoint, where the run averages its weights: what is evaluated.
inline constexpr const char* kAveraged = "ema.safetensors";

class WeightSource {
 public:
  virtual ~WeightSource() = default;

  virtual const ModelConfig& config() const = 0;
  // One of parameter_shapes(config()), converted from whatever type and layout the file has. Any thread may. A value that is
  // not finite is an Error(Fault::data) that names the tensor.
  virtual void read(const Shape& shape, std::span<float> values) const = 0;
  virtual const std::filesystem::path& path() const = 0;
};

// Maps the file or files; every tensor has been held against parameter_shapes() when it returns. Missing shards, tensors that
// are missing, left over or of another shape, unknown architectures: an Error(Fault::data) that names the first one. Tables
// that models compute (rotary_emb.inv_freq, attn.bias) are passed over, and so is a tied output that equals the embedding.
std::unique_ptr<const WeightSource> open_weights(const std::filesystem::path& path);

}  // namespace cautious::model
