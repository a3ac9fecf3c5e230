// What the classifiers share: their tensors by name, with their first values, and the makers behind make_classifier().
#pragma once

#include <map>
#include <memory>
#include <string>

#include "model/vision/classifier.h"

namespace cautious::model {

// Parameters and buffers.
using Named = std::map<std::string, at::Tensor>;

// Registers every tensor of the model, with its first value.
Named register_all(::torch::nn::Module& module, const ImageModel& model, std::uint64_t seed, at::ScalarType type);

std::shared_ptr<Classifier> make_vit(const VitConfig& config, std::uint64_t seed, ops::Path path, at::ScalarType type);
std::shared_ptr<Classifier> make_resnet(const ResNetConfig& config, std::uint64_t seed, ops::Path path, at::ScalarType type);

}  // namespace cautious::model
