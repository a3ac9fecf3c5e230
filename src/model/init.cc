// Initial values of the parameters. Random numbers by counting: splitmix64 of a key and a position, the key being the seed and
// the name.
#include <algorithm>
#include <charconv>
#include <cmath>
#include <numbers>
#include <string_view>

#include "base/hash.h"
#include "model/transformer.h"

namespace cautious::model {
namespace {

constexpr double kCut = 3;  // normal values farther out, in standard deviations, are drawn again

// Uniform in (0, 1), one after the other.
class Stream {
 public:
  Stream(std::uint64_t key, std::uint64_t position) : state_(base::mix64(key + base::kGolden * (position + 1))) {}
  double next() {
    state_ += base::kGolden;
    return (static_cast<double>(base::mix64(state_) >> 11U) + 0.5) * 0x1p-53;
  }

 private:
  std::uint64_t state_;
};

struct Pair {
  double first, second;
};

// Box-Muller. A pair with one value too far out is drawn again, which leaves two independent truncated normal values.
Pair normal_pair(Stream stream) {
  for (;;) {
    const double radius = std::sqrt(-2 * std::log(stream.next())), angle = 2 * std::numbers::pi * stream.next();
    const Pair pair{radius * std::cos(angle), radius * std::sin(angle)};
    if (std::abs(pair.first) <= kCut && std::abs(pair.second) <= kCut) return pair;
  }
}

template <class Value>
void fill_normal(std::span<Value> values, std::uint64_t key, double deviation) {
  const auto size = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t position = 0; position < size; position += 2) {
    const Pair pair = normal_pair(Stream(key, static_cast<std::uint64_t>(position)));
    values[position] = static_cast<Value>(deviation * pair.first);
    if (position + 1 < size) values[position + 1] = static_cast<Value>(deviation * pair.second);
  }
}

template <class Value>
void fill_uniform(std::span<Value> values, std::uint64_t key, double limit) {
  const auto size = static_cast<std::int64_t>(values.size());
#pragma omp parallel for schedule(static)
  for (std::int64_t position = 0; position < size; ++position) {
    values[position] = static_cast<Value>(limit * (2 * Stream(key, static_cast<std::uint64_t>(position)).next() - 1));
  }
}

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
  const std::uint64_t key = base::mix64(base::hash_of(shape.name) ^ base::mix64(seed + base::kGolden));
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
