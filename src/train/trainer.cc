// One step: gradients, update, average; and what shows that a run has gone wrong.
#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <variant>

#include <ATen/ops/abs.h>
#include <ATen/ops/lerp.h>
#include <ATen/ops/norm.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "model/weights.h"

namespace cautious::train {
namespace {

Options optimizer_options(const run::RunConfig& config, ranks::World& world) {
  Options options = config.optimizer.options;
  options.share = world.share();
  options.nonfinite = Nonfinite::skip;
  options.seed = config.train.seed;
  options.threads = config.train.threads;
  return options;
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
  base::write_safetensors(file, model::weights_of(model_), {{"format", "pt"}});
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
      optimizer_(routing_of(config), optimizer_options(config, world)) {
  for (const auto& item : task.model().named_parameters()) {
    const at::Tensor& parameter = item.value();
    optimizer_.add<float>(item.key(), parameter.sizes().vec(), parameter.data_ptr<float>(), nullptr);
    parameters_.push_back(parameter);
    names_.push_back(item.key());
  }
  reference_ = reference_run(config, names_);
  if (config.train.ema > 0) average_.emplace(task.model(), config.train.ema);
  if (world.ranks() == 1) return;
  std::vector<std::vector<Slice>> slices;
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    slices.emplace_back(optimizer_.slices(i).begin(), optimizer_.slices(i).end());
  }
  gradients_.emplace(world, parameters_, std::move(slices));
}

std::int64_t Trainer::optimizer_bytes() const {
  std::size_t sum = 0;
  for (std::size_t i = 0; i < optimizer_.size(); ++i) {
    for (const StateTensor& piece : optimizer_.state(i)) sum += piece.bytes;
  }
  return static_cast<std::int64_t>(sum);
}

double Trainer::rms() const {
  double squares = 0, count = 0;
  for (const at::Tensor& parameter : parameters_) {
    const double norm = parameter.detach().norm(2, at::kDouble).item<double>();
    squares += norm * norm;
    count += static_cast<double>(parameter.numel());
  }
  return std::sqrt(squares / count);
}

// Sets the densities of step `number` and returns the factors.
run::ReferenceRun::Amounts Trainer::follow(std::int64_t number, const StepInput& input) {
  const auto decays = [&](std::size_t i) {
    const Group& group = optimizer_.group_of(i);
    return group.decay == DecaySwitch::on && !std::holds_alternative<None>(group.recipe.decay);
  };
  std::vector<run::OwnDecay> own(parameters_.size());
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const Group& group = optimizer_.group_of(i);
    const double lr = input.lr * group.lr_multiplier, peak = input.lr_max * group.lr_multiplier;
    if (!decays(i) || lr <= 0) continue;
    own[i].strength = lr * coupled_weight_decay(group.recipe.coupling, group.recipe.weight_decay, lr, peak);
    own[i].sum = parameters_[i].detach().abs().sum(at::kDouble).item<double>();
  }
  run::ReferenceRun::Amounts amounts = reference_->follow(number, own);
  if (config_.optimizer.density_from.empty()) return amounts;
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (decays(i)) optimizer_.set_density(i, amounts.densities[i]);
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
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  if (gradients_) gradients_->begin(config_.train.grad_accum);
  const double own_loss = task_.add_gradients(done_);
  if (gradients_) gradients_->finish();
  TrainStep result{0, lr, config_.optimizer.recipe.weight_decay * factor, nullptr};
  for (const double loss : world_.gather(own_loss)) result.loss += loss;
  if (!std::isfinite(result.loss)) return result;
  task_.join();
  std::vector<at::Tensor> gradients;  // alive until the step is done
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].grad();
    gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
    optimizer_.bind(i, parameters_[i].data_ptr<float>(), gradient.defined() ? gradients.back().data_ptr<float>() : nullptr);
  }
  result.report = &optimizer_.step(input);
  if (result.report->skipped) return result;
  done_ = number;
  if (average_) average_->update(done_);
  return result;
}

Evaluation Trainer::evaluate() {
  if (average_) average_->exchange();
  Evaluation result = task_.evaluate();
  if (average_) average_->exchange();
  return result;
}

std::vector<Score> Trainer::score(const std::filesystem::path& directory, const std::function<void(double fraction)>& show) {
  if (average_) average_->exchange();
  std::vector<Score> scores = task_.score(directory, show);
  if (average_) average_->exchange();
  return scores;
}

void Trainer::save(const std::filesystem::path& folder) {
  if (world_.first()) {
    base::write_safetensors(folder / task_.weights_file(), model::weights_of(task_.model()), {{"format", "pt"}});
    if (average_) average_->save(folder / model::kAveraged);
  }
  optimizer_.save(folder / "optimizer.safetensors");
}

void Trainer::load(const std::filesystem::path& folder, std::int64_t done) {
  if (world_.first()) {
    model::load_weights(task_.model(), folder / task_.weights_file());
    if (average_) average_->load(folder / model::kAveraged);
  }
  std::vector<Piece> pieces;
  const auto add = [&](const at::Tensor& tensor) { pieces.push_back({0, tensor.data_ptr(), tensor.nbytes()}); };
  for (const at::Tensor& parameter : parameters_) add(parameter);
  for (const at::Tensor& buffer : task_.model().buffers()) add(buffer);
  if (average_) std::ranges::for_each(average_->values(), add);
  world_.exchange(pieces);
  optimizer_.load(folder / "optimizer.safetensors");
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

std::string fault_of(const Evaluation& evaluation) {
  const bool well = evaluation.count == 0 || std::isfinite(evaluation.loss());
  return well ? "" : "the validation loss is " + not_finite(evaluation.loss());
}

}  // namespace cautious::train
