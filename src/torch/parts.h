// The inside of a torch Optimizer: parameter groups with their fused core, parameters with the state of the ATen path.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <cautious/torch.h>

namespace cautious {

namespace kernels {
struct GridDevice;
}

// aten_step.cc, the path of tensors that are not plain CPU memory.
namespace aten {

// State of one parameter; all tensors have its shape, row after row, and its device. Undefined: the recipe has none.
struct State {
  std::int64_t t = 0;
  at::Tensor m = {}, v = {}, low = {}, x0 = {};
};

// As spec.md, section 2: moments are zeros, the anchor is the parameter's value.
State begin(const at::Tensor& parameter, const Recipe& recipe, const torch::Settings& settings);

// What one step of a parameter does.
struct Move {
  const std::string& name;
  const Recipe& recipe;
  DecaySwitch decay;
  double lr, wd;  // wd is coupled; under selective the factor before r
  const torch::Settings& settings;
};

// One step of one parameter. The report's numbers stay on the device: decayed, active, nonfinite, x2, g2, u2, budget, in f64.
at::Tensor step(State& state, const at::Tensor& parameter, const at::Tensor& gradient, const Move& move);

}  // namespace aten

namespace torch {

// One parameter as it was when it was added, and its state where the fused core does not hold it.
struct Entry {
  std::string name;
  at::Tensor tensor;
  std::vector<std::int64_t> shape;
  at::ScalarType type;
  at::Device device;
  bool fused;
  Element gradient;        // type the core expects
  std::size_t slot = 0;    // in the core
  bool on_grid = false;    // grid_step.cc instead of aten_step.cc
  aten::State state = {};  // unless fused
};

struct ParamGroup {
  Recipe recipe;  // as when the group was added
  DecaySwitch decay = DecaySwitch::on;
  double highest_lr = 0;  // seen so far
  std::vector<Entry> entries = {};
  std::shared_ptr<cautious::Optimizer> core = {};  // shared while sync() decides
  int threads = 0;                                 // of the core
};

// What a group does in this step.
struct Rates {
  double lr = 0;
  double highest_lr = 0;
  double wd = 0;  // coupled; under selective the factor before r
};

struct Optimizer::Parts {
  Settings settings;
  std::vector<ParamGroup> groups = {};
  std::vector<std::string> names = {};
  StepReport report = {};

  // Takes in groups and parameters that are new, whose state and anchor begin now (add_param_group does not tell us, so that is
  // at the next step, save or load); throws, with nothing changed, if known ones are no longer what they were.
  void sync(const std::vector<::torch::optim::OptimizerParamGroup>& given, const std::vector<std::string>& new_names = {});
  void step(const std::vector<::torch::optim::OptimizerParamGroup>& given);
};

// register.cc
std::vector<::torch::optim::OptimizerParamGroup> checked(std::vector<::torch::optim::OptimizerParamGroup> groups,
                                                         const std::vector<std::string>& names = {});
const Options& options_of(const ::torch::optim::OptimizerParamGroup& group, std::size_t index);
Options& options_of(::torch::optim::OptimizerParamGroup& group, std::size_t index);
Element element_of_type(at::ScalarType type);
// The gradient, checked against the parameter; undefined if there is none.
at::Tensor gradient_of(const Entry& entry);

// fused.cc
// The tensor's values row after row: itself if they lie like that already.
at::Tensor row_after_row(const at::Tensor& tensor);
// The values moved by a step, back into the tensor that row_after_row() took them from.
void store_back(const at::Tensor& moved, const at::Tensor& tensor);
// Throws an Error if a setting is out of range.
Settings checked(Settings settings);
// Makes the group's core anew, with the state of the old one, if parameters were added or types of gradients or the number of
// threads have changed. gradients: one per entry.
void prepare_core(ParamGroup& group, const Settings& settings, const std::vector<at::Tensor>& gradients);
void step_fused(ParamGroup& group, const Rates& rates, const std::vector<at::Tensor>& gradients, std::vector<Tally>& tallies);

// grid_step.cc
// What launches grids on this device; null if this build has nothing for it.
const kernels::GridDevice* grid_device(const at::Device& device);
// Whether a grid can take the steps of this parameter, wherever it is.
bool fits_grid(const Entry& entry, const ParamGroup& group, const Settings& settings);
// One step of the entries `moving`, all on one device. The report's numbers stay there: a row for each, as of aten::step.
at::Tensor step_on_grid(ParamGroup& group, const std::vector<std::size_t>& moving, const Rates& rates,
                        const std::vector<at::Tensor>& gradients, const Settings& settings, const kernels::GridDevice& grid);

// Of a parameter, in either path.
std::vector<StateTensor> pieces_of(ParamGroup& group, Entry& entry);
std::int64_t steps_of(const ParamGroup& group, const Entry& entry);
void set_steps(ParamGroup& group, Entry& entry, std::int64_t t);

}  // namespace torch
}  // namespace cautious
