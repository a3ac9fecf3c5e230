// Products through the low rank, and their dropout: a hash of the draw, the matrix and the entry decides.
#include "model/adapters.h"

#include <cmath>
#include <span>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>

#include "base/hash.h"
#include "model/random_fill.h"
#include "model/registered.h"

namespace cautious::model {
namespace {

template <class Value>
void fill_factors(const at::Tensor& factors, std::uint64_t key, double dropout) {
  auto* const values = factors.data_ptr<Value>();
  const std::int64_t size = factors.numel();
  const auto kept = static_cast<Value>(1 / (1 - dropout));
#pragma omp parallel for schedule(static)
  for (std::int64_t i = 0; i < size; ++i) {
    const double chance = UniformStream(key, static_cast<std::uint64_t>(i)).next();
    values[i] = chance < dropout ? Value(0) : kept;
  }
}

}  // namespace

Adapters::Adapters(const ModelConfig& config, const LoraConfig& lora, std::uint64_t seed, at::ScalarType type,
                   const at::TensorOptions& place)
    : lora_(lora) {
  for (const Shape& shape : adapter_shapes(config, lora)) {
    const bool is_a = shape.sides[0] == lora.rank && shape.name.ends_with("lora_A.weight");
    at::Tensor values = at::zeros(shape.sides, at::TensorOptions(type));
    const std::uint64_t key = key_of(shape.name, seed);
    if (is_a) {
      const double limit = 1 / std::sqrt(static_cast<double>(shape.sides[1]));
      const auto size = static_cast<std::size_t>(values.numel());
      if (type == at::kFloat) {
        fill_uniform(std::span(values.data_ptr<float>(), size), key, limit);
      } else {
        fill_uniform(std::span(values.data_ptr<double>(), size), key, limit);
      }
    }
    Pair& pair = pairs_[adapted_weight(shape.name)];
    (is_a ? pair.a : pair.b) = registered_parameter(*this, shape.name, values, place);
    pair.key = key;
  }
}

const Adapters::Pair* Adapters::find(const std::string& weight) const {
  const auto found = pairs_.find(weight);
  return found == pairs_.end() ? nullptr : &found->second;
}

at::Tensor Adapters::thinned(const at::Tensor& x, std::uint64_t key) const {
  if (lora_.dropout == 0 || !is_training()) return x;
  const bool doubles = x.scalar_type() == at::kDouble;
  const at::Tensor factors = at::empty(x.sizes(), at::TensorOptions(doubles ? at::kDouble : at::kFloat));
  const std::uint64_t mixed = base::mix64(key + base::kGolden * (number_ + 1));
  doubles ? fill_factors<double>(factors, mixed, lora_.dropout) : fill_factors<float>(factors, mixed, lora_.dropout);
  return x * factors.to(x.options().requires_grad(false));
}

at::Tensor Adapters::add_to(const at::Tensor& rows, const at::Tensor& x, const Pair& pair) const {
  return at::add(rows, at::linear(at::linear(thinned(x, pair.key), pair.a), pair.b), scale_of(lora_));
}

}  // namespace cautious::model
