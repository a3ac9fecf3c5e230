// Shared by the tests of cautious::torch: repeatable tensors, gradients set by hand, comparison of all bits.
#pragma once

#include <cstring>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/serialize.h>

#include <cautious/error.h>
#include <cautious/torch.h>

#include "fixture.h"

namespace torch_fixture {

using Shape = std::vector<std::int64_t>;
using Named = cautious::torch::Optimizer::Named;

inline at::Tensor values(const Shape& shape, at::ScalarType type, std::uint64_t seed) {
  at::Tensor made = at::empty(shape, at::kDouble);
  fixture::Values next(seed);
  for (std::int64_t i = 0; i < made.numel(); ++i) made.data_ptr<double>()[i] = next.weight_or_zero();
  return made.to(type);
}

inline at::Tensor leaf(const Shape& shape, at::ScalarType type, std::uint64_t seed) {
  return values(shape, type, seed).set_requires_grad(true);
}

inline at::Tensor leaf_like(const at::Tensor& other) { return other.detach().clone().set_requires_grad(true); }

inline void set_gradient(const at::Tensor& parameter, at::Tensor g) { parameter.mutable_grad() = std::move(g); }

inline void random_gradient(const at::Tensor& parameter, std::uint64_t seed) {
  set_gradient(parameter, values(parameter.sizes().vec(), parameter.scalar_type(), seed));
}

inline bool same_bits(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.detach().contiguous(), y = b.detach().contiguous();
  return x.scalar_type() == y.scalar_type() && x.sizes() == y.sizes() &&
         std::memcmp(x.data_ptr(), y.data_ptr(), x.nbytes()) == 0;
}

// The largest |a - b|, as a number.
inline double distance(const at::Tensor& a, const at::Tensor& b) {
  return (a.detach().to(at::kDouble) - b.detach().to(at::kDouble)).abs().max().item<double>();
}

inline cautious::torch::Options options(double lr, cautious::Recipe recipe) {
  cautious::torch::Options made(lr);
  made.recipe = std::move(recipe);
  return made;
}

inline cautious::torch::Options& options_of(cautious::torch::Optimizer& optimizer, std::size_t group = 0) {
  return static_cast<cautious::torch::Options&>(optimizer.param_groups()[group].options());
}

inline Named named(const std::vector<std::pair<std::string, at::Tensor>>& list) {
  Named made;
  for (const auto& [name, tensor] : list) made.insert(name, tensor);
  return made;
}

template <class Optimizer>
std::string saved(const Optimizer& optimizer) {
  std::ostringstream out;
  torch::save(optimizer, out);
  return out.str();
}

inline void load(cautious::torch::Optimizer& optimizer, const std::string& bytes) {
  std::istringstream in(bytes);
  torch::load(optimizer, in);
}

using fixture::expect_error;

}  // namespace torch_fixture
