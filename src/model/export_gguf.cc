// Matrices have the type that was asked for, vectors and positions stay f32, as llama.cpp's own converter has it.
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "data/tokenizer/tokenizer_gguf.h"
#include "model/export.h"
#include "model/gguf_model.h"

namespace cautious::model {
namespace {

using base::StoredFloat;

// llama.cpp's numbers for what most tensors of a file are.
constexpr std::uint32_t file_type(StoredFloat type) {
  constexpr std::array<std::uint32_t, 4> kNumbers{0, 1, 32, 7};
  return kNumbers[static_cast<std::size_t>(type)];
}
constexpr std::uint32_t kQuantizationVersion = 2;

std::string_view gguf_type(StoredFloat type) {
  constexpr std::array<std::string_view, 4> kNames{"F32", "F16", "BF16", "Q8_0"};
  return kNames[static_cast<std::size_t>(type)];
}

StoredFloat type_of(const GgufPart& part, StoredFloat wanted) {
  if (part.sides.size() < 2 || part.name.starts_with("position_embd")) return StoredFloat::f32;
  const bool blocks = part.sides.back() % static_cast<std::int64_t>(base::kQ8Block) == 0;
  return wanted == StoredFloat::q8_0 && !blocks ? StoredFloat::f16 : wanted;
}

std::vector<float> values_of(const GgufPart& part, const WeightSource& weights) {
  if (part.from.empty()) return rotation_factors(weights.config());
  double size = 0;
  for (const Shape& shape : part.from) size += entries(shape);
  std::vector<float> values(static_cast<std::size_t>(size));
  std::span<float> rest = values;
  for (const Shape& shape : part.from) {
    const auto own = rest.first(static_cast<std::size_t>(entries(shape)));
    weights.read(shape, own);
    rest = rest.subspan(own.size());
  }
  if (part.rotated_heads > 0) rotate_rows(values, part.sides.front(), part.rotated_heads, Rotation::there);
  if (part.added != 0)
    for (float& value : values) value += part.added;
  return values;
}

}  // namespace

void check_out_is_new(const std::filesystem::path& out) {
  std::error_code ignored;
  if (std::filesystem::exists(std::filesystem::symlink_status(out, ignored)))
    throw Error(Fault::usage,
                fmt::format("{} exists already; give another --out, or remove it", base::in_quotes(out.string())));
}

void export_gguf(const Export& model, const std::filesystem::path& out) {
  check_out_is_new(out);
  const ModelConfig& config = model.weights.config();
  const std::vector<GgufPart> parts = gguf_parts(config);
  base::GgufMetadata metadata{{"general.architecture", std::string(gguf_architecture(config))},
                              {"general.type", std::string("model")},
                              {"general.name", model.name},
                              {"general.file_type", file_type(model.type)}};
  if (model.type == StoredFloat::q8_0) metadata.emplace_back("general.quantization_version", kQuantizationVersion);
  for (auto& value : gguf_hyperparameters(config)) metadata.push_back(std::move(value));
  for (auto& value : data::to_gguf(model.tokenizer, config.vocab)) metadata.push_back(std::move(value));
  if (!model.chat_template.empty()) metadata.emplace_back("tokenizer.chat_template", model.chat_template);

  std::vector<base::GgufTensor> tensors;
  for (const GgufPart& part : parts)
    tensors.push_back({part.name, &base::ggml_type(gguf_type(type_of(part, model.type))), part.sides});
  base::write_gguf(out, metadata, tensors, [&](std::size_t i, std::span<std::byte> bytes) {
    base::with_context(fmt::format("tensor '{}'", parts[i].name),
                       [&] { base::store(values_of(parts[i], model.weights), type_of(parts[i], model.type), bytes); });
    model.progress(static_cast<double>(i + 1) / static_cast<double>(parts.size()));
  });
}

}  // namespace cautious::model
