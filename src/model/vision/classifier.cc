// First values of the tensors, and the loss.
#include "model/vision/classifier.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>
#include <utility>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/log_softmax.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cautious/error.h>

#include "model/random_fill.h"
#include "model/registered.h"
#include "model/vision/parts.h"
#include "model/vision/stages.h"

namespace cautious::model {
namespace {

constexpr double kDeviation = 0.02;       // of a vision transformer's matrices, as timm's
constexpr double kTokenDeviation = 1e-6;  // of its class token

// Entries that make one entry of the result, and entries that one entry of the input takes part in.
double fan_in(const Shape& shape) { return entries(shape) / static_cast<double>(shape.sides[0]); }
double fan_out(const Shape& shape) { return entries(shape) / static_cast<double>(shape.sides[1]); }

// How far from 0 a layer's first values are in libtorch unless something else is said: uniform within 1 / sqrt(fan_in).
template <class Value>
void fill_as_torch(std::span<Value> values, std::uint64_t key, double inputs) {
  fill_uniform(values, key, 1 / std::sqrt(inputs));
}

template <class Value>
void fill_constant(std::span<Value> values, double constant) {
  std::fill(values.begin(), values.end(), static_cast<Value>(constant));
}

bool is_norm(std::string_view name) { return name.find("norm") != std::string_view::npos; }

// As timm: truncated normal matrices and positions, zero biases; the patches' projection is a convolution, which timm leaves to
// libtorch.
template <class Value>
void fill_image_tensor(const VitConfig& c, const Shape& shape, std::uint64_t key, std::span<Value> values) {
  if (is_norm(shape.name)) {
    fill_constant(values, shape.name.ends_with(".weight") ? 1 : 0);
  } else if (shape.name.starts_with("patch_embed.")) {
    fill_as_torch(values, key, static_cast<double>(c.channels * c.patch) * static_cast<double>(c.patch));
  } else if (shape.name == "cls_token") {
    fill_normal(values, key, kTokenDeviation);
  } else if (shape.name.ends_with(".bias")) {
    fill_constant(values, 0);
  } else {
    fill_normal(values, key, kDeviation);
  }
}

// As torchvision: He's normal values by what leaves a convolution, norms as the identity, the last layer as libtorch's.
template <class Value>
void fill_image_tensor(const ResNetConfig& c, const Shape& shape, std::uint64_t key, std::span<Value> values) {
  if (shape.sides.size() == 4) {
    fill_normal(values, key, std::sqrt(2 / fan_out(shape)));
  } else if (shape.name == "fc.weight") {
    fill_as_torch(values, key, fan_in(shape));
  } else if (shape.name == "fc.bias") {
    fill_as_torch(values, key, static_cast<double>(width_of_features(c)));
  } else {
    fill_constant(values, shape.name.ends_with(".weight") ? 1 : 0);
  }
}

template <class Value>
at::Tensor first_values(const ImageModel& model, const Shape& shape, std::uint64_t seed, at::ScalarType type) {
  at::Tensor tensor = at::empty(shape.sides, at::TensorOptions(type));
  const std::span<Value> values(tensor.data_ptr<Value>(), static_cast<std::size_t>(tensor.numel()));
  std::visit([&](const auto& c) { fill_image_tensor(c, shape, key_of(shape.name, seed), values); }, model);
  return tensor;
}

at::Tensor first_buffer(const Shape& shape, at::ScalarType type) {
  if (shape.sides.empty()) return at::zeros({}, at::TensorOptions(at::kLong));
  const at::TensorOptions options(type);
  return shape.name.ends_with(".running_var") ? at::ones(shape.sides, options) : at::zeros(shape.sides, options);
}

}  // namespace

Named register_all(::torch::nn::Module& module, const ImageModel& model, std::uint64_t seed, at::ScalarType type) {
  if (type != at::kFloat && type != at::kDouble) {
    throw Error(Fault::usage, fmt::format("model's type is {}; choices: Float, Double", c10::toString(type)));
  }
  Named all;
  for (const Shape& shape : parameter_shapes(model)) {
    const at::Tensor first =
        type == at::kFloat ? first_values<float>(model, shape, seed, type) : first_values<double>(model, shape, seed, type);
    all[shape.name] = registered_parameter(module, shape.name, first);
  }
  for (const Shape& shape : buffer_shapes(model))
    all[shape.name] = registered_buffer(module, shape.name, first_buffer(shape, type));
  return all;
}

std::shared_ptr<Classifier> make_classifier(const ImageModel& config, std::uint64_t seed, ops::Path path, at::ScalarType type) {
  if (const auto* const vit = std::get_if<VitConfig>(&config)) return make_vit(*vit, seed, path, type);
  return make_resnet(std::get<ResNetConfig>(config), seed, path, type);
}

void Classifier::check_images(const at::Tensor& images) const {
  const std::int64_t size = image_size(config_), depth = channels(config_);
  const bool fits =
      images.dim() == 4 && images.size(0) > 0 && images.size(1) == depth && images.size(2) == size && images.size(3) == size;
  if (!fits) {
    throw Error(Fault::usage, fmt::format("images are [{}]; the model takes [N, {}, {}, {}]", fmt::join(images.sizes(), ", "),
                                          depth, size, size));
  }
}

at::Tensor image_loss(const at::Tensor& logits, const at::Tensor& label, const at::Tensor& other, const at::Tensor& share,
                      double smoothing) {
  const std::int64_t count = logits.size(0);
  if (logits.dim() != 2 || label.numel() != count || other.numel() != count || share.numel() != count) {
    throw Error(Fault::usage, fmt::format("image_loss: logits are [{}], labels {}, {} and shares {}; valid: [N, classes] and N",
                                          fmt::join(logits.sizes(), ", "), label.numel(), other.numel(), share.numel()));
  }
  const at::Tensor chances = at::log_softmax(logits, 1);
  const auto of = [&](const at::Tensor& which) { return chances.gather(1, which.clamp_min(0).unsqueeze(1)).squeeze(1); };
  const at::Tensor part = share.to(logits.scalar_type());
  const at::Tensor target = part * of(label) + (1 - part) * of(other);
  const at::Tensor each = (1 - smoothing) * target + smoothing * chances.mean(1);
  const at::Tensor counts = label.ge(0);
  return -each.masked_fill(counts.logical_not(), 0).sum() / counts.sum().clamp_min(1);
}

}  // namespace cautious::model
