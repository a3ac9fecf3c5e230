// Small image classifiers, what they are fed, and one pass through them.
#pragma once

#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <c10/core/GradMode.h>

#include "model/vision/classifier.h"
#include "ops_fixture.h"

namespace fixture {

// Moves the first values apart, so that scales and biases matter.
inline void shake(cautious::model::Classifier& model) {
  const at::NoGradGuard guard;
  std::uint64_t seed = 900;
  for (at::Tensor& p : model.parameters()) p.add_(values(p.sizes(), seed++, p.scalar_type()), 0.3);
}

template <class Config>
at::Tensor images(const Config& c, std::int64_t count, at::ScalarType type) {
  return values({count, c.channels, c.image_size, c.image_size}, 5, type);
}

// The logits of a batch, then the gradients by every parameter.
inline std::vector<at::Tensor> passed(cautious::model::Classifier& model, const at::Tensor& batch) {
  const at::Tensor y = model.logits(batch);
  y.backward(weights(y));
  std::vector<at::Tensor> all{y.detach()};
  for (const at::Tensor& p : model.parameters()) all.push_back(p.grad());
  return all;
}

}  // namespace fixture
