// Every recipe as a torch::optim::Optimizer.
//
//   cautious::torch::Options options(1e-3);                           // learning rate
//   options.recipe = cautious::recipe("adamw");
//   options.recipe.decay = cautious::Cautious{};
//   cautious::torch::Optimizer optimizer(model->named_parameters(), options);
//
// Tensors on the CPU go through the fused core; tensors elsewhere through the same formulas in ATen operations, or, on CUDA in
// a build with CAUTIOUS_CUDA, through kernels made from them.
#pragma once

#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <torch/optim/optimizer.h>
#include <torch/ordered_dict.h>
#include <torch/serialize/archive.h>

#include <cautious/optimizer.h>

namespace cautious::torch {

// Of one parameter group; learning-rate schedulers of libtorch work on `lr`.
struct Options : public ::torch::optim::OptimizerCloneableOptions<Options> {
  Options(double learning_rate = 1e-3) : lr(learning_rate) {}  // NOLINT: as torch::optim::AdamWOptions
  double lr;
  Recipe recipe = cautious::recipe("adamw");
  double lr_max = 0;        // peak of the schedule, for the couplings; 0: the largest lr this group has seen
  double decay_factor = 1;  // of a weight-decay schedule
  DecaySwitch decay = DecaySwitch::on;

  double get_lr() const override { return lr; }
  void set_lr(const double value) override { lr = value; }
  void serialize(::torch::serialize::OutputArchive& archive) const override;
  void serialize(::torch::serialize::InputArchive& archive) override;
};

// Of the whole optimizer: options of the core by the same names, and the path.
struct Settings {
  Element moments = Element::f32;         // or bf16; f64 parameters always have f64 moments
  Rounding rounding = Rounding::nearest;  // of bf16 parameters
  Nonfinite nonfinite = Nonfinite::propagate;
  double update_rms_clip = 0;  // RMS of u per tensor at most this; 0 is off
  std::uint64_t seed = 0;      // of random decays and stochastic rounding
  bool generic = false;        // ATen operations for all tensors

  // Those of the core; ranges and help are there.
  static constexpr auto fields() {
    return std::tuple{Choice{"moments", &Settings::moments, {}}, Choice{"rounding", &Settings::rounding, {}},
                      Choice{"nonfinite", &Settings::nonfinite, {}},
                      Field{"update_rms_clip", &Settings::update_rms_clip, kNonnegative, {}},
                      Field{"seed", &Settings::seed, cautious::Options::kSeed, {}}};
  }
};

// A piece of a parameter's state: "m", "v", "low" (split rounding) or "x0" (anchor), on the parameter's device.
struct StateTensor {
  std::string name;
  at::Tensor tensor;  // aliases the state
};

class Optimizer : public ::torch::optim::Optimizer {
 public:
  using Named = ::torch::OrderedDict<std::string, at::Tensor>;

  // One group. Parameters given without names are called "0", "1", ...
  explicit Optimizer(std::vector<at::Tensor> parameters, Options defaults = {}, Settings settings = {});
  explicit Optimizer(const Named& parameters, Options defaults = {}, Settings settings = {});
  // Groups as the routing says, each with its recipe, decay switch and learning rate times lr_multiplier.
  Optimizer(const Named& parameters, const Routing& routing, double lr, Settings settings = {});
  // Groups of your own; those without options get the defaults.
  explicit Optimizer(std::vector<::torch::optim::OptimizerParamGroup> groups, Options defaults = {}, Settings settings = {});
  ~Optimizer() override;

  // One step of every parameter that has a gradient. A closure is called first, with gradients enabled.
  at::Tensor step(LossClosure closure = nullptr) override;

  // Of the last step: one entry per parameter in the order of the groups, and the total.
  const StepReport& report() const;
  // Names in the report's order.
  const std::vector<std::string>& names() const;

  // For a program that keeps the state in a format of its own; parameters are counted in the report's order.
  std::vector<StateTensor> state_of(std::size_t parameter);
  std::int64_t steps_of(std::size_t parameter);
  void set_steps(std::size_t parameter, std::int64_t t);

  // torch::save and torch::load. Loading checks names, shapes, types and recipes first and changes nothing unless all fit;
  // continuing is then bitwise the same as never having stopped.
  void save(::torch::serialize::OutputArchive& archive) const override;
  void load(::torch::serialize::InputArchive& archive) override;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace cautious::torch
