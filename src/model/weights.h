// A model's parameters to and from model.safetensors.
#pragma once

#include <filesystem>
#include <vector>

#include "base/safetensors.h"
#include "model/transformer.h"

namespace cautious::model {

// Views of the parameters, by name, in the model's order. The model must outlive them.
std::vector<base::TensorToWrite> weights_of(const Transformer& model);

// Overwrites every parameter. F32 tensors (BF16 and F16 too, converted) of the same names and shapes; a file of another
// architecture is an Error(Fault::data) that names the first difference, and the model is unchanged.
void load_weights(Transformer& model, const std::filesystem::path& file);

// The model of a checkpoint folder: config.json and model.safetensors.
std::shared_ptr<Transformer> load_model(const std::filesystem::path& checkpoint);

}  // namespace cautious::model
