// A file is held against the list of parameters before a model is made or changed.
#include "model/weights.h"

#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>
#include <set>
#include <system_error>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "model/family.h"

namespace cautious::model {
namespace {

struct Type {
  std::string_view name;
  at::ScalarType type;
};
constexpr std::array kTypes{Type{"F32", at::kFloat}, Type{"BF16", at::kBFloat16}, Type{"F16", at::kHalf},
                            Type{"F64", at::kDouble}};

const Type* find_type(std::string_view name) {
  for (const Type& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

[[noreturn]] void refuse_weights(const std::filesystem::path& file, const std::string& what) {
  throw Error(Fault::data, fmt::format("checkpoint {}: {}", file.string(), what));
}

std::string in_brackets(const std::vector<std::int64_t>& sides) { return fmt::format("[{}]", fmt::join(sides, ", ")); }

// Throws unless the file has exactly these tensors.
void check_tensors(const base::Safetensors& stored, const std::vector<Shape>& shapes, const std::filesystem::path& file) {
  constexpr const char* kOther = "it has another architecture";
  std::set<std::string_view> names;
  for (const Shape& shape : shapes) {
    names.insert(shape.name);
    const base::TensorInfo* found = stored.find(shape.name);
    if (found == nullptr) {
      refuse_weights(
          file, fmt::format("no tensor '{}', which the model has as {}; {}", shape.name, in_brackets(shape.sides), kOther));
    }
    if (found->shape != shape.sides) {
      refuse_weights(file, fmt::format("tensor '{}' is {}, the model has {}; {}", shape.name, in_brackets(found->shape),
                                       in_brackets(shape.sides), kOther));
    }
    if (find_type(found->type) == nullptr) {
      refuse_weights(file, fmt::format("tensor '{}' has the type {}; valid: F32, BF16, F16, F64", shape.name, found->type));
    }
  }
  for (const base::TensorInfo& tensor : stored.tensors()) {
    if (!names.contains(tensor.name)) {
      refuse_weights(file, fmt::format("tensor {} {} is not in the model; {}", base::in_quotes(tensor.name),
                                       in_brackets(tensor.shape), kOther));
    }
  }
}

// A copy of its own: bytes in the file need not be aligned for their type.
at::Tensor tensor_of(const base::Safetensors& stored, const base::TensorInfo& info) {
  at::Tensor tensor = at::empty(info.shape, at::TensorOptions(find_type(info.type)->type));
  const std::span<const std::byte> bytes = stored.data(info);
  std::memcpy(tensor.data_ptr(), bytes.data(), bytes.size());
  return tensor;
}

void copy_into(Transformer& model, const base::Safetensors& stored) {
  const at::NoGradGuard no_grad;
  for (auto& item : model.named_parameters()) item.value().copy_(tensor_of(stored, stored.require(item.key())));
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in) throw Error(Fault::data, fmt::format("{}: cannot read: {}", path.string(), std::generic_category().message(errno)));
  return text;
}

}  // namespace

std::vector<base::TensorToWrite> weights_of(const Transformer& model) {
  std::vector<base::TensorToWrite> list;
  for (const auto& item : model.named_parameters()) {
    const at::Tensor& tensor = item.value();
    const auto* const bytes = static_cast<const std::byte*>(tensor.data_ptr());
    list.push_back({item.key(), tensor.scalar_type() == at::kDouble ? "F64" : "F32", tensor.sizes().vec(),
                    std::span(bytes, tensor.nbytes())});
  }
  return list;
}

void load_weights(Transformer& model, const std::filesystem::path& file) {
  const base::Safetensors stored = base::Safetensors::read(file);
  check_tensors(stored, parameter_shapes(model.config()), file);
  copy_into(model, stored);
}

std::shared_ptr<Transformer> load_model(const std::filesystem::path& checkpoint) {
  const std::filesystem::path description = checkpoint / "config.json", file = checkpoint / "model.safetensors";
  const ModelConfig config = from_config_json(text_of(description), description.string());
  const base::Safetensors stored = base::Safetensors::read(file);
  check_tensors(stored, parameter_shapes(config), file);
  auto model = std::make_shared<Transformer>(config, 0);
  copy_into(*model, stored);
  return model;
}

}  // namespace cautious::model
