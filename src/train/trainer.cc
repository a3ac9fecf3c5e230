// One step: gradients, update, average; and what shows that a run has gone wrong.
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <ATen/ops/abs.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/sum.h>
#include <c10/core/GradMode.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "model/weights.h"

namespace cautious::train {
namespace {

Parameters parameters_of(const ::torch::nn::Module& model) {
  Parameters all;
  for (const auto& item : model.named_parameters()) {
    all.names.push_back(item.key());
    all.tensors.push_back(item.value());
  }
  return all;
}

// What the first rank has, to all.
void send_from_first(const std::vector<at::Tensor>& tensors, ranks::World& world) {
  if (world.ranks() == 1) return;
  const at::NoGradGuard no_grad;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor copy = tensor.detach().cpu().contiguous();
    const Piece piece{0, copy.data_ptr(), copy.nbytes()};
    world.exchange({&piece, 1});
    tensor.detach().copy_(copy);
  }
}

std::string not_finite(double number) { return std::isnan(number) ? "not a number" : "infinite"; }

}  // namespace

std::optional<run::ReferenceRun> reference_run(const run::RunConfig& config, const std::vector<std::string>& tensors) {
  const bool density = !config.optimizer.density_from.empty();
  const std::string& from = density ? config.optimizer.density_from : config.optimizer.budget_from;
  if (from.empty()) return std::nullopt;
  using What = run::ReferenceRun::What;
  run::ReferenceRun reference(density ? What::density : What::budget, from, tensors);
  if (reference.steps() < steps_of(config)) {
    throw Error(Fault::data,
                fmt::format("{}: its decay trace has {} steps, this run has {}", from, reference.steps(), steps_of(config)));
  }
  return reference;
}

Average::Average(::torch::nn::Module& model, double decay) : model_(model), decay_(decay) {
  for (const at::Tensor& parameter : model.parameters()) values_.push_back(parameter.detach());
  for (const at::Tensor& buffer : model.buffers()) {
    if (buffer.is_floating_point()) values_.push_back(buffer);
  }
  for (const at::Tensor& value : values_) average_.push_back(value.clone());
}

void Average::update(std::int64_t step) {
  const auto t = static_cast<double>(step);
  const double kept = std::min(decay_, (1 + t) / (10 + t));
  for (std::size_t i = 0; i < values_.size(); ++i) average_[i].lerp_(values_[i], 1 - kept);
}

void Average::exchange() {
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const at::Tensor value = values_[i].clone();
    values_[i].copy_(average_[i]);
    average_[i].copy_(value);
  }
}

void Average::save(const std::filesystem::path& file) {
  exchange();
  model::save_weights(model_, file);
  exchange();
}

void Average::load(const std::filesystem::path& file) {
  exchange();
  model::load_weights(model_, file);
  exchange();
}

Trainer::Trainer(const run::RunConfig& config, Task& task, ranks::World& world)
    : config_(config),
      task_(task),
      world_(world),
      schedule_(schedule_of(config)),
      decay_schedule_(run::decay_schedule_of(config)),
      parameters_(parameters_of(task.model())),
      optimizer_(make_stepper(config, parameters_, world)),
      reference_(reference_run(config, parameters_.names)) {
  if (config.train.ema > 0) average_.emplace(task.model(), config.train.ema);
  if (world.ranks() == 1) return;
  std::vector<std::vector<Slice>> slices;
  for (std::size_t i = 0; i < parameters_.tensors.size(); ++i) slices.push_back(optimizer_->slices(i));
  gradients_.emplace(world, parameters_.tensors, std::move(slices));
}

double Trainer::rms() const {
  double squares = 0, count = 0;
  for (const at::Tensor& parameter : parameters_.tensors) {
    const double norm = parameter.detach().to(at::kFloat).norm(2, at::kDouble).item<double>();
    squares += norm * norm;
    count += static_cast<double>(parameter.numel());
  }
  return std::sqrt(squares / count);
}

