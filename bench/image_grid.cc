// Two classifiers side by side, as in train_grid.cc, and the loader by itself.
#include "bench/image_grid.h"

#include <memory>

#include <ATen/Parallel.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>
#include <torch/optim/adamw.h>

#include <cautious/torch.h>

#include "base/hash.h"
#include "bench/rounds.h"
#include "data/images/loader.h"
#include "model/vision/classifier.h"

namespace cautious::bench {
namespace {

// What a step learns from.
struct ImageInputs {
  at::Tensor images, label, share;
};

using MakeOptimizer = std::unique_ptr<::torch::optim::Optimizer> (*)(model::Classifier&);

class ImageSide {
 public:
  ImageSide(const model::ImageModel& config, model::ops::Path path, MakeOptimizer make)
      : model_(model::make_classifier(config, 1, path)), optimizer_(make(*model_)) {}

  void step(const ImageInputs& in) {
    const auto start = Clock::now();
    optimizer_->zero_grad();
    model::image_loss(model_->logits(in.images), in.label, in.label, in.share, 0).backward();
    optimizer_->step();
    seconds.push_back(seconds_since(start));
  }

  std::vector<double> seconds;

 private:
  std::shared_ptr<model::Classifier> model_;
  std::unique_ptr<::torch::optim::Optimizer> optimizer_;
};

std::unique_ptr<::torch::optim::Optimizer> our_optimizer(model::Classifier& model) {
  torch::Options options(1e-3);
  options.recipe.decay = Cautious{};
  return std::make_unique<torch::Optimizer>(model.named_parameters(), options);
}

std::unique_ptr<::torch::optim::Optimizer> plain_optimizer(model::Classifier& model) {
  return std::make_unique<::torch::optim::AdamW>(model.parameters(), ::torch::optim::AdamWOptions(1e-3).weight_decay(0.1));
}

// Images of random pixels in memory, so that only the augmentation takes time.
class RandomImages final : public data::ImageSet {
 public:
  explicit RandomImages(const model::ImageModel& config) : channels_(model::channels(config)) {
    const std::int64_t size = model::image_size(config);
    for (std::int64_t number = 0; number < kCount; ++number) {
      data::Image& image = images_.emplace_back(data::Image{.height = size, .width = size, .channels = channels_});
      std::uint64_t state = static_cast<std::uint64_t>(number) << 32U;
      for (std::int64_t i = 0; i < size * size * channels_; ++i)
        image.pixels.push_back(static_cast<std::uint8_t>(base::mix64(++state)));
    }
  }

  std::int64_t size() const override { return kCount; }
  std::int64_t label(std::int64_t index) const override { return index % 2; }
  const std::vector<std::string>& classes() const override { return classes_; }
  std::int64_t channels() const override { return channels_; }
  void read(std::int64_t index, data::Image& image) const override { image = images_[static_cast<std::size_t>(index)]; }
  std::string name(std::int64_t index) const override { return fmt::format("image {}", index); }
  std::int64_t fingerprint() const override { return 0; }

 private:
  static constexpr std::int64_t kCount = 256;
  std::int64_t channels_;
  std::vector<data::Image> images_;
  std::vector<std::string> classes_{"even", "odd"};
};

// Batches that one worker prepares in half a second: window of the padded image, flip, two operations of RandAugment, erasing.
double loader_speed(const model::ImageModel& config, std::int64_t batch) {
  const RandomImages set(config);
  data::LoaderSpec spec;
  spec.view = {model::image_size(config), data::normalization_of(set)};
  spec.augment.crop = data::Crop::pad;
  spec.augment.flip = 0.5;
  spec.augment.randaugment = 2;
  spec.augment.erase = 0.25;
  spec.batch = batch;
  data::Loader loader(set, spec);
  loader.batch(0);
  const auto start = Clock::now();
  std::int64_t number = 0;
  do loader.batch(++number);
  while (number < 4 || seconds_since(start) < 0.5);
  return static_cast<double>(number * batch) / seconds_since(start);
}

}  // namespace

void run_image_grid(const ModelGrid& grid, const std::function<void(const std::string&)>& begin,
                    const std::function<void(const ImageRow&)>& done) {
  at::set_num_threads(grid.threads);
  for (const std::string& name : grid.presets) {
    const model::ImageModel config = model::image_preset(name);
    const std::int64_t size = model::image_size(config);
    ImageRow row{.preset = name, .batch = size > 64 ? 8 : 128, .threads = grid.threads};
    begin(fmt::format("{}, batch {}", name, row.batch));
    const at::Tensor images = at::randn({row.batch, model::channels(config), size, size});
    const at::Tensor label = at::randint(model::classes(config), {row.batch}, at::kLong), share = at::ones({row.batch});
    const ImageInputs ours{images.contiguous(at::MemoryFormat::ChannelsLast), label, share}, plain{images, label, share};
    ImageSide fused(config, model::ops::Path::fused, our_optimizer), usual(config, model::ops::Path::plain, plain_optimizer);
    std::vector<double> ratio;
    for (int round = -1; round < grid.rounds; ++round) {  // the first warms up
      fused.step(ours);
      usual.step(plain);
      if (round >= 0) ratio.push_back(usual.seconds.back() / fused.seconds.back());
    }
    fused.seconds.erase(fused.seconds.begin());
    usual.seconds.erase(usual.seconds.begin());
    const auto count = static_cast<double>(row.batch);
    row.images_per_s = count / median(fused.seconds);
    row.plain_images_per_s = count / median(usual.seconds);
    row.speedup = median(ratio);
    row.loader_images_per_s = loader_speed(config, row.batch);
    row.gflops = model::size_of(config, row.batch).flops_per_image * row.images_per_s / 1e9;
    done(row);
  }
}

}  // namespace cautious::bench
