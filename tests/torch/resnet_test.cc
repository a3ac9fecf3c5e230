// The residual network against a naive one in double precision, the two paths against each other, running statistics, first
// values.
#include <cmath>
#include <map>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include "classifier_fixture.h"

namespace cautious {
namespace resnet_test {

using fixture::images;
using fixture::shake;
using model::ops::Path;

model::ResNetConfig tiny(model::Block block, model::Stem stem) {
  model::ResNetConfig c;
  c.image_size = stem == model::Stem::small ? 7 : 21;
  c.channels = 2, c.classes = 3, c.width = 5, c.blocks = {2, 1};
  c.block = block, c.stem = stem;
  return c;
}

std::map<std::string, model::ResNetConfig> configs() {
  return {{"basic", tiny(model::Block::basic, model::Stem::small)},
          {"bottleneck", tiny(model::Block::bottleneck, model::Stem::imagenet)}};
}

// [N][C][H][W] numbers.
struct Maps {
  std::int64_t n, c, h, w;
  std::vector<double> data;
  Maps(std::int64_t n_, std::int64_t c_, std::int64_t h_, std::int64_t w_)
      : n(n_), c(c_), h(h_), w(w_), data(static_cast<std::size_t>(n_ * c_ * h_ * w_)) {}
  double& at(std::int64_t i, std::int64_t j, std::int64_t y, std::int64_t x) {
    return data[static_cast<std::size_t>(((i * c + j) * h + y) * w + x)];
  }
  double get(std::int64_t i, std::int64_t j, std::int64_t y, std::int64_t x, double outside = 0) const {
    if (y < 0 || x < 0 || y >= h || x >= w) return outside;
    return data[static_cast<std::size_t>(((i * c + j) * h + y) * w + x)];
  }
};

// The model once more in loops; batch statistics, and what the running ones become.
class Naive {
 public:
  Naive(const model::Classifier& model, const model::ResNetConfig& config) : c_(config) {
    for (const auto& item : model.named_parameters()) keep(item.key(), item.value());
    for (const auto& item : model.named_buffers()) keep(item.key(), item.value());
  }

  std::vector<double> logits(const at::Tensor& images, bool training) {
    Maps x(images.size(0), images.size(1), images.size(2), images.size(3));
    const at::Tensor dense = images.contiguous();
    x.data.assign(dense.data_ptr<double>(), dense.data_ptr<double>() + dense.numel());
    const bool large = c_.stem == model::Stem::imagenet;
    x = conv("conv1", "bn1", x, large ? 2 : 1, training);
    relu(x);
    if (large) x = pool(x);
    for (std::size_t stage = 0; stage < c_.blocks.size(); ++stage)
      for (int block = 0; block < static_cast<int>(c_.blocks[stage]); ++block) {
        const std::string at = "layer" + std::to_string(stage + 1) + "." + std::to_string(block) + ".";
        const std::int64_t stride = stage > 0 && block == 0 ? 2 : 1;
        const bool deep = c_.block == model::Block::bottleneck;
        Maps y = conv(at + "conv1", at + "bn1", x, deep ? 1 : stride, training);
        relu(y);
        y = conv(at + "conv2", at + "bn2", y, deep ? stride : 1, training);
        if (deep) {
          relu(y);
          y = conv(at + "conv3", at + "bn3", y, 1, training);
        }
        if (all_.count(at + "downsample.0.weight")) x = conv(at + "downsample.0", at + "downsample.1", x, stride, training);
        for (std::size_t i = 0; i < y.data.size(); ++i) y.data[i] += x.data[i];
        relu(y);
        x = y;
      }
    std::vector<double> result;
    for (std::int64_t n = 0; n < x.n; ++n)
      for (std::int64_t k = 0; k < c_.classes; ++k) {
        double sum = all_.at("fc.bias")[k].item<double>();
        for (std::int64_t j = 0; j < x.c; ++j) {
          double mean = 0;
          for (std::int64_t p = 0; p < x.h * x.w; ++p) mean += x.get(n, j, p / x.w, p % x.w) / static_cast<double>(x.h * x.w);
          sum += all_.at("fc.weight")[k][j].item<double>() * mean;
        }
        result.push_back(sum);
      }
    return result;
  }

