// Where a run computes, and in which numbers. For this room only.
#pragma once

#include <ATen/core/Tensor.h>

#include "ranks/world.h"
#include "run/config.h"

namespace cautious::train {

// auto: CUDA if it is there, otherwise the CPU. Of several GPUs the ranks of a machine have one each. A
// device that is not there is an Error(Fault::usage).
at::Device device_of(const run::RunConfig& config, const ranks::World& world);

// Device and type of the parameters.
at::TensorOptions place_of(const run::RunConfig& config, const at::Device& device);

// While it lives, matrix products are in bf16 if the configuration says so.
class Precise {
 public:
  Precise(const run::RunConfig& config, const at::Device& device);
  ~Precise();
  Precise(const Precise&) = delete;
  Precise& operator=(const Precise&) = delete;

 private:
  bool mixed_;
  at::Device device_;
};

// Computes what a lazy device has put off.
void settle(const at::Device& device);

}  // namespace cautious::train
