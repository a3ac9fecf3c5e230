// The vision transformer: patches as tokens, layers with the norm before each half, one row classified at the end.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include <ATen/TensorOperators.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/conv2d.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/linear.h>
#include <ATen/ops/zeros.h>
#include <fmt/format.h>

#include "base/hash.h"
#include "model/vision/parts.h"

namespace cautious::model {
namespace {

struct Affine {
  at::Tensor weight, bias;
};

Affine affine_of(const Named& all, const std::string& name) { return {all.at(name + ".weight"), all.at(name + ".bias")}; }

// A layer's two halves; each may be left out for some of the images.
struct VitLayer {
  Affine norm1, qkv, proj, norm2, fc1, fc2;
  double skipped;  // fraction of the images
};

// Sines and cosines of the row's number in the first half of a token's entries, of the column's in the second; zeros for the
// class token. [tokens, width].
at::Tensor sincos_positions(const VitConfig& c, at::ScalarType type) {
  const std::int64_t side = c.image_size / c.patch, quarter = c.width / 4, extra = c.pool == Pool::token ? 1 : 0;
  at::Tensor table = at::zeros({side * side + extra, c.width}, at::TensorOptions(at::kDouble));
  auto* const to = table.data_ptr<double>();
  for (std::int64_t token = 0; token < side * side; ++token) {
    double* const entry = to + (token + extra) * c.width;
    for (std::int64_t i = 0; i < quarter; ++i) {
      const double frequency = std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(quarter));
      const double row = static_cast<double>(token / side) * frequency, column = static_cast<double>(token % side) * frequency;
      entry[i] = std::sin(row), entry[quarter + i] = std::cos(row);
      entry[2 * quarter + i] = std::sin(column), entry[3 * quarter + i] = std::cos(column);
    }
  }
  return table.to(type);
}

class Vit final : public Classifier {
 public:
  Vit(const VitConfig& config, std::uint64_t seed, ops::Path path, at::ScalarType type);
  at::Tensor logits(const at::Tensor& images) override;

 private:
  at::Tensor embedded(const at::Tensor& images) const;
  at::Tensor factors(std::int64_t images, double skipped, std::uint64_t branch) const;
  at::Tensor with_branch(const at::Tensor& x, const at::Tensor& inner, const Affine& last, double skipped,
                         std::uint64_t branch) const;
  at::Tensor run(const VitLayer& layer, std::uint64_t number, const at::Tensor& x) const;