  std::map<std::string, std::vector<double>> running;  // after a batch

 private:
  void keep(const std::string& name, const at::Tensor& tensor) { all_[name] = tensor.detach().clone(); }
  static void relu(Maps& x) {
    for (double& v : x.data) v = v > 0 ? v : 0;
  }
  static Maps pool(const Maps& x) {
    Maps y(x.n, x.c, (x.h + 1) / 2, (x.w + 1) / 2);
    for (std::int64_t n = 0; n < y.n; ++n)
      for (std::int64_t j = 0; j < y.c; ++j)
        for (std::int64_t a = 0; a < y.h; ++a)
          for (std::int64_t b = 0; b < y.w; ++b) {
            double best = -1;  // inputs are not negative
            for (std::int64_t u = -1; u <= 1; ++u)
              for (std::int64_t v = -1; v <= 1; ++v) best = std::max(best, x.get(n, j, 2 * a + u, 2 * b + v, -1));
            y.at(n, j, a, b) = best;
          }
    return y;
  }
  Maps conv(const std::string& name, const std::string& norm, const Maps& x, std::int64_t stride, bool training) {
    const at::Tensor weight = all_.at(name + ".weight");
    const std::int64_t k = weight.size(2), pad = k / 2, out = weight.size(0);
    const double* w = weight.data_ptr<double>();
    Maps y(x.n, out, (x.h + 2 * pad - k) / stride + 1, (x.w + 2 * pad - k) / stride + 1);
    for (std::int64_t n = 0; n < y.n; ++n)
      for (std::int64_t o = 0; o < out; ++o)
        for (std::int64_t a = 0; a < y.h; ++a)
          for (std::int64_t b = 0; b < y.w; ++b) {
            double sum = 0;
            for (std::int64_t j = 0; j < x.c; ++j)
              for (std::int64_t u = 0; u < k; ++u)
                for (std::int64_t v = 0; v < k; ++v)
                  sum += w[((o * x.c + j) * k + u) * k + v] * x.get(n, j, a * stride + u - pad, b * stride + v - pad);
            y.at(n, o, a, b) = sum;
          }
    const double count = static_cast<double>(y.n * y.h * y.w);
    for (std::int64_t o = 0; o < out; ++o) {
      const auto number = [&](const char* of) { return all_.at(norm + of)[o].item<double>(); };
      double mean = number(".running_mean"), variance = number(".running_var");
      if (training) {
        double sum = 0, squares = 0;
        for (std::int64_t n = 0; n < y.n; ++n)
          for (std::int64_t p = 0; p < y.h * y.w; ++p) sum += y.get(n, o, p / y.w, p % y.w);
        const double batch_mean = sum / count;
        for (std::int64_t n = 0; n < y.n; ++n)
          for (std::int64_t p = 0; p < y.h * y.w; ++p) squares += std::pow(y.get(n, o, p / y.w, p % y.w) - batch_mean, 2);
        running[norm + ".running_mean"].push_back(0.9 * mean + 0.1 * batch_mean);
        running[norm + ".running_var"].push_back(0.9 * variance + 0.1 * squares / (count - 1));
        mean = batch_mean, variance = squares / count;
      }
      for (std::int64_t n = 0; n < y.n; ++n)
        for (std::int64_t p = 0; p < y.h * y.w; ++p) {
          double& v = y.at(n, o, p / y.w, p % y.w);
          v = (v - mean) / std::sqrt(variance + 1e-5) * number(".weight") + number(".bias");
        }
    }
    return y;
  }

