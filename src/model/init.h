// Initial values of a parameter. They depend on the seed, the parameter's name and its place in the tensor alone: neither on
// threads nor on the other parameters. Knows no libtorch.
#pragma once

#include <cstdint>
#include <span>

#include "model/config.h"

namespace cautious::model {

// In f32 the values are those of f64, rounded.
void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<float> values);
void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<double> values);

}  // namespace cautious::model
