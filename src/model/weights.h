// A model's parameters and buffers to and from model.safetensors.
#pragma once

#include <filesystem>
#include <memory>
#include <vector>

#include "base/safetensors.h"
#include "model/transformer.h"
#include "model/vision/classifier.h"
#include "model/weight_source.h"

namespace cautious::model {

// The parameters and then the buffers, by name, in the model's order and their own types.
void save_weights(const ::torch::nn::Module& model, const std::filesystem::path& file);

// Overwrites every parameter and buffer. F32 tensors (BF16 and F16 too, converted; counts: I64) of the same names and shapes; a
// file of another architecture is an Error(Fault::data) that names the first difference, and the model is unchanged.
void load_weights(::torch::nn::Module& model, const std::filesystem::path& file);

// The model of a checkpoint, or of anything else that open_weights() reads.
std::shared_ptr<Transformer> load_model(const std::filesystem::path& path, RunOptions options = {});

// The same of an image classifier, in evaluation mode, with what its config.json says of images and classes.
struct LoadedClassifier {
  std::shared_ptr<Classifier> model;
  ImageModelFile described;
};
LoadedClassifier load_classifier(const std::filesystem::path& checkpoint);

}  // namespace cautious::model
