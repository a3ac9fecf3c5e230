// Language models: a Transformer, a stream of tokens, and windows of the validation text.
#include "train/task.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "data/sampler.h"
#include "model/evaluate.h"
#include "model/family.h"
#include "run/run_data.h"

namespace cautious::train {
namespace {

std::span<std::int64_t> row_of(const at::Tensor& rows, std::int64_t row) {
  const std::int64_t length = rows.size(1);
  return {rows.data_ptr<std::int64_t>() + row * length, static_cast<std::size_t>(length)};
}

std::int64_t count_targets(const at::Tensor& target) {
  const std::int64_t* values = target.data_ptr<std::int64_t>();
  return std::count_if(values, values + target.numel(), [](std::int64_t value) { return value >= 0; });
}

class TextTask : public Task {
 public:
  TextTask(const run::RunConfig& config, run::RunData data)
      : config_(config),
        data_(std::move(data)),
        length_(run::sequence_length(config)),
        evaluation_{
            &data_.corpus.validation,
            data::fixed_windows(data_.corpus.validation, length_, std::max<std::int64_t>(1, config.eval.tokens / length_)),
            length_, data_.tokenizer.lengths()},
        sampler_(data_.corpus.train, length_, config.train.seed),
        model_(std::make_shared<model::Transformer>(config.model.shape, config.train.seed,
                                                    model::RunOptions{.recompute = config.model.recompute})) {}

  ::torch::nn::Module& model() override { return *model_; }
  RunPlan plan() const override { return {data_.corpus.train.size(), data_.corpus.validation.size(), data_.corpus.split}; }
  std::int64_t fingerprint() const override { return data_.corpus.train.fingerprint(); }
  double epochs(std::int64_t steps) const override {
    return static_cast<double>(steps * config_.train.batch_size) / static_cast<double>(sampler_.per_epoch());
  }
  double add_gradients(std::int64_t step) override;
  Evaluation evaluate() override {
    const model::Evaluation found = model::evaluate(*model_, evaluation_, config_.train.batch_size / config_.train.grad_accum);
    return {{found.loss, found.bits_per_byte, found.accuracy}, found.targets};
  }
  void describe(const std::filesystem::path& folder) const override {
    base::write_atomically(folder / "config.json", model::to_config_json(config_.model.shape, data_.tokenizer.document_end()));
    base::write_atomically(folder / "tokenizer.json", data_.tokenizer.to_json());
  }
  void finish(const std::filesystem::path&) const override {}
  std::vector<std::string> notices() override { return {}; }

 private:
  run::RunConfig config_;
  run::RunData data_;
  std::int64_t length_;
  model::EvaluationSet evaluation_;
  data::Sampler sampler_;
  std::shared_ptr<model::Transformer> model_;
};

// The chunks' losses weigh as their targets: whatever the chunks, the gradient is that of the mean over the whole batch.
double TextTask::add_gradients(std::int64_t step) {
  const std::int64_t batch = config_.train.batch_size, chunk = batch / config_.train.grad_accum;
  const at::Tensor tokens = at::empty({batch, length_}, at::kLong), target = at::empty({batch, length_}, at::kLong);
  for (std::int64_t row = 0; row < batch; ++row) {
    sampler_.sequence(step * batch + row, row_of(tokens, row), row_of(target, row));
  }
  const std::int64_t all = count_targets(target);
  if (all == 0) {
    throw Error(Fault::data, fmt::format("step {}: none of its {} tokens has a target, because each ends a document; "
                                         "remove empty documents from the data",
                                         step + 1, target.numel()));
  }
  double loss = 0;
  for (std::int64_t first = 0; first < batch; first += chunk) {
    const at::Tensor chunk_target = target.narrow(0, first, chunk);
    const std::int64_t targets = count_targets(chunk_target);
    if (targets == 0) continue;
    const at::Tensor chunk_loss = model_->loss(tokens.narrow(0, first, chunk), chunk_target);
    const double weight = static_cast<double>(targets) / static_cast<double>(all);
    loss += weight * chunk_loss.item<double>();
    if (!std::isfinite(loss)) return loss;
    (targets == all ? chunk_loss : chunk_loss * weight).backward();
  }
  return loss;
}

}  // namespace

std::unique_ptr<Task> make_text_task(const run::RunConfig& config, const Progress& progress) {
  return std::make_unique<TextTask>(config, run::open_data(config, progress));
}

}  // namespace cautious::train
