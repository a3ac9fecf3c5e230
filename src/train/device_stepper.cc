// Parameters on a device: cautious::torch takes the steps.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>

#include <ATen/TensorOperators.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/isfinite.h>
#include <ATen/ops/sum.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/torch.h>

#include "base/safetensors.h"
#include "train/device.h"
#include "train/stepper.h"

namespace cautious::train {
namespace {

// Whole tensors are dealt to the ranks, the largest first. What crosses between ranks goes through memory unless NCCL has it.
class DeviceStepper final : public Stepper {
 public:
  DeviceStepper(const run::RunConfig& config, const Parameters& parameters, ranks::World& world);

  std::vector<Slice> slices(std::size_t parameter) const override;
  const Group& group_of(std::size_t parameter) const override { return routing_.groups[groups_[parameter]]; }
  void set_density(std::size_t parameter, double) override {
    throw Error(Fault::usage, fmt::format("the density of '{}' cannot be set on {}; train.device must be cpu",
                                          parameters_.names[parameter], parameters_.tensors[parameter].device().str()));
  }
  const StepReport& step(const StepInput& input, const std::vector<at::Tensor>& gradients) override;
  std::int64_t bytes() const override;
  void save(const std::filesystem::path& file) override;
  void load(const std::filesystem::path& file) override;

 private:
  bool is_own(std::size_t parameter) const { return owners_[parameter] == world_.rank(); }
  void survey(const std::vector<at::Tensor>& gradients);
  void exchange_tallies();
  void exchange_values();
  Optimizer in_memory() const;
  template <class Body>
  void each_piece(std::size_t parameter, const Optimizer& core, const Body& body);

  run::RunConfig config_;
  Parameters parameters_;
  ranks::World& world_;
  Routing routing_;
  std::vector<std::size_t> groups_;
  std::vector<int> owners_;
  std::vector<std::size_t> place_;  // of an own parameter in the report of `own_`
  std::unique_ptr<torch::Optimizer> own_;
  StepReport report_;
};

DeviceStepper::DeviceStepper(const run::RunConfig& config, const Parameters& parameters, ranks::World& world)
    : config_(config),
      parameters_(parameters),
      world_(world),
      routing_(routing_of(config)),
      owners_(parameters.names.size()),
      place_(parameters.names.size()) {
  const std::size_t count = parameters.names.size();
  std::vector<std::size_t> order(count);
  std::vector<std::int64_t> held(static_cast<std::size_t>(world.ranks()));
  for (std::size_t i = 0; i < count; ++i) order[i] = i;
  std::ranges::stable_sort(order, std::greater{}, [&](std::size_t i) { return parameters.tensors[i].numel(); });
  for (const std::size_t i : order) {
    const auto least = std::ranges::min_element(held);
    owners_[i] = static_cast<int>(least - held.begin());
    *least += parameters.tensors[i].numel();
  }
  torch::Optimizer::Named named;
  for (std::size_t i = 0; i < count; ++i) {
    const at::IntArrayRef shape = parameters.tensors[i].sizes();
    groups_.push_back(route(routing_, parameters.names[i], {shape.data(), shape.size()}));
    if (is_own(i)) named.insert(parameters.names[i], parameters.tensors[i]);
  }
  const Options options = options_of(config, world);
  const torch::Settings settings{.moments = options.moments,
                                 .rounding = options.rounding,
                                 .update_rms_clip = options.update_rms_clip,
                                 .seed = options.seed};
  own_ = std::make_unique<torch::Optimizer>(named, routing_, config.optimizer.lr, settings);
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < own_->names().size(); ++i) places[own_->names()[i]] = i;
  for (std::size_t i = 0; i < count; ++i) {
    if (is_own(i)) place_[i] = places.at(parameters.names[i]);
  }
}

std::vector<Slice> DeviceStepper::slices(std::size_t parameter) const {
  const auto count = static_cast<std::size_t>(parameters_.tensors[parameter].numel());
  std::vector<Slice> all(static_cast<std::size_t>(world_.ranks()));
  for (std::size_t r = 0; r < all.size(); ++r) {
    const auto owner = static_cast<std::size_t>(owners_[parameter]);
    all[r] = {r > owner ? count : 0, r >= owner ? count : 0};
  }
  return all;
}

void DeviceStepper::exchange_tallies() {
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < owners_.size(); ++i) pieces.push_back({owners_[i], &report_.tensors[i], sizeof(Tally)});
  world_.exchange(pieces);
  report_.total = {};
  for (const Tally& tally : report_.tensors) report_.total += tally;
}

void DeviceStepper::exchange_values() {
  if (world_.ranks() == 1) return;
  const at::Device device = parameters_.tensors.front().device();
  if (world_.travels_on(device) == device) return world_.exchange(parameters_.tensors, owners_);
  std::vector<at::Tensor> copies;
  std::vector<Piece> pieces;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    const at::Tensor& copy = copies.emplace_back(parameters_.tensors[i].detach().to(at::kCPU, false, true).contiguous());
    pieces.push_back({owners_[i], copy.data_ptr(), copy.nbytes()});
  }
  world_.exchange(pieces);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (!is_own(i)) parameters_.tensors[i].detach().copy_(copies[i]);
  }
}

// Squares and non-finite entries of the gradients, as given.
void DeviceStepper::survey(const std::vector<at::Tensor>& gradients) {
  report_.tensors.assign(owners_.size(), {});
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (!is_own(i) || !gradients[i].defined()) continue;
    const at::Tensor wide = gradients[i].to(at::kDouble);
    report_.tensors[i].g2 = (wide * wide).sum().item<double>();
    report_.tensors[i].nonfinite = at::isfinite(wide).logical_not().sum().item<std::int64_t>();
  }
  exchange_tallies();
}