// Sets the densities of step `number` and returns the factors.
run::ReferenceRun::Amounts Trainer::follow(std::int64_t number, const StepInput& input) {
  const auto decays = [&](std::size_t i) {
    const Group& group = optimizer_->group_of(i);
    return group.decay == DecaySwitch::on && !std::holds_alternative<None>(group.recipe.decay);
  };
  std::vector<run::OwnDecay> own(parameters_.tensors.size());
  for (std::size_t i = 0; i < own.size(); ++i) {
    const Group& group = optimizer_->group_of(i);
    const double lr = input.lr * group.lr_multiplier, peak = input.lr_max * group.lr_multiplier;
    if (!decays(i) || lr <= 0) continue;
    own[i].strength = lr * coupled_weight_decay(group.recipe.coupling, group.recipe.weight_decay, lr, peak);
    own[i].sum = parameters_.tensors[i].detach().abs().sum(at::kDouble).item<double>();
  }
  run::ReferenceRun::Amounts amounts = reference_->follow(number, own);
  if (config_.optimizer.density_from.empty()) return amounts;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (decays(i)) optimizer_->set_density(i, amounts.densities[i]);
  }
  return amounts;
}

TrainStep Trainer::step() {
  const std::int64_t number = done_ + 1;
  const double lr = lr_at(schedule_, number);
  StepInput input{.lr = lr, .lr_max = schedule_.lr};
  run::ReferenceRun::Amounts amounts;  // alive until the step is done
  if (reference_) {
    amounts = follow(number, input);
    input.tensor_factors = amounts.factors;
  } else {
    input.decay_factor = decay_factor_at(decay_schedule_, number);
  }
  const double factor = reference_ ? amounts.all : input.decay_factor;
  for (at::Tensor& parameter : parameters_.tensors) parameter.mutable_grad().reset();
  if (gradients_) gradients_->begin(config_.train.grad_accum);
  const double own_loss = task_.add_gradients(done_);
  std::vector<at::Tensor> gradients;
  if (gradients_) {
    gradients = gradients_->finish();
  } else {
    for (const at::Tensor& parameter : parameters_.tensors) gradients.push_back(parameter.grad());
  }
  TrainStep result{0, lr, config_.optimizer.recipe.weight_decay * factor, nullptr};
  for (const double loss : world_.gather(own_loss)) result.loss += loss;
  if (!std::isfinite(result.loss)) return result;
  task_.join();
  result.report = &optimizer_->step(input, gradients);
  if (result.report->skipped) return result;
  done_ = number;
  if (average_) average_->update(done_);
  return result;
}

// Of the average, if there is one.
template <class Look>
auto Trainer::averaged(const Look& look) {
  if (average_) average_->exchange();
  auto result = look();
  if (average_) average_->exchange();
  return result;
}

run::Evaluation Trainer::evaluate() {
  return averaged([&] { return task_.evaluate(); });
}

std::string Trainer::sample() {
  return averaged([&] { return task_.sample(); });
}

std::vector<Score> Trainer::score(const std::filesystem::path& directory, const std::function<void(double fraction)>& show) {
  return averaged([&] { return task_.score(directory, show); });
}

void Trainer::save(const std::filesystem::path& folder) {
  if (world_.first()) {
    model::save_weights(task_.model(), folder / task_.weights_file());
    if (average_) average_->save(folder / model::kAveraged);
  }
  optimizer_->save(folder / "optimizer.safetensors");
}

void Trainer::load(const std::filesystem::path& folder, std::int64_t done) {
  if (world_.first()) {
    model::load_weights(task_.model(), folder / task_.weights_file());
    if (average_) average_->load(folder / model::kAveraged);
  }
  std::vector<at::Tensor> all = parameters_.tensors;
  const std::vector<at::Tensor> buffers = task_.model().buffers();
  all.insert(all.end(), buffers.begin(), buffers.end());
  if (average_) all.insert(all.end(), average_->values().begin(), average_->values().end());
  send_from_first(all, world_);
  optimizer_->load(folder / "optimizer.safetensors");
  done_ = done;
}

std::string fault_of_parameters(double rms, double start) {
  constexpr double kExploded = 1000;
  if (!std::isfinite(rms)) return "parameters are not finite";
  if (start <= 0 || rms <= kExploded * start) return "";
  return fmt::format("the RMS of the parameters is {:.3g}, {:.0f} times that at the start", rms, rms / start);
}

std::string fault_of(const TrainStep& step, double start) {
  if (!std::isfinite(step.loss)) return "the loss is " + not_finite(step.loss);
  if (step.report->skipped) return fmt::format("{} entries of the gradient are not finite", step.report->total.nonfinite);
  return fault_of_parameters(step.report->total.rms_x(), start);
}

std::string fault_of(const run::Evaluation& evaluation) {
  const bool well = evaluation.count == 0 || std::isfinite(evaluation.loss());
  return well ? "" : "the validation loss is " + not_finite(evaluation.loss());
}

}  // namespace cautious::train
