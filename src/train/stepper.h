// The optimizer of a run, with its files: the core where parameters are in memory, cautious::torch on other devices. Both share
// their work among the ranks, and read and write the same checkpoints. For this room only.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <cautious/optimizer.h>

#include "ranks/world.h"
#include "run/config.h"

namespace cautious::train {

// The parameters in their order, with their names.
struct Parameters {
  std::vector<std::string> names;
  std::vector<at::Tensor> tensors;
};

class Stepper {
 public:
  virtual ~Stepper() = default;

  virtual std::vector<Slice> slices(std::size_t parameter) const = 0;  // of each rank
  virtual const Group& group_of(std::size_t parameter) const = 0;
  virtual void set_density(std::size_t parameter, double density) = 0;
  // Gradients, undefined where there is none, need be summed over the ranks in the own slices only.
  virtual const StepReport& step(const StepInput& input, const std::vector<at::Tensor>& gradients) = 0;
  virtual std::int64_t bytes() const = 0;  // of the state in this rank
  virtual void save(const std::filesystem::path& file) = 0;
  virtual void load(const std::filesystem::path& file) = 0;
};

// The parameters and the world must outlive it.
std::unique_ptr<Stepper> make_stepper(const run::RunConfig& config, const Parameters& parameters, ranks::World& world);
std::unique_ptr<Stepper> make_device_stepper(const run::RunConfig& config, const Parameters& parameters, ranks::World& world);

// The core's options for a run, and a core over tensors in memory. Sums over ranks are in f32, also of bf16 gradients.
Options options_of(const run::RunConfig& config, ranks::World& world);
Optimizer make_core(const run::RunConfig& config, const Parameters& parameters, ranks::World& world);

}  // namespace cautious::train
