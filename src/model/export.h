// A model in the formats of other programs: one GGUF file for llama.cpp, or a folder for Hugging Face's transformers. Weights
// are read, converted and written tensor by tensor. Knows no libtorch.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>

#include "base/stored_floats.h"
#include "data/tokenizer/tokenizer.h"
#include "model/weight_source.h"

namespace cautious::model {

struct Export {
  const WeightSource& weights;
  const data::Tokenizer& tokenizer;
  base::StoredFloat type;     // of matrices; vectors are f32 in GGUF
  std::string name;           // "stories15m"
  std::string chat_template;  // empty: none
  std::function<void(double fraction)> progress;
};

// A model that the format cannot hold is an Error(Fault::usage); of GGUF it names the field. `out` must not exist, and appears
// complete or not at all.
void export_gguf(const Export& model, const std::filesystem::path& out);
// A folder, with the weights in several files if they have more than `most_bytes` bytes.
void export_hf(const Export& model, const std::filesystem::path& out, std::uint64_t most_bytes = 5'000'000'000);

// An Error(Fault::usage) if there is something.
void check_out_is_new(const std::filesystem::path& out);

}  // namespace cautious::model
