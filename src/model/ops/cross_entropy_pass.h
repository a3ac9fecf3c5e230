// What the loss is made from and what is wanted of it.
#pragma once

#include <algorithm>
#include <cstdint>

#include <ATen/core/Tensor.h>

namespace cautious::model::ops {

// Of which inputs the gradients are wanted.
struct Wanted {
  bool hidden, weight, bias;
  bool any() const { return hidden || weight || bias; }
};

struct Outcome {
  at::Tensor loss, hidden, weight, bias;  // the gradients that are wanted
};

struct Inputs {
  at::Tensor hidden, weight, bias, target;  // bias may be undefined
  double softcap;
};

// Rows that have a target.
inline std::int64_t count_of(const at::Tensor& target) {
  const std::int64_t* at = target.data_ptr<std::int64_t>();
  return std::count_if(at, at + target.numel(), [](std::int64_t word) { return word >= 0; });
}

// Loss and gradients together; f32 or f64 on the CPU.
Outcome compute_loss(const Inputs& in, Wanted wanted);

}  // namespace cautious::model::ops
