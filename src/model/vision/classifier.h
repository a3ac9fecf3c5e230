// The image classifiers of config.h as libtorch modules.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>

#include <torch/nn/module.h>

#include "model/ops/ops.h"
#include "model/vision/config.h"

namespace cautious::model {

class Classifier : public ::torch::nn::Module {
 public:
  // images [N, channels, size, size], best in channels-last memory -> logits [N, classes]. In training mode batches are
  // normalized by their own statistics, which move the running ones, and layers are skipped at random.
  virtual at::Tensor logits(const at::Tensor& images) = 0;

  const ImageModel& config() const { return config_; }
  // Which layers the next logits() skips is a function of this key alone.
  void set_random(std::uint64_t key) { random_ = key; }

 protected:
  explicit Classifier(ImageModel config) : config_(std::move(config)) {}
  std::uint64_t random_key() const { return random_; }
  // Throws an Error unless they are such images.
  void check_images(const at::Tensor& images) const;

 private:
  ImageModel config_;
  std::uint64_t random_ = 0;
};

// Parameters from `seed` alone, each from its name; on the CPU, in f32 or f64. Path::plain: the same in ATen operations, the
// oracle and what the benchmark compares with.
std::shared_ptr<Classifier> make_classifier(const ImageModel& config, std::uint64_t seed, ops::Path path = ops::Path::fused,
                                            at::ScalarType type = at::kFloat);

// Mean over the images whose label is not -1 of the cross-entropy with the target: `share` of label and the rest of other, all
// of it smoothed: (1 - smoothing) target + smoothing / classes. label and other int64 [N], share [N].
at::Tensor image_loss(const at::Tensor& logits, const at::Tensor& label, const at::Tensor& other, const at::Tensor& share,
                      double smoothing);

}  // namespace cautious::model
