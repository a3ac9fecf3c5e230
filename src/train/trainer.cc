#include "train/trainer.h"

#include <algorithm>
#include <cmath>
#include <span>

#include <ATen/ops/empty.h>
#include <ATen/ops/norm.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "model/weights.h"

namespace cautious::train {
namespace {

Options optimizer_options(const run::RunConfig& config) {
  Options options = config.optimizer.options;
  options.nonfinite = Nonfinite::skip;
  options.seed = config.train.seed;
  options.threads = config.train.threads;
  return options;
}

std::span<std::int64_t> row_of(const at::Tensor& rows, std::int64_t row) {
  const std::int64_t length = rows.size(1);
  return {rows.data_ptr<std::int64_t>() + row * length, static_cast<std::size_t>(length)};
}

std::int64_t count_targets(const at::Tensor& target) {
  const std::int64_t* values = target.data_ptr<std::int64_t>();
  return std::count_if(values, values + target.numel(), [](std::int64_t value) { return value >= 0; });
}

}  // namespace

Trainer::Trainer(const run::RunConfig& config, const data::Stream& stream)
    : config_(config),
      length_(run::sequence_length(config)),
      schedule_(schedule_of(config)),
      decay_schedule_(run::decay_schedule_of(config)),
      sampler_(stream, length_, config.train.seed),
      model_(std::make_shared<model::Transformer>(config.model.shape, config.train.seed,
                                                  model::RunOptions{.recompute = config.model.recompute})),
      optimizer_(routing_of(config), optimizer_options(config)) {
  for (const auto& item : model_->named_parameters()) {
    const at::Tensor& parameter = item.value();
    optimizer_.add<float>(item.key(), parameter.sizes().vec(), parameter.data_ptr<float>(), nullptr);
    parameters_.push_back(parameter);
    names_.push_back(item.key());
  }
  followed_ = followed_run(config, names_);
}

double Trainer::epochs() const {
  return static_cast<double>(done_ * config_.train.batch_size) / static_cast<double>(sampler_.per_epoch());
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

// The parts' losses weigh as their targets: whatever the parts, the gradient is that of the mean over the whole batch.
double Trainer::accumulate_gradients() {
  const std::int64_t batch = config_.train.batch_size, part = batch / config_.train.grad_accum;
  const at::Tensor tokens = at::empty({batch, length_}, at::kLong), target = at::empty({batch, length_}, at::kLong);
  for (std::int64_t row = 0; row < batch; ++row) {
    sampler_.sequence(done_ * batch + row, row_of(tokens, row), row_of(target, row));
  }
  for (at::Tensor& parameter : parameters_) parameter.mutable_grad().reset();
  const std::int64_t all = count_targets(target);
  if (all == 0) {
    throw Error(Fault::data, fmt::format("step {}: none of its {} tokens has a target, as every one ends a document; leave "
                                         "empty documents out of the data",
                                         done_ + 1, target.numel()));
  }
  double loss = 0;
  for (std::int64_t first = 0; first < batch; first += part) {
    const at::Tensor part_target = target.narrow(0, first, part);
    const std::int64_t targets = count_targets(part_target);
    if (targets == 0) continue;
    const at::Tensor part_loss = model_->loss(tokens.narrow(0, first, part), part_target);
    const double weight = static_cast<double>(targets) / static_cast<double>(all);
    loss += weight * part_loss.item<double>();
    if (!std::isfinite(loss)) return loss;
    (targets == all ? part_loss : part_loss * weight).backward();
  }
  return loss;
}

TrainStep Trainer::step() {
  const std::int64_t number = done_ + 1;
  const double lr = lr_at(schedule_, number);
  const double factor =
      followed_ ? followed_->decay_factor(number, lr, optimizer_, parameters_) : decay_factor_at(decay_schedule_, number);
  TrainStep result{accumulate_gradients(), lr, config_.optimizer.recipe.weight_decay * factor, nullptr};
  if (!std::isfinite(result.loss)) return result;
  std::vector<at::Tensor> gradients;  // alive until the step is done
  for (std::size_t i = 0; i < parameters_.size(); ++i) {
    const at::Tensor& gradient = parameters_[i].grad();
    gradients.push_back(gradient.defined() ? gradient.contiguous() : gradient);
    optimizer_.bind(i, parameters_[i].data_ptr<float>(), gradient.defined() ? gradients.back().data_ptr<float>() : nullptr);
  }
  result.report = &optimizer_.step({.lr = lr, .lr_max = schedule_.lr, .decay_factor = factor});
  if (!result.report->skipped) done_ = number;
  return result;
}

void Trainer::save(const std::filesystem::path& folder) const {
  base::write_safetensors(folder / "model.safetensors", model::weights_of(*model_), {{"format", "pt"}});
  optimizer_.save(folder / "optimizer.safetensors");
}

void Trainer::load(const std::filesystem::path& folder, std::int64_t done) {
  model::load_weights(*model_, folder / "model.safetensors");
  optimizer_.load(folder / "optimizer.safetensors");
  done_ = done;
}

}  // namespace cautious::train
