// Initial values of a Transformer's parameters.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "model/random_fill.h"
#include "model/transformer.h"

namespace cautious::model {
namespace {

// Of "model.layers.3.mlp...": 3. Only asked of parameters of a layer.
std::int64_t layer_of(std::string_view name) {
  constexpr std::string_view kBefore = "model.layers.";
  std::int64_t layer = 0;
  std::from_chars(name.data() + kBefore.size(), name.data() + name.size(), layer);
  return layer;
}

// The last product of a sub-layer, whose result is added to the sum that runs through the layers.
bool ends_sublayer(std::string_view name) { return name.ends_with(".o_proj.weight") || name.ends_with(".down_proj.weight"); }

double deviation_of(const ModelConfig& config, const Shape& shape) {
  const bool last = ends_sublayer(shape.name);
  if (config.init == Init::truncated_normal) return last ? 0.02 / std::sqrt(2.0 * static_cast<double>(config.layers)) : 0.02;
  const double plain = 1 / std::sqrt(static_cast<double>(shape.sides[1]));
  return last ? plain / std::sqrt(2.0 * static_cast<double>(layer_of(shape.name) + 1)) : plain;
}

// Norms start as the identity, biases and query scales at 0.
double start_of_vector(const ModelConfig& config, std::string_view name) {
  return name.ends_with("norm.weight") && config.norm != NormKind::rms_offset ? 1 : 0;
}

template <class Value>
void fill(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<Value> values) {
  const std::uint64_t key = key_of(shape.name, seed);
  if (shape.sides.size() != 2) {
    std::fill(values.begin(), values.end(), static_cast<Value>(start_of_vector(config, shape.name)));
  } else if (config.init == Init::xavier) {
    fill_uniform(values, key, std::sqrt(6.0 / static_cast<double>(shape.sides[0] + shape.sides[1])));
  } else {
    fill_normal(values, key, deviation_of(config, shape));
  }
}

}  // namespace

void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<float> values) {
  fill(config, shape, seed, values);
}

void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<double> values) {
  fill(config, shape, seed, values);
}

}  // namespace cautious::model
