// The operations of image classifiers against loops over numbers in double precision, their gradients against differences and
// the plain path's, and the loss.
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/full.h>
#include <ATen/ops/linspace.h>
#include <ATen/ops/tensor.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "model/vision/classifier.h"
#include "ops_fixture.h"

namespace cautious {
namespace vision_ops_test {

using fixture::Tensors;
using fixture::values;
using model::ops::Path;
namespace ops = model::ops;

TEST(VisionOps, LayerNorm) {
  const std::int64_t rows = 70, d = 19;
  const at::Tensor x = values({rows, d}, 1) + 3, scale = values({d}, 2), bias = values({d}, 3);
  const at::Tensor got = ops::layer_norm(x, scale, bias, 1e-3, Path::fused);
  for (std::int64_t r = 0; r < rows; ++r) {
    double mean = 0, variance = 0;
    for (std::int64_t i = 0; i < d; ++i) mean += x[r][i].item<double>() / static_cast<double>(d);
    for (std::int64_t i = 0; i < d; ++i) variance += std::pow(x[r][i].item<double>() - mean, 2) / static_cast<double>(d);
    for (std::int64_t i = 0; i < d; i += 5)
      EXPECT_NEAR(
          got[r][i].item<double>(),
          (x[r][i].item<double>() - mean) / std::sqrt(variance + 1e-3) * scale[i].item<double>() + bias[i].item<double>(),
          1e-12);
  }
  const auto by = [](Path path) {
    return [path](const Tensors& in) { return ops::layer_norm(in[0], in[1], in[2], 1e-3, path); };
  };
  fixture::expect_gradients(by(Path::fused), {values({3, 7}, 1), values({7}, 2), values({7}, 3)}, "layer_norm");
  fixture::expect_equal(by(Path::fused), by(Path::plain), {x, scale, bias}, 1e-12, "f64");
  fixture::expect_equal(by(Path::fused), by(Path::plain), {x.to(at::kFloat), scale.to(at::kFloat), bias.to(at::kFloat)}, 1e-5,
                        "f32");
  // A mean far from 0 must not swallow the variance.
  const at::Tensor far = (values({5, 64}, 4) * 1e-2 + 1000).to(at::kFloat), one = at::ones({64}), none = at::zeros({64});
  EXPECT_LE(
      fixture::distance(ops::layer_norm(far, one, none, 1e-6, Path::fused),
                        ops::layer_norm(far.to(at::kDouble), one.to(at::kDouble), none.to(at::kDouble), 1e-6, Path::plain)),
      5e-3);
}

TEST(VisionOps, GeluIsExact) {
  std::vector<double> at{-1e30, -40, -13.1, -6, -5.99, -1e-20, 0, 1e-20, 1e-3, 3.91, 3.93, 6, 20, 1e30};
  for (int i = -5000; i <= 5000; ++i) at.push_back(i * 1.3e-3);
  const auto count = static_cast<std::int64_t>(at.size());
  const at::Tensor x = at::from_blob(at.data(), {count}, at::kDouble).clone(), single = x.to(at::kFloat);
  // As the hidden row of a layer whose weight is 1 and bias 0.
  const auto gelu = [](Path path) {
    return [path](const Tensors& in) {
      const at::TensorOptions options = in[0].options().requires_grad(false);
      return ops::linear_gelu(in[0].reshape({-1, 1}), at::ones({1, 1}, options), at::zeros({1}, options), path)
          .view(in[0].sizes());
    };
  };
  const fixture::Outcome outcome = fixture::differentiate(gelu(Path::fused), {single});
  const at::Tensor by = fixture::weights(single);
  for (std::int64_t i = 0; i < count; ++i) {
    const double v = single[i].item<double>(), p = 0.5 * std::erfc(-v / std::sqrt(2.0));
    const double density = std::exp(-v * v / 2) / std::sqrt(2 * std::acos(-1.0));
    EXPECT_NEAR(outcome.value[i].item<double>(), v * p, 3e-7 * std::abs(v)) << v;
    const double weight = by[i].item<double>();
    EXPECT_NEAR(outcome.gradients[0][i].item<double>(), weight * (p + (std::abs(v) < 50 ? v * density : 0)),
                6e-7 * std::abs(weight))
        << v;
  }
  EXPECT_TRUE(std::isnan(gelu(Path::fused)({at::full({3}, std::nan(""))})[1].item<double>()));
  fixture::expect_gradients(gelu(Path::fused), {values({4, 5}, 9)}, "gelu");
  fixture::expect_equal(gelu(Path::fused), gelu(Path::plain), {values({9, 77}, 9)}, 1e-13, "f64");
}

TEST(VisionOps, LinearWithBias) {
  const std::int64_t rows = 205, in = 37, out = 45;
  const Tensors inputs{values({rows, out}, 1), values({5, rows / 5, in}, 2).view({rows, in}), values({out, in}, 3),
                       values({out}, 4)};
  const auto onto = [](Path path) {
    return [path](const Tensors& t) { return ops::linear_onto(t[0], t[1], t[2], t[3], path); };
  };
  const auto alone = [](Path path) { return [path](const Tensors& t) { return ops::linear(t[0], t[1], t[2], path); }; };
  const at::Tensor got = onto(Path::fused)(inputs);
  for (std::int64_t r = 0; r < rows; r += 17)
    for (std::int64_t o = 0; o < out; o += 4) {
      double sum = inputs[0][r][o].item<double>() + inputs[3][o].item<double>();
      for (std::int64_t i = 0; i < in; ++i) sum += inputs[1][r][i].item<double>() * inputs[2][o][i].item<double>();
      EXPECT_NEAR(got[r][o].item<double>(), sum, 1e-12);
    }
  fixture::expect_equal(onto(Path::fused), onto(Path::plain), inputs, 1e-12, "onto");
  fixture::expect_equal(alone(Path::fused), alone(Path::plain), {values({3, 4, 7}, 1), values({6, 7}, 2), values({6}, 3)},
                        1e-12, "three sides");
  const auto curved = [](Path path) { return [path](const Tensors& t) { return ops::linear_gelu(t[0], t[1], t[2], path); }; };
  fixture::expect_equal(curved(Path::fused), curved(Path::plain), {inputs[1], inputs[2], inputs[3]}, 1e-12, "gelu");
  fixture::expect_gradients(curved(Path::fused), {values({2, 3, 4}, 1), values({5, 4}, 2), values({5}, 3)}, "linear_gelu");
  fixture::expect_gradients(alone(Path::fused), {values({2, 3, 4}, 1), values({5, 4}, 2), values({5}, 3)}, "linear");
}

TEST(VisionOps, AttentionToAllKeys) {
  for (const std::int64_t tokens : {std::int64_t{1}, std::int64_t{5}, std::int64_t{50}, std::int64_t{65}, std::int64_t{100}}) {
    const std::int64_t heads = 2, size = 7, width = heads * size;
    const ops::AttentionShape shape{.heads = heads, .kv_heads = heads, .head_size = size, .scale = 0.4, .causal = false};
    const at::Tensor qkv = values({2, tokens, 3 * width}, 8);
    const at::Tensor got = ops::self_attention(qkv, shape, Path::fused);
    for (std::int64_t b = 0; b < 2; ++b)
      for (std::int64_t h = 0; h < heads; ++h)
        for (std::int64_t t = 0; t < tokens; t += 9) {
          const at::Tensor q = qkv[b][t].narrow(0, h * size, size);
          const at::Tensor k = qkv[b].narrow(1, width + h * size, size), v = qkv[b].narrow(1, 2 * width + h * size, size);
          std::vector<double> mixed(static_cast<std::size_t>(size), 0.0);
          double sum = 0;
          for (std::int64_t s = 0; s < tokens; ++s) {
            const double chance = std::exp(0.4 * (q * k[s]).sum().item<double>());
            sum += chance;
            for (std::int64_t i = 0; i < size; ++i) mixed[static_cast<std::size_t>(i)] += chance * v[s][i].item<double>();
          }
          for (std::int64_t i = 0; i < size; ++i)
            EXPECT_NEAR(got[b][t][h * size + i].item<double>(), mixed[static_cast<std::size_t>(i)] / sum, 1e-12);
        }
    const auto by = [&](Path path) { return [&, path](const Tensors& in) { return ops::self_attention(in[0], shape, path); }; };
    fixture::expect_equal(by(Path::fused), by(Path::plain), {qkv}, 1e-12, "f64", 1e-3);
    fixture::expect_equal(by(Path::fused), by(Path::plain), {qkv.to(at::kFloat)}, 1e-5, "f32");
    const auto apart = [&](Path path) {
      return [&, path](const Tensors& in) { return ops::attention(in[0], in[1], in[2], shape, path); };
    };
    const Tensors three{values({2, tokens, width}, 1), values({2, tokens, width}, 2), values({2, tokens, width}, 3)};
    fixture::expect_equal(apart(Path::fused), apart(Path::plain), three, 1e-12, "apart", 1e-3);
  }
  // Grouped heads, rotation and cap, which no classifier here uses, mean the same without the mask.
  const ops::AttentionShape shape{
      .heads = 4, .kv_heads = 2, .head_size = 6, .scale = 0.5, .softcap = 2, .rope = {100}, .causal = false};
  const auto by = [&](Path path) {
    return [&, path](const Tensors& in) { return ops::attention(in[0], in[1], in[2], shape, path); };
  };
  fixture::expect_equal(by(Path::fused), by(Path::plain),
                        {values({2, 55, 24}, 1), values({2, 55, 12}, 2), values({2, 55, 12}, 3)}, 1e-12, "all");
}

struct Norm {
  ops::BatchNorm norm;
  explicit Norm(std::int64_t channels, at::ScalarType type)
      : norm{values({channels}, 1, type), values({channels}, 2, type), values({channels}, 3, type),
             values({channels}, 4, type).abs() + 0.5} {}
};

// Every way of using it, for channel counts that are and are not multiples of a vector.
TEST(VisionOps, BatchNorm) {
  for (const std::int64_t channels : {1, 3, 16, 37}) {
    for (const auto type : {at::kDouble, at::kFloat}) {
      for (const bool training : {true, false}) {
        for (const int form : {0, 1, 2, 3}) {
          const auto then = form % 2 == 0 ? ops::Then::nothing : ops::Then::relu;
          const at::Tensor x = (values({3, channels, 5, 4}, 6) + 2).to(type).contiguous(at::MemoryFormat::ChannelsLast);
          const at::Tensor added = values({3, channels, 5, 4}, 7, type).contiguous(at::MemoryFormat::ChannelsLast);
          std::vector<Norm> used;
          const auto by = [&](Path path) {
            return [&, path](const Tensors& in) {
              used.emplace_back(channels, type);
              const ops::BatchNorm norm{in[1], in[2], used.back().norm.mean, used.back().norm.variance};
              return ops::batch_norm(in[0], norm, form < 2 ? at::Tensor() : in[3], then, training, path);
            };
          };
          const Norm first(channels, type);
          Tensors inputs{x, first.norm.scale, first.norm.bias};
          if (form >= 2) inputs.push_back(added);
          fixture::expect_equal(by(Path::fused), by(Path::plain), inputs, type == at::kDouble ? 1e-11 : 2e-4,
                                std::to_string(channels) + " " + std::to_string(form));
          EXPECT_LE(fixture::distance(used[0].norm.mean, used[1].norm.mean), 1e-6);
          EXPECT_LE(fixture::distance(used[0].norm.variance, used[1].norm.variance), 1e-6);
        }
      }
    }
  }
}

// So many pixels that several threads have some, and a last line that is short.
TEST(VisionOps, BatchNormOfManyPixels) {
  for (const std::int64_t channels : {5, 16, 130}) {
    const Norm first(channels, at::kDouble);
    const auto by = [&](Path path) {
      return [&, path](const Tensors& in) {
        const Norm used(channels, at::kDouble);
        return ops::batch_norm(in[0], {in[1], in[2], used.norm.mean, used.norm.variance}, {}, ops::Then::relu, true, path);
      };
    };
    const at::Tensor x = values({5, channels, 37, 41}, 6).contiguous(at::MemoryFormat::ChannelsLast);
    fixture::expect_equal(by(Path::fused), by(Path::plain), {x, first.norm.scale, first.norm.bias}, 1e-11,
                          std::to_string(channels));
  }
}

TEST(VisionOps, BatchNormOfLoops) {
  const at::Tensor x = values({4, 3, 2, 5}, 6), added = values({4, 3, 2, 5}, 7);
  Norm used(3, at::kDouble);
  const Norm before(3, at::kDouble);
  const at::Tensor got = ops::batch_norm(x, used.norm, added, ops::Then::relu, true, Path::fused);
  for (std::int64_t c = 0; c < 3; ++c) {
    const at::Tensor channel = x.select(1, c).contiguous();
    const double* v = channel.data_ptr<double>();
    double mean = 0, squares = 0;
    for (int i = 0; i < 40; ++i) mean += v[i] / 40;
    for (int i = 0; i < 40; ++i) squares += (v[i] - mean) * (v[i] - mean);
    EXPECT_NEAR(used.norm.mean[c].item<double>(), 0.9 * before.norm.mean[c].item<double>() + 0.1 * mean, 1e-14);
    EXPECT_NEAR(used.norm.variance[c].item<double>(), 0.9 * before.norm.variance[c].item<double>() + 0.1 * squares / 39, 1e-14);
    const at::Tensor expected = (channel - mean) / std::sqrt(squares / 40 + 1e-5) * before.norm.scale[c].item<double>() +
                                before.norm.bias[c].item<double>() + added.select(1, c);
    EXPECT_LE(fixture::distance(got.select(1, c), expected.clamp_min(0)), 1e-13);
  }
  const auto call = [](const Tensors& in) {
    Norm norm(2, at::kDouble);
    return ops::batch_norm(in[0], {in[1], in[2], norm.norm.mean, norm.norm.variance}, in[3], ops::Then::nothing, true,
                           Path::fused);
  };
  fixture::expect_gradients(call, {values({2, 2, 3, 2}, 1), values({2}, 2), values({2}, 3), values({2, 2, 3, 2}, 4)},
                            "batch_norm");
}

// A batch whose mean is far from 0, in f32: variances by a difference of squares would be lost.
TEST(VisionOps, BatchStatisticsAreStable) {
  const at::Tensor x = (values({8, 16, 9, 9}, 6) * 1e-2 + 300).to(at::kFloat).contiguous(at::MemoryFormat::ChannelsLast);
  const Norm single(16, at::kFloat), twice(16, at::kDouble);
  const at::Tensor got = ops::batch_norm(x, single.norm, {}, ops::Then::nothing, true, Path::fused);
  const at::Tensor expected = ops::batch_norm(x.to(at::kDouble), twice.norm, {}, ops::Then::nothing, true, Path::plain);
  EXPECT_LE(fixture::distance(got, expected), 1e-2);
}

TEST(ImageLoss, OfLoops) {
  const std::int64_t count = 6, classes = 4;
  const at::Tensor logits = values({count, classes}, 1);
  const std::vector<std::int64_t> label{0, 3, -1, 2, 1, -1}, other{0, 1, 2, 2, 3, -1};
  const std::vector<double> share{1, 0.25, 0.5, 0.7, 0, 1};
  for (const double smoothing : {0.0, 0.1}) {
    double sum = 0;
    for (std::size_t n = 0; n < 6; ++n) {
      if (label[n] < 0) continue;
      double total = 0;
      for (std::int64_t k = 0; k < classes; ++k) total += std::exp(logits[std::int64_t(n)][k].item<double>());
      for (std::int64_t k = 0; k < classes; ++k) {
        const double target = (k == label[n] ? share[n] : 0) + (k == other[n] ? 1 - share[n] : 0);
        const double smooth = (1 - smoothing) * target + smoothing / static_cast<double>(classes);
        sum -= smooth * (logits[std::int64_t(n)][k].item<double>() - std::log(total));
      }
    }
    const auto loss = [&](const Tensors& in) {
      return model::image_loss(in[0], at::tensor(label), at::tensor(other), at::tensor(share), smoothing);
    };
    EXPECT_NEAR(loss({logits}).item<double>(), sum / 4, 1e-13);
    fixture::expect_gradients(loss, {logits}, "image_loss");
  }
  const at::Tensor none = at::full({count}, -1, at::kLong);
  EXPECT_EQ(model::image_loss(logits, none, none, at::tensor(share), 0.1).item<double>(), 0);
  EXPECT_THROW(model::image_loss(logits, at::tensor(label).narrow(0, 0, 5), at::tensor(other), at::tensor(share), 0), Error);
}

}  // namespace vision_ops_test
}  // namespace cautious
