// What the readers of weights share: how a stored tensor is held against the model's list, and the values after it was read.
// For this room only.
#pragma once

#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/safetensors.h"
#include "model/weight_source.h"

namespace cautious::model {

inline constexpr std::string_view kRealTypes = "F32, BF16, F16, F64";

// The file of weights in a folder: the averaged ones where there are some.
std::filesystem::path weights_in(const std::filesystem::path& folder);

[[noreturn]] void refuse_weights(const std::filesystem::path& file, const std::string& what);

// The tensor of that name, sides, and one of these types; otherwise an Error(Fault::data) with the file.
const base::TensorInfo& held_against(const base::Safetensors& stored, const Shape& wanted, std::string_view types,
                                     const std::filesystem::path& file);
// As many values as there is room for, from element `first` on.
void read_stored(const base::Safetensors& file, const base::TensorInfo& tensor, std::size_t first, std::span<float> to);

[[noreturn]] void refuse_left_over(const base::TensorInfo& tensor, const std::filesystem::path& file);

// An Error if one of the values is NaN or infinite.
void check_finite(const Shape& shape, std::span<const float> values, const std::filesystem::path& file);

// A GGUF file, and a file of llama2.c.
std::unique_ptr<const WeightSource> open_gguf(const std::filesystem::path& file);
std::unique_ptr<const WeightSource> open_llama2c(const std::filesystem::path& file);

}  // namespace cautious::model
