// Initial values of a Transformer's parameters: random ones, or those of a file.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include <ATen/Parallel.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "base/parallel.h"
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

// What one list has and the other has not, if they differ.
void check_same(const std::vector<Shape>& shapes, const std::vector<Shape>& stored, const WeightSource& source) {
  if (shapes == stored) return;
  const auto left_over = [](const std::vector<Shape>& all, const std::vector<Shape>& others) {
    return std::ranges::find_if(all, [&](const Shape& shape) { return std::ranges::count(others, shape) == 0; });
  };
  const auto ours = left_over(shapes, stored);
  const Shape& first = ours != shapes.end() ? *ours : *left_over(stored, shapes);
  throw Error(Fault::usage, fmt::format("the model is not that of {}: '{}' differs; leave the keys of the model to it",
                                        source.path().string(), first.name));
}

}  // namespace

void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<float> values) {
  fill(config, shape, seed, values);
}

void fill_initial(const ModelConfig& config, const Shape& shape, std::uint64_t seed, std::span<double> values) {
  fill(config, shape, seed, values);
}

std::vector<at::Tensor> initial_values(const ModelConfig& config, std::uint64_t seed, at::ScalarType type) {
  if (type != at::kFloat && type != at::kDouble) {
    throw Error(Fault::usage, fmt::format("model's type is {}; choices: Float, Double", c10::toString(type)));
  }
  std::vector<at::Tensor> values;
  for (const Shape& shape : parameter_shapes(config)) {
    const at::Tensor tensor = values.emplace_back(at::empty(shape.sides, at::TensorOptions(type)));
    const auto size = static_cast<std::size_t>(tensor.numel());
    if (type == at::kFloat) {
      fill_initial(config, shape, seed, std::span(tensor.data_ptr<float>(), size));
    } else {
      fill_initial(config, shape, seed, std::span(tensor.data_ptr<double>(), size));
    }
  }
  return values;
}

std::vector<at::Tensor> stored_values(const WeightSource& source, const ModelConfig& config) {
  const std::vector<Shape> shapes = parameter_shapes(config);
  check_same(shapes, parameter_shapes(source.config()), source);
  std::vector<at::Tensor> values;
  for (const Shape& shape : shapes) values.push_back(at::empty(shape.sides, at::kFloat));
  base::parallel_for(shapes.size(), at::get_num_threads(), [&](std::size_t i) {
    source.read(shapes[i], std::span(values[i].data_ptr<float>(), static_cast<std::size_t>(values[i].numel())));
  });
  return values;
}

}  // namespace cautious::model
