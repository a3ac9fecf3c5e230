#include "train/stepper.h"

#include <c10/core/Device.h>

namespace cautious::train {

Options options_of(const run::RunConfig& config, ranks::World& world) {
  Options options = config.optimizer.options;
  options.share = world.share();
  options.nonfinite = Nonfinite::skip;
  options.seed = config.train.seed;
  options.threads = config.train.threads;
  if (config.train.precision == run::Precision::bf16) options.rounding = Rounding::split;
  if (config.train.precision == run::Precision::bf16_stochastic) options.rounding = Rounding::stochastic;
  return options;
}

Optimizer make_core(const run::RunConfig& config, const Parameters& parameters, ranks::World& world) {
  Optimizer core(routing_of(config), options_of(config, world));
  for (std::size_t i = 0; i < parameters.tensors.size(); ++i) {
    const at::Tensor& tensor = parameters.tensors[i];
    const Element element = tensor.scalar_type() == at::kBFloat16 ? Element::bf16 : Element::f32;
    core.add({.name = parameters.names[i],
              .shape = tensor.sizes().vec(),
              .element = element,
              .gradient = world.ranks() > 1 ? Element::f32 : element,
              .x = tensor.data_ptr()});
  }
  return core;
}

namespace {

class CoreStepper final : public Stepper {
 public:
  CoreStepper(const run::RunConfig& config, const Parameters& parameters, ranks::World& world)
      : parameters_(parameters.tensors), core_(make_core(config, parameters, world)) {}

  std::vector<Slice> slices(std::size_t parameter) const override {
    return {core_.slices(parameter).begin(), core_.slices(parameter).end()};
  }
  const Group& group_of(std::size_t parameter) const override { return core_.group_of(parameter); }
  void set_density(std::size_t parameter, double density) override { core_.set_density(parameter, density); }
  const StepReport& step(const StepInput& input, const std::vector<at::Tensor>& gradients) override {
    std::vector<at::Tensor> rows;  // alive until the step is done
    for (std::size_t i = 0; i < parameters_.size(); ++i) {
      const at::Tensor& row = rows.emplace_back(gradients[i].defined() ? gradients[i].contiguous() : at::Tensor());
      core_.bind(i, parameters_[i].data_ptr(), row.defined() ? row.data_ptr() : nullptr);
    }
    return core_.step(input);
  }
  std::int64_t bytes() const override {
    std::size_t sum = 0;
    for (std::size_t i = 0; i < core_.size(); ++i) {
      for (const StateTensor& piece : core_.state(i)) sum += piece.bytes;
    }
    return static_cast<std::int64_t>(sum);
  }
  void save(const std::filesystem::path& file) override { core_.save(file); }
  void load(const std::filesystem::path& file) override { core_.load(file); }

 private:
  std::vector<at::Tensor> parameters_;
  Optimizer core_;
};

}  // namespace

std::unique_ptr<Stepper> make_stepper(const run::RunConfig& config, const Parameters& parameters, ranks::World& world) {
  if (!parameters.tensors.front().is_cpu()) return make_device_stepper(config, parameters, world);
  return std::make_unique<CoreStepper>(config, parameters, world);
}

}  // namespace cautious::train
