// A file is held against the list of parameters before a model is made or changed.
#include "model/weights.h"

#include <algorithm>
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
                            Type{"F64", at::kDouble}, Type{"I64", at::kLong}};

// Counts are whole numbers, all else is not.
bool is_count(const Shape& shape) { return shape.name.ends_with("num_batches_tracked"); }

const Type* find_type(std::string_view name) {
  for (const Type& type : kTypes) {
    if (type.name == name) return &type;
  }
  return nullptr;
}

std::string_view name_of_type(at::ScalarType type) {
  return std::find_if(kTypes.begin(), kTypes.end(), [&](const Type& known) { return known.type == type; })->name;
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
    const bool whole = found->type == "I64";
    if (find_type(found->type) == nullptr || whole != is_count(shape)) {
      refuse_weights(file, fmt::format("tensor '{}' has the type {}; valid: {}", shape.name, found->type,
                                       is_count(shape) ? "I64" : "F32, BF16, F16, F64"));
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

// body(name, tensor) for every parameter and buffer.
template <class Body>
void each_tensor(const ::torch::nn::Module& model, const Body& body) {
  for (const auto& item : model.named_parameters()) body(item.key(), item.value());
  for (const auto& item : model.named_buffers()) body(item.key(), item.value());
}

void copy_into(const ::torch::nn::Module& model, const base::Safetensors& stored) {
  const at::NoGradGuard no_grad;
  each_tensor(
      model, [&](const std::string& name, const at::Tensor& tensor) { tensor.copy_(tensor_of(stored, stored.require(name))); });
}

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text(std::istreambuf_iterator<char>(in), {});
  if (!in) throw Error(Fault::data, fmt::format("{}: cannot read: {}", path.string(), std::generic_category().message(errno)));
  return text;
}

std::filesystem::path weights_in(const std::filesystem::path& checkpoint) {
  std::error_code error;
  const std::filesystem::path averaged = checkpoint / kAveraged;
  return std::filesystem::exists(averaged, error) ? averaged : checkpoint / "model.safetensors";
}

}  // namespace

std::vector<base::TensorToWrite> weights_of(const ::torch::nn::Module& model) {
  std::vector<base::TensorToWrite> list;
  each_tensor(model, [&](const std::string& name, const at::Tensor& tensor) {
    const auto* const bytes = static_cast<const std::byte*>(tensor.data_ptr());
    list.push_back(
        {name, std::string(name_of_type(tensor.scalar_type())), tensor.sizes().vec(), std::span(bytes, tensor.nbytes())});
  });
  return list;
}

void load_weights(::torch::nn::Module& model, const std::filesystem::path& file) {
  const base::Safetensors stored = base::Safetensors::read(file);
  std::vector<Shape> shapes;
  each_tensor(model, [&](const std::string& name, const at::Tensor& tensor) {
    shapes.push_back({name, tensor.sizes().vec()});
  });
  check_tensors(stored, shapes, file);
  copy_into(model, stored);
}

std::shared_ptr<Transformer> load_model(const std::filesystem::path& checkpoint) {
  const std::filesystem::path description = checkpoint / "config.json", file = weights_in(checkpoint);
  const ModelConfig config = from_config_json(text_of(description), description.string());
  const base::Safetensors stored = base::Safetensors::read(file);
  check_tensors(stored, parameter_shapes(config), file);
  auto model = std::make_shared<Transformer>(config, 0);
  copy_into(*model, stored);
  return model;
}

LoadedClassifier load_classifier(const std::filesystem::path& checkpoint) {
  const std::filesystem::path description = checkpoint / "config.json", file = weights_in(checkpoint);
  LoadedClassifier loaded{nullptr, image_model_from_json(text_of(description), description.string())};
  const base::Safetensors stored = base::Safetensors::read(file);
  std::vector<Shape> shapes = parameter_shapes(loaded.described.model);
  const std::vector<Shape> buffers = buffer_shapes(loaded.described.model);
  shapes.insert(shapes.end(), buffers.begin(), buffers.end());
  check_tensors(stored, shapes, file);
  loaded.model = make_classifier(loaded.described.model, 0);
  copy_into(*loaded.model, stored);
  loaded.model->eval();
  return loaded;
}

}  // namespace cautious::model
