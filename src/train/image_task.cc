// Image classifiers: a vision transformer or a residual network, batches of augmented images, and the validation images.
#include "train/task.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <numeric>
#include <utility>

#include <ATen/ops/from_blob.h>
#include <ATen/ops/full_like.h>
#include <ATen/ops/stack.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/atomic_file.h"
#include "base/hash.h"
#include "base/text.h"
#include "data/images/loader.h"
#include "model/ops/ops.h"
#include "model/vision/classifier.h"
#include "model/vision/evaluate.h"
#include "run/run_data.h"
#include "train/device.h"

namespace cautious::train {
namespace {

constexpr std::size_t kMistakes = 40;  // that a report shows

RunPlan plan_of(const data::ImageData& data) { return {data.train->size(), data.validation->size(), data.split, {}}; }

class ImageTask : public Task {
 public:
  ImageTask(const run::RunConfig& config, ranks::World& world, data::ImageData data)
      : config_(config),
        world_(world),
        rows_(rows_of(config, world)),
        data_(std::move(data)),
        view_{model::image_size(config.model.image), data::normalization_of(*data_.train)},
        loader_(*data_.train, {.view = view_,
                               .augment = config.augment,
                               .batch = config.train.batch_size,
                               .seed = config.train.seed,
                               .workers = config.data.workers,
                               .most_bad = config.data.most_bad}),
        model_(model::make_classifier(config.model.image, config.train.seed)),
        device_(device_of(config, world)),
        notices_(data_.notices) {
    model_->to(device_);
  }

  ::torch::nn::Module& model() override { return *model_; }
  RunPlan plan() const override { return plan_of(data_); }
  std::int64_t fingerprint() const override { return data_.train->fingerprint(); }
  double epochs(std::int64_t steps) const override {
    return static_cast<double>(steps * config_.train.batch_size) / static_cast<double>(data_.train->size());
  }
  double add_gradients(std::int64_t step) override;
  void join() override;
  run::Evaluation evaluate() override;
  void describe(const std::filesystem::path& folder) const override {
    base::write_atomically(folder / "config.json",
                           model::to_config_json(model::ImageModelFile{config_.model.image, view_.normalization.mean,
                                                                       view_.normalization.deviation, data_.train->classes()}));
  }
  void finish(const std::filesystem::path& directory) const override {
    base::write_atomically(directory / "evaluation.json", model::to_json(last_, *data_.validation, kMistakes));
  }
  std::vector<Score> score(const std::filesystem::path&, const std::function<void(double)>&) override { return {}; }
  std::vector<std::string> notices() override;

