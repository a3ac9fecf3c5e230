// Shared by the tests of src/train/ops: repeatable tensors, comparison with a tolerance, and gradients against those of another
// function or against finite differences.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/zeros_like.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include "fixture.h"

namespace fixture {

using Tensors = std::vector<at::Tensor>;
using Function = std::function<at::Tensor(const Tensors&)>;

// About normal, the same for f32 and f64 but for rounding.
inline at::Tensor values(at::IntArrayRef sides, std::uint64_t seed, at::ScalarType type = at::kDouble) {
  std::int64_t count = 1;
  for (const std::int64_t side : sides) count *= side;
  Values draw(seed);
  std::vector<double> data(static_cast<std::size_t>(count));
  for (double& x : data) x = (draw.uniform() + draw.uniform() + draw.uniform() + draw.uniform() - 2) * std::sqrt(3.0);
  return at::from_blob(data.data(), sides, at::kDouble).to(type, false, true);
}

// The largest difference, over the largest entry of `expected`, or over `least` if that is larger. NaN differs from all.
inline double distance(const at::Tensor& got, const at::Tensor& expected, double least = 1e-30) {
  if (!got.defined() || !expected.defined() || got.sizes() != expected.sizes()) return std::numeric_limits<double>::infinity();
  if (got.numel() == 0) return 0;
  const at::Tensor a = got.detach().to(at::kDouble), b = expected.detach().to(at::kDouble);
  const double largest = std::max(b.abs().max().item<double>(), least);
  const double difference = (a - b).abs().max().item<double>();
  return std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference / largest;
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) { return a.sizes() == b.sizes() && a.equal(b); }

struct Outcome {
  at::Tensor value;
  Tensors gradients;  // of sum(value * weights) by each input; undefined where there is none
};

// Weights of the outcome's entries, so that no gradient is symmetric by chance.
inline at::Tensor weights(const at::Tensor& value) { return values(value.sizes(), 77, value.scalar_type()); }

// `wanted` has one entry per input; empty means all.
inline Outcome differentiate(const Function& function, const Tensors& inputs, const std::vector<bool>& wanted = {}) {
  Tensors leaves;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    leaves.push_back(inputs[i].detach().requires_grad_(wanted.empty() || wanted[i]));
  Outcome outcome{function(leaves), {}};
  outcome.value.backward(weights(outcome.value));
  for (const at::Tensor& leaf : leaves) outcome.gradients.push_back(leaf.grad());
  outcome.value = outcome.value.detach();
  return outcome;
}

// Value and all gradients of two functions, relative to the largest entry of each tensor (gradients: or `least`).
inline void expect_equal(const Function& got, const Function& expected, const Tensors& inputs, double tolerance,
                         const std::string& what, double least = 1e-30) {
  const Outcome a = differentiate(got, inputs), b = differentiate(expected, inputs);
  EXPECT_LE(distance(a.value, b.value), tolerance) << what << ": value";
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_LE(distance(a.gradients[i], b.gradients[i], least), tolerance) << what << ": gradient of input " << i;
}

// Every gradient against central differences in f64: along one direction through all entries, and along up to `probes` entries
// of each input.
inline void expect_gradients(const Function& function, const Tensors& inputs, const std::string& what, double tolerance = 1e-7,
                             std::int64_t probes = 12) {
  const Outcome outcome = differentiate(function, inputs);
  const at::Tensor by = weights(outcome.value);
  const c10::AutoGradMode off(false);
  constexpr double step = 1e-5;
  const auto slope = [&](std::size_t i, const at::Tensor& direction) {
    Tensors plus = inputs, minus = inputs;
    plus[i] = inputs[i] + direction * step;
    minus[i] = inputs[i] - direction * step;
    return ((function(plus) - function(minus)) * by).sum().item<double>() / (2 * step);
  };
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    ASSERT_EQ(inputs[i].scalar_type(), at::kDouble);
    const at::Tensor& gradient = outcome.gradients[i];
    ASSERT_TRUE(gradient.defined()) << what << ": input " << i << " has no gradient";
    ASSERT_EQ(gradient.sizes(), inputs[i].sizes()) << what << ": input " << i;
    const std::int64_t count = gradient.numel();
    at::Tensor direction = values(gradient.sizes(), 5 + i);
    direction = direction / direction.norm();
    const double size = std::max(1.0, gradient.norm().item<double>());
    EXPECT_NEAR((gradient * direction).sum().item<double>(), slope(i, direction), tolerance * size) << what << ": input " << i;
    for (std::int64_t probe = 0; probe < std::min(probes, count); ++probe) {
      const std::int64_t at = count <= probes ? probe : (probe * (count - 1)) / (probes - 1);
      at::Tensor unit = at::zeros_like(inputs[i], at::MemoryFormat::Contiguous);
      unit.view(-1)[at] = 1.0;
      EXPECT_NEAR(gradient.reshape(-1)[at].item<double>(), slope(i, unit), tolerance * size)
          << what << ": input " << i << ", entry " << at;
    }
  }
}

}  // namespace fixture
