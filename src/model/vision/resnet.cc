// The residual network: convolutions, each with its batch norm, in blocks around which their input is led. The convolutions are
// oneDNN's: the bits of the gradients by their weights depend on the number of threads, all else does not.
#include <cstdint>
#include <vector>

#include <ATen/ops/adaptive_avg_pool2d.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/max_pool2d.h>
#include <c10/core/GradMode.h>

#include "model/vision/parts.h"
#include "model/vision/stages.h"

namespace cautious::model {
namespace {

// A convolution and its norm.
struct ConvNorm {
  std::int64_t kernel, stride;
  at::Tensor weight;
  ops::BatchNorm norm;
  at::Tensor batches;  // how many the running statistics have seen
};

class ResNet final : public Classifier {
 public:
  ResNet(const ResNetConfig& config, std::uint64_t seed, ops::Path path, at::ScalarType type);
  at::Tensor logits(const at::Tensor& images) override;

 private:
  struct ResNetBlock {
    std::vector<ConvNorm> branch, shortcut;  // the latter of one or none
  };
  at::Tensor run(const ConvNorm& layer, const at::Tensor& x, const at::Tensor& added, ops::Then then) const;
  at::Tensor run(const ResNetBlock& block, const at::Tensor& x) const;

  ResNetConfig config_;
  ops::Path path_;
  ConvNorm stem_;
  std::vector<ResNetBlock> blocks_;
  at::Tensor weight_, bias_;  // of the last layer
};

ResNet::ResNet(const ResNetConfig& config, std::uint64_t seed, ops::Path path, at::ScalarType type)
    : Classifier(config), config_(config), path_(path) {
  const Named all = register_all(*this, config, seed, type);
  const auto take = [&](const Conv& conv) {
    const auto of_norm = [&](const char* name) { return all.at(conv.norm + name); };
    return ConvNorm{conv.kernel,
                    conv.stride,
                    all.at(conv.name + ".weight"),
                    {of_norm(".weight"), of_norm(".bias"), of_norm(".running_mean"), of_norm(".running_var")},
                    of_norm(".num_batches_tracked")};
  };
  stem_ = take(stem_of(config));
  for (const Residual& residual : residuals_of(config)) {
    ResNetBlock& block = blocks_.emplace_back();
    for (const Conv& conv : residual.branch) block.branch.push_back(take(conv));
    if (residual.shortcut) block.shortcut.push_back(take(*residual.shortcut));
  }
  weight_ = all.at("fc.weight");
  bias_ = all.at("fc.bias");
}

at::Tensor ResNet::run(const ConvNorm& layer, const at::Tensor& x, const at::Tensor& added, ops::Then then) const {
  const std::int64_t stride = layer.stride, padding = layer.kernel / 2;
  const at::Tensor made = at::conv2d(x, layer.weight, {}, {stride, stride}, {padding, padding});
  if (is_training()) {
    const at::NoGradGuard guard;
    layer.batches.add_(1);
  }
  return ops::batch_norm(made, layer.norm, added, then, is_training(), path_);
}

at::Tensor ResNet::run(const ResNetBlock& block, const at::Tensor& x) const {
  at::Tensor y = x;
  for (std::size_t i = 0; i + 1 < block.branch.size(); ++i) y = run(block.branch[i], y, {}, ops::Then::relu);
  const at::Tensor around = block.shortcut.empty() ? x : run(block.shortcut.front(), x, {}, ops::Then::nothing);
  return run(block.branch.back(), y, around, ops::Then::relu);
}

at::Tensor ResNet::logits(const at::Tensor& images) {
  check_images(images);
  at::Tensor x = path_ == ops::Path::fused ? images.contiguous(at::MemoryFormat::ChannelsLast) : images;
  x = run(stem_, x, {}, ops::Then::relu);
  if (config_.stem == Stem::imagenet) x = at::max_pool2d(x, {3, 3}, {2, 2}, {1, 1});
  for (const ResNetBlock& block : blocks_) x = run(block, x);
  return at::linear(at::adaptive_avg_pool2d(x, {1, 1}).flatten(1), weight_, bias_);
}

}  // namespace

std::shared_ptr<Classifier> make_resnet(const ResNetConfig& config, std::uint64_t seed, ops::Path path, at::ScalarType type) {
  return std::make_shared<ResNet>(config, seed, path, type);
}

}  // namespace cautious::model