 private:
  run::RunConfig config_;
  ranks::World& world_;
  Rows rows_;
  data::ImageData data_;
  data::View view_;
  data::Loader loader_;
  std::shared_ptr<model::Classifier> model_;
  model::ImageEvaluation last_;
  at::Device device_;
  std::vector<std::string> notices_;
  std::size_t bad_ = 0;             // images named so far
  std::int64_t passes_ = 0;         // forward passes of the step
  std::vector<at::Tensor> before_;  // buffers before them, where other ranks make some too
};

// As in text, a chunk weighs as its images that count.
double ImageTask::add_gradients(std::int64_t step) {
  passes_ = 0;
  before_.clear();
  if (world_.ranks() > 1) {
    for (const at::Tensor& buffer : model_->buffers()) before_.push_back(buffer.clone());
  }
  const data::ImageBatch& batch = loader_.batch(step);
  const at::Tensor images = model::images_of(batch, view_.size, model::channels(config_.model.image));
  const auto whole = [&](const std::vector<std::int64_t>& values) {
    return at::from_blob(const_cast<std::int64_t*>(values.data()), {batch.count}, at::kLong);
  };
  const at::Tensor label = whole(batch.label), other = whole(batch.other);
  const at::Tensor share = at::from_blob(const_cast<float*>(batch.share.data()), {batch.count}, at::kFloat);
  const auto readable = [&](std::int64_t first, std::int64_t count) {
    const auto begin = batch.label.begin() + first;
    return std::count_if(begin, begin + count, [](std::int64_t value) { return value >= 0; });
  };
  const std::int64_t all = readable(0, batch.count);
  if (all == 0) throw Error(Fault::data, fmt::format("step {}: none of its {} images can be read", step + 1, batch.count));
  double loss = 0;
  for (std::int64_t first = rows_.first; first < rows_.first + rows_.count; first += rows_.chunk) {
    const std::int64_t count = readable(first, rows_.chunk);
    if (count == 0) continue;
    const auto key = base::mix64(config_.train.seed + base::kGolden) + static_cast<std::uint64_t>(step * batch.count + first);
    model_->set_random(base::mix64(key));
    const auto part = [&](const at::Tensor& tensor) { return tensor.narrow(0, first, rows_.chunk).to(device_); };
    const at::Tensor mean =
        model::image_loss(model_->logits(part(images)), part(label), part(other), part(share), config_.augment.smoothing);
    ++passes_;
    const double weight = static_cast<double>(count) / static_cast<double>(all);
    loss += weight * mean.item<double>();
    if (!std::isfinite(loss)) return loss;
    mean.backward(at::full_like(mean, weight));
  }
  return loss;
}

// A pass moves a running statistic r to (1 - m) r + m s. Where all passes lead in turn follows from where each rank's own led.
void ImageTask::join() {
  if (before_.empty()) return;
  const std::vector<at::Tensor> buffers = model_->buffers();
  std::vector<at::Tensor> of_ranks;  // [ranks, ...] of each buffer
  std::vector<Piece> pieces;
  for (const at::Tensor& buffer : buffers) {
    const at::Tensor all = of_ranks.emplace_back(at::stack(std::vector<at::Tensor>(world_.ranks(), buffer.cpu())));
    for (int rank = 0; rank < world_.ranks(); ++rank) pieces.push_back({rank, all[rank].data_ptr(), all[rank].nbytes()});
  }
  world_.exchange(pieces);
  const std::vector<std::int64_t> passes = world_.gather(passes_);
  for (std::size_t i = 0; i < buffers.size(); ++i) {
    if (!buffers[i].is_floating_point()) {  // how many batches were seen
      buffers[i].copy_(before_[i] + std::accumulate(passes.begin(), passes.end(), std::int64_t{0}));
      continue;
    }
    const at::Tensor before = before_[i].to(at::kCPU, at::kDouble);
    at::Tensor joined = before;
    for (int rank = 0; rank < world_.ranks(); ++rank) {
      const double kept = std::pow(1 - model::ops::kBatchMomentum, passes[static_cast<std::size_t>(rank)]);
      joined = of_ranks[i][rank].to(at::kDouble) + kept * (joined - before);
    }
    buffers[i].copy_(joined);
  }
}

run::Evaluation ImageTask::evaluate() {
  const bool first = last_.images == 0;
  last_ = model::evaluate(*model_, *data_.validation, view_,
                          {.most = config_.eval.images, .workers = config_.data.workers, .share = world_.share()});
  const std::int64_t bad = std::ssize(last_.predictions) - last_.images;
  if (first && bad > 0) notices_.push_back(fmt::format("{} validation images cannot be read and do not count", bad));
  return {{last_.loss, last_.error(), last_.top5_error()}, last_.images};
}

std::vector<std::string> ImageTask::notices() {
  std::vector<std::string> lines = std::exchange(notices_, {});
  const std::vector<std::string> bad = loader_.bad();
  for (; bad_ < bad.size(); ++bad_) lines.push_back(fmt::format("left out an unreadable image: {}", bad[bad_]));
  return lines;
}

}  // namespace

std::unique_ptr<Task> make_image_task(const run::RunConfig& config, ranks::World& world, const Progress& progress) {
  return std::make_unique<ImageTask>(config, world, run::open_image_data(config, progress));
}

RunPlan plan_of_images(const run::RunConfig& config, const Progress& progress) {
  return plan_of(run::open_image_data(config, progress));
}

}  // namespace cautious::train
