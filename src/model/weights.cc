// A file is held against the list of parameters before a model is made or changed.
#include "model/weights.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <string_view>

#include <ATen/ops/empty.h>
#include <c10/core/GradMode.h>

#include "base/files.h"
#include "model/weight_files.h"

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

// Of a type that held_against() has accepted.
at::ScalarType type_named(std::string_view name) { return std::ranges::find(kTypes, name, &Type::name)->type; }

std::string_view name_of_type(at::ScalarType type) { return std::ranges::find(kTypes, type, &Type::type)->name; }

// Throws unless the file has exactly these tensors.
void check_tensors(const base::Safetensors& stored, const std::vector<Shape>& shapes, const std::filesystem::path& file) {
  std::set<std::string_view> names;
  for (const Shape& shape : shapes) {
    names.insert(shape.name);
    held_against(stored, shape, is_count(shape) ? "I64" : kRealTypes, file);
  }
  for (const base::TensorInfo& tensor : stored.tensors()) {
    if (!names.contains(tensor.name)) refuse_left_over(tensor, file);
  }
}

// A copy of its own: bytes in the file need not be aligned for their type.
at::Tensor tensor_of(const base::Safetensors& stored, const base::TensorInfo& info) {
  at::Tensor tensor = at::empty(info.shape, at::TensorOptions(type_named(info.type)));
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

}  // namespace

void save_weights(const ::torch::nn::Module& model, const std::filesystem::path& file) {
  std::vector<base::TensorInfo> list;
  std::vector<at::Tensor> tensors;
  each_tensor(model, [&](const std::string& name, const at::Tensor& tensor) {
    list.push_back({name, std::string(name_of_type(tensor.scalar_type())), tensor.sizes().vec(), 0, tensor.nbytes()});
    tensors.push_back(tensor.detach());
  });
  base::write_safetensors(file, list, {{"format", "pt"}}, [&](std::size_t i, std::span<std::byte> bytes) {
    const at::Tensor copy = tensors[i].cpu().contiguous();
    std::memcpy(bytes.data(), copy.data_ptr(), bytes.size());
  });
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

std::shared_ptr<Transformer> load_model(const std::filesystem::path& path, RunOptions options) {
  const auto source = open_weights(path);
  return std::make_shared<Transformer>(*source, source->config(), options);
}

LoadedClassifier load_classifier(const std::filesystem::path& checkpoint) {
  const std::filesystem::path description = checkpoint / "config.json", file = weights_in(checkpoint);
  LoadedClassifier loaded{nullptr, image_model_from_json(base::read_file(description), description.string())};
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