  model::ResNetConfig c_;
  std::map<std::string, at::Tensor> all_;
};

TEST(ResNet, BothPathsAreTheNaiveModel) {
  for (const auto& [name, config] : configs()) {
    for (const Path path : {Path::plain, Path::fused}) {
      const auto model = model::make_classifier(config, 3, path, at::kDouble);
      shake(*model);
      const at::Tensor x = images(config, 3, at::kDouble);
      for (const bool training : {true, false}) {  // the second time with the statistics of the first
        model->train(training);
        Naive naive(*model, config);
        std::vector<double> expected = naive.logits(x, training);
        EXPECT_LE(fixture::distance(model->logits(x), at::from_blob(expected.data(), {3, config.classes}, at::kDouble)), 1e-11)
            << name << training;
        for (const auto& item : model->named_buffers()) {
          if (item.key().ends_with("num_batches_tracked")) {
            EXPECT_EQ(item.value().item<std::int64_t>(), 1);
          } else if (training) {
            std::vector<double> moved = naive.running.at(item.key());
            EXPECT_LE(fixture::distance(item.value(), at::from_blob(moved.data(), {std::int64_t(moved.size())}, at::kDouble)),
                      1e-12)
                << name << " " << item.key();
          }
        }
      }
    }
  }
}

TEST(ResNet, TheFusedPathIsThePlainOne) {
  for (const auto& [name, config] : configs()) {
    for (const bool training : {true, false}) {
      for (const auto& [type, tolerance] : {std::pair{at::kDouble, 1e-11}, std::pair{at::kFloat, 1e-4}}) {
        const auto run = [&, &c = config, of = type](Path path) {
          const auto model = model::make_classifier(c, 3, path, of);
          shake(*model);
          model->train(training);
          return fixture::passed(*model, images(c, 4, of));
        };
        const auto plain = run(Path::plain), fused = run(Path::fused);
        EXPECT_LE(fixture::distance(fused[0], plain[0]), tolerance) << name;
        for (std::size_t i = 1; i < plain.size(); ++i) {
          EXPECT_LE(fixture::distance(fused[i], plain[i], 1e-2), 10 * tolerance) << name << " " << i;
          EXPECT_TRUE(fused[i].is_contiguous());
        }
      }
    }
  }
}

TEST(ResNet, OneStepHasTheSameBitsAgain) {
  const auto run = [](int threads) {
    at::set_num_threads(threads);
    model::ResNetConfig config;
    config.image_size = 28, config.channels = 1, config.width = 8, config.blocks = {1, 1, 1};
    const auto model = model::make_classifier(config, 3);
    std::vector<at::Tensor> all = fixture::passed(*model, images(config, 6, at::kFloat));
    for (const at::Tensor& b : model->buffers()) all.push_back(b);
    return all;
  };
  const int before = at::get_num_threads();
  const auto first = run(2), again = run(2);
  at::set_num_threads(before);
  for (std::size_t i = 0; i < first.size(); ++i) EXPECT_TRUE(fixture::same_bits(first[i], again[i])) << i;
}

TEST(ResNet, FirstValues) {
  const model::ImageModel config = model::image_preset("resnet-20");
  const auto model = model::make_classifier(config, 7), again = model::make_classifier(config, 7);
  for (const auto& item : model->named_parameters()) {
    const at::Tensor& x = item.value();
    const std::string& name = item.key();
    EXPECT_TRUE(fixture::same_bits(x, *again->named_parameters().find(name)));
    if (x.dim() == 4) {
      const auto expected = std::sqrt(2.0 / static_cast<double>(x.size(0) * x.size(2) * x.size(3)));
      EXPECT_NEAR(x.std(false).item<double>() / expected, 0.987, 0.07) << name;
    } else if (name.starts_with("fc.")) {
      EXPECT_LE(x.abs().max().item<double>(), 0.125);
      EXPECT_GE(x.abs().max().item<double>(), 0.09);
    } else {
      EXPECT_EQ(x.min().item<double>(), name.ends_with("weight") ? 1 : 0);
      EXPECT_EQ(x.max().item<double>(), name.ends_with("weight") ? 1 : 0);
    }
  }
  for (const auto& item : model->named_buffers())
    EXPECT_EQ(item.value().sum().item<double>(),
              item.key().ends_with("running_var") ? static_cast<double>(item.value().numel()) : 0);
}

}  // namespace resnet_test
}  // namespace cautious
