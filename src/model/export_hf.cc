// config.json, safetensors and the tokenizer's files, as from_pretrained() of transformers looks for them.
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/aside_folder.h"
#include "base/atomic_file.h"
#include "base/safetensors.h"
#include "base/text.h"
#include "data/tokenizer/tokenizer_json.h"
#include "model/export.h"
#include "model/family.h"
#include "model/json_keys.h"

namespace cautious::model {
namespace {

using base::StoredFloat;

struct HfType {
  const char *stored, *torch;
};
HfType hf_type(StoredFloat type) {
  switch (type) {
    case StoredFloat::f16:
      return {"F16", "float16"};
    case StoredFloat::bf16:
      return {"BF16", "bfloat16"};
    case StoredFloat::f32:
      return {"F32", "float32"};
    case StoredFloat::q8_0:
      break;
  }
  throw Error(Fault::usage, "--type q8_0 is a type of GGUF; valid with --format hf: f32, f16, bf16");
}

void write_json(const std::filesystem::path& path, const Json& json) { base::write_atomically(path, json.dump(2) + "\n"); }

// Files of at most so many bytes, unless one tensor has more.
std::vector<std::vector<Shape>> in_shards(const ModelConfig& config, StoredFloat type, std::uint64_t most) {
  std::vector<std::vector<Shape>> shards(1);
  std::uint64_t size = 0;
  for (Shape& shape : parameter_shapes(config)) {
    const std::uint64_t bytes = base::stored_bytes(type, static_cast<std::size_t>(entries(shape)));
    if (size > 0 && size + bytes > most) {
      shards.emplace_back();
      size = 0;
    }
    size += bytes;
    shards.back().push_back(std::move(shape));
  }
  return shards;
}

void write_shard(const Export& model, const std::vector<Shape>& shapes, const std::filesystem::path& file) {
  std::vector<base::TensorInfo> tensors;
  for (const Shape& shape : shapes) {
    const std::size_t bytes = base::stored_bytes(model.type, static_cast<std::size_t>(entries(shape)));
    tensors.push_back({shape.name, hf_type(model.type).stored, shape.sides, 0, bytes});
  }
  base::write_safetensors(file, tensors, {{"format", "pt"}}, [&](std::size_t i, std::span<std::byte> bytes) {
    std::vector<float> values(static_cast<std::size_t>(entries(shapes[i])));
    model.weights.read(shapes[i], values);
    base::with_context(fmt::format("tensor '{}'", shapes[i].name), [&] { base::store(values, model.type, bytes); });
  });
}

void write_weights(const Export& model, const std::filesystem::path& folder, std::uint64_t most) {
  const auto shards = in_shards(model.weights.config(), model.type, most);
  Json map = Json::object();
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < shards.size(); ++i) {
    const std::string name =
        shards.size() == 1 ? "model.safetensors" : fmt::format("model-{:05}-of-{:05}.safetensors", i + 1, shards.size());
    write_shard(model, shards[i], folder / name);
    for (const Shape& shape : shards[i]) {
      map[shape.name] = name;
      total += base::stored_bytes(model.type, static_cast<std::size_t>(entries(shape)));
    }
    model.progress(static_cast<double>(i + 1) / static_cast<double>(shards.size()));
  }
  if (shards.size() > 1)
    write_json(folder / "model.safetensors.index.json", {{"metadata", {{"total_size", total}}}, {"weight_map", map}});
}

void write_descriptions(const Export& model, const std::filesystem::path& folder) {
  const ModelConfig& config = model.weights.config();
  const data::Token end = model.tokenizer.document_end(), begin = model.tokenizer.beginning().value_or(end);
  Json json = Json::parse(to_config_json(config, begin, end));
  json["torch_dtype"] = hf_type(model.type).torch;
  write_json(folder / "config.json", json);
  write_json(folder / "generation_config.json", {{"_from_model_config", true}, {"bos_token_id", begin}, {"eos_token_id", end}});
  write_json(folder / "special_tokens_map.json", data::special_tokens(model.tokenizer));
  write_json(folder / "tokenizer_config.json", data::to_tokenizer_config(model.tokenizer, config.context, model.chat_template));
  base::write_atomically(folder / "tokenizer.json", model.tokenizer.to_json());
}

}  // namespace

void export_hf(const Export& model, const std::filesystem::path& out, std::uint64_t most_bytes) {
  (void)hf_type(model.type);
  if (family_of(model.weights.config()) == "cautious") {
    throw Error(Fault::usage,
                "the model is none of the families of transformers that we write: llama, mistral, qwen2, qwen3, "
                "olmo, gemma, gemma2; the run's checkpoint has the weights under our own description");
  }
  check_out_is_new(out);
  const std::filesystem::path target = std::filesystem::absolute(out).lexically_normal();
  const std::filesystem::path place = target.has_filename() ? target : target.parent_path();
  const base::AsideFolder aside(place);
  write_descriptions(model, aside.path());
  write_weights(model, aside.path(), most_bytes);
  aside.sync();
  base::rename_folder(aside.path(), place);
  base::sync_path(place.parent_path());
}

}  // namespace cautious::model