  VitConfig config_;
  ops::Path path_;
  at::Tensor token_, positions_;
  Affine patches_, norm_, head_;
  std::vector<VitLayer> layers_;
};

Vit::Vit(const VitConfig& config, std::uint64_t seed, ops::Path path, at::ScalarType type)
    : Classifier(config), config_(config), path_(path) {
  const Named all = register_all(*this, config, seed, type);
  const bool with_token = config.pool == Pool::token;
  if (with_token) token_ = all.at("cls_token");
  positions_ = config.positions == Positions::learned ? all.at("pos_embed") : sincos_positions(config, type).unsqueeze(0);
  patches_ = affine_of(all, "patch_embed.proj");
  norm_ = affine_of(all, with_token ? "norm" : "fc_norm");
  head_ = affine_of(all, "head");
  const auto last = static_cast<double>(std::max<std::int64_t>(1, config.layers - 1));
  for (std::int64_t number = 0; number < config.layers; ++number) {
    const auto take = [&](const char* name) { return affine_of(all, fmt::format("blocks.{}.{}", number, name)); };
    layers_.push_back({take("norm1"), take("attn.qkv"), take("attn.proj"), take("norm2"), take("mlp.fc1"), take("mlp.fc2"),
                       config.drop_path * static_cast<double>(number) / last});
  }
}

// [N, tokens, width]. A convolution whose stride is its size is a product with the patches, each a row.
at::Tensor Vit::embedded(const at::Tensor& images) const {
  const std::int64_t count = images.size(0), p = config_.patch, side = config_.image_size / p;
  at::Tensor x;
  if (path_ == ops::Path::fused) {
    const at::Tensor cut = images.reshape({count, config_.channels, side, p, side, p}).permute({0, 2, 4, 1, 3, 5});
    const at::Tensor rows = cut.reshape({count, side * side, config_.channels * p * p});
    x = ops::linear(rows, patches_.weight.flatten(1), patches_.bias, path_);
  } else {
    x = at::conv2d(images, patches_.weight, patches_.bias, {p, p}).flatten(2).transpose(1, 2);
  }
  if (token_.defined()) x = at::cat({token_.expand({count, 1, config_.width}), x}, 1);
  return x + positions_.to(x.device());
}

// 0 for the images that skip a branch; for the others so much that the mean stays. [N, 1, 1].
at::Tensor Vit::factors(std::int64_t images, double skipped, std::uint64_t branch) const {
  const std::uint64_t key = base::mix64(random_key() + base::kGolden * (branch + 1));
  at::Tensor made = at::empty({images, 1, 1}, at::TensorOptions(at::kDouble));
  for (std::int64_t i = 0; i < images; ++i) {
    const std::uint64_t bits = base::mix64(key + base::kGolden * (static_cast<std::uint64_t>(i) + 1));
    const bool kept = static_cast<double>(bits >> 11U) * 0x1p-53 >= skipped;
    made.data_ptr<double>()[i] = kept ? 1 / (1 - skipped) : 0;
  }
  return made.to(patches_.weight.options().requires_grad(false));
}

// x and the branch that ends with this product.
at::Tensor Vit::with_branch(const at::Tensor& x, const at::Tensor& inner, const Affine& last, double skipped,
                            std::uint64_t branch) const {
  if (!is_training() || skipped == 0) return ops::linear_onto(x, inner, last.weight, last.bias, path_);
  return x + ops::linear(inner, last.weight, last.bias, path_) * factors(x.size(0), skipped, branch);
}

at::Tensor Vit::run(const VitLayer& layer, std::uint64_t number, const at::Tensor& x) const {
  const std::int64_t size = config_.width / config_.heads;
  const ops::AttentionShape shape{.heads = config_.heads,
                                  .kv_heads = config_.heads,
                                  .head_size = size,
                                  .scale = 1 / std::sqrt(static_cast<double>(size)),
                                  .causal = false};
  const auto normed = [&](const at::Tensor& of, const Affine& by) {
    return ops::layer_norm(of, by.weight, by.bias, config_.norm_eps, path_);
  };
  const at::Tensor qkv = ops::linear(normed(x, layer.norm1), layer.qkv.weight, layer.qkv.bias, path_);
  at::Tensor attended = ops::self_attention(qkv, shape, path_), rows = x;
  if (path_ == ops::Path::fused && config_.pool == Pool::token && number + 1 == layers_.size()) {
    attended = attended.narrow(1, 0, 1);  // of the last layer only the class token's row is looked at
    rows = x.narrow(1, 0, 1);
  }
  const at::Tensor sum = with_branch(rows, attended, layer.proj, layer.skipped, 2 * number);
  const at::Tensor hidden = ops::linear_gelu(normed(sum, layer.norm2), layer.fc1.weight, layer.fc1.bias, path_);
  return with_branch(sum, hidden, layer.fc2, layer.skipped, 2 * number + 1);
}

at::Tensor Vit::logits(const at::Tensor& images) {
  check_images(images);
  at::Tensor x = embedded(images);
  for (std::size_t number = 0; number < layers_.size(); ++number) x = run(layers_[number], number, x);
  const at::Tensor row = config_.pool == Pool::token ? x.select(1, 0) : x.mean(1);
  return at::linear(ops::layer_norm(row, norm_.weight, norm_.bias, config_.norm_eps, path_), head_.weight, head_.bias);
}

}  // namespace

std::shared_ptr<Classifier> make_vit(const VitConfig& config, std::uint64_t seed, ops::Path path, at::ScalarType type) {
  return std::make_shared<Vit>(config, seed, path, type);
}

}  // namespace cautious::model