const StepReport& DeviceStepper::step(const StepInput& input, const std::vector<at::Tensor>& gradients) {
  survey(gradients);
  report_.skipped = report_.total.nonfinite > 0;
  report_.clip_scale = 1;
  if (report_.skipped) return report_;
  const double norm = std::sqrt(report_.total.g2), clip = config_.optimizer.options.grad_clip;
  if (clip > 0 && norm > clip) report_.clip_scale = clip / norm;
  std::vector<double> squares;
  for (const Tally& tally : report_.tensors) squares.push_back(tally.g2);
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (!is_own(i)) continue;
    at::Tensor gradient = gradients[i];
    if (gradient.defined() && report_.clip_scale != 1) gradient = gradient * report_.clip_scale;
    parameters_.tensors[i].mutable_grad() = gradient.defined() ? gradient.to(parameters_.tensors[i].scalar_type()) : gradient;
  }
  auto& groups = own_->param_groups();
  for (std::size_t g = 0; g < groups.size(); ++g) {
    auto& of_group = static_cast<torch::Options&>(groups[g].options());
    of_group.lr = input.lr * routing_.groups[g].lr_multiplier;
    of_group.lr_max = input.lr_max * routing_.groups[g].lr_multiplier;
    of_group.decay_factor = input.decay_factor;
  }
  if (!own_->names().empty()) own_->step();
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (is_own(i)) report_.tensors[i] = own_->report().tensors[place_[i]];
    report_.tensors[i].g2 = squares[i];
  }
  exchange_tallies();
  exchange_values();
  report_.step += 1;
  settle(parameters_.tensors.front().device());
  return report_;
}

std::int64_t DeviceStepper::bytes() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (!is_own(i)) continue;
    for (const torch::StateTensor& piece : own_->state_of(place_[i])) sum += piece.tensor.nbytes();
  }
  return static_cast<std::int64_t>(sum);
}

// An optimizer with the same parameters in memory, for what is in files.
Optimizer DeviceStepper::in_memory() const {
  Parameters copies{parameters_.names, {}};
  for (const at::Tensor& tensor : parameters_.tensors) copies.tensors.push_back(tensor.detach().cpu());
  return make_core(config_, copies, world_);
}

// body(device, memory, entry): of every piece of every parameter's state the tensor on the device, undefined unless this rank
// has it, this rank's slice in the core's memory with where that begins, and the bytes of an entry.
template <class Body>
void DeviceStepper::each_piece(std::size_t parameter, const Optimizer& core, const Body& body) {
  const std::vector<StateTensor> slices = core.state(parameter);
  const std::vector<torch::StateTensor> own =
      is_own(parameter) ? own_->state_of(place_[parameter]) : std::vector<torch::StateTensor>(slices.size());
  const auto count = static_cast<std::size_t>(parameters_.tensors[parameter].numel());
  const Slice slice = core.slices(parameter)[static_cast<std::size_t>(world_.rank())];
  for (std::size_t k = 0; k < slices.size(); ++k) {
    const std::size_t entry = base::bits_of_type(slices[k].type) / 8;
    std::vector<std::byte> all(count * entry);
    const std::span part(all.data() + (slices[k].name == "x0" ? 0 : slice.first * entry), slices[k].bytes);
    body(own[k].tensor, slices[k], all, part);
  }
}

void DeviceStepper::save(const std::filesystem::path& file) {
  Optimizer core = in_memory();
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    std::int64_t steps = is_own(i) ? own_->steps_of(place_[i]) : 0;
    const Piece number{owners_[i], &steps, sizeof steps};
    world_.exchange({&number, 1});
    core.set_steps(i, steps);
    each_piece(i, core, [&](const at::Tensor& own, const StateTensor& kept, std::vector<std::byte>& all, auto part) {
      if (own.defined()) {
        const at::Tensor copy = own.cpu().contiguous();
        std::memcpy(all.data(), copy.data_ptr(), all.size());
      }
      const Piece piece{owners_[i], all.data(), all.size()};
      world_.exchange({&piece, 1});
      std::ranges::copy(part, static_cast<std::byte*>(kept.data));
    });
  }
  core.save(file);
}

void DeviceStepper::load(const std::filesystem::path& file) {
  Optimizer core = in_memory();
  core.load(file);
  const at::NoGradGuard no_grad;
  for (std::size_t i = 0; i < owners_.size(); ++i) {
    if (is_own(i)) own_->set_steps(place_[i], core.steps_of(i));
    each_piece(i, core, [&](const at::Tensor& own, const StateTensor& kept, std::vector<std::byte>& all, auto part) {
      std::memcpy(part.data(), kept.data, part.size());
      std::vector<Piece> pieces;
      const std::size_t entry = all.size() / std::max<std::size_t>(1, static_cast<std::size_t>(parameters_.tensors[i].numel()));
      for (std::size_t r = 0; r < core.slices(i).size() && part.size() < all.size(); ++r) {
        const Slice slice = core.slices(i)[r];
        pieces.push_back({static_cast<int>(r), all.data() + slice.first * entry, (slice.last - slice.first) * entry});
      }
      world_.exchange(pieces);
      if (!own.defined()) return;
      at::Tensor copy = at::empty(own.sizes(), own.options().device(at::kCPU));
      std::memcpy(copy.data_ptr(), all.data(), all.size());
      own.copy_(copy);
    });
  }
}

}  // namespace

std::unique_ptr<Stepper> make_device_stepper(const run::RunConfig& config, const Parameters& parameters, ranks::World& world) {
  return std::make_unique<DeviceStepper>(config, parameters, world);
}

}  // namespace cautious::train
