// Attention within documents and windows: against a loop in the definition's words, ATen operations with a mask, finite
// differences, and every document by itself.
#include <cmath>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <cautious/error.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/ops/ops.h"
#include "ops_fixture.h"

namespace attention_bounds_test {

using cautious::model::RopeScaling;
using cautious::model::ops::AttentionShape;
using cautious::model::ops::Path;
using fixture::Function;
using fixture::Tensors;
using Lengths = std::vector<std::int64_t>;

struct Case {
  Lengths first, second;  // of the documents of two sequences; empty: no starts
  AttentionShape shape;
  std::int64_t tokens;

  std::string name() const { return fmt::format("T{} {} documents, window {}", tokens, first.size(), shape.window); }
};

// [2, T].
at::Tensor starts_of(const Case& c) {
  if (c.first.empty()) return {};
  std::vector<std::int64_t> values;
  for (const Lengths& lengths : {c.first, c.second}) {
    std::int64_t start = 0;
    for (const std::int64_t length : lengths) {
      values.insert(values.end(), std::size_t(length), start);
      start += length;
    }
  }
  return at::from_blob(values.data(), {2, c.tokens}, at::kLong).clone();
}

Case make(Lengths first, Lengths second, std::int64_t window, AttentionShape shape) {
  std::int64_t tokens = 0;
  for (const std::int64_t length : first) tokens += length;
  shape.window = window;
  return {std::move(first), std::move(second), shape, tokens};
}

Case windowed(std::int64_t tokens, std::int64_t window, AttentionShape shape) {
  shape.window = window;
  return {{}, {}, shape, tokens};
}

// Blocks are of 48 queries, tiles of 6 queries or keys and of 16 keys: boundaries at, before and after their edges.
std::vector<Case> cases() {
  const AttentionShape plain{2, 1, 6, 0.4}, rotated{4, 2, 8, 0.3, 3.0, {100.0}}, wide{1, 1, 20, 0.2, 0, {10.0}};
  std::vector<Case> all{make({1}, {1}, 0, plain),
                        make({1, 1, 1, 1, 1, 1, 1}, {3, 1, 3}, 0, rotated),
                        make({48, 48, 4}, {47, 49, 4}, 0, plain),
                        make({30, 1, 1, 40, 28, 30}, {130}, 0, rotated),
                        make({5, 91, 34}, {6, 12, 16, 32, 64}, 20, wide),
                        make({100, 50}, {20, 130}, 7, plain)};
  for (const std::int64_t window : {1, 2, 6, 16, 17, 47, 48, 49, 69, 70, 1000}) all.push_back(windowed(70, window, rotated));
  all.push_back(windowed(200, 50, wide));
  return all;
}

Tensors inputs(const Case& c, at::ScalarType type) {
  const std::int64_t wide = c.shape.heads * c.shape.head_size, narrow = c.shape.kv_heads * c.shape.head_size;
  return {fixture::values({2, c.tokens, wide}, 1, type), fixture::values({2, c.tokens, narrow}, 2, type),
          fixture::values({2, c.tokens, narrow}, 3, type)};
}

Function path(const Case& c, Path by) {
  return [shape = c.shape, starts = starts_of(c), by](const Tensors& x) {
    return cautious::model::ops::attention(x[0], x[1], x[2], shape, by, starts);
  };
}

// Without rotation and cap, a number at a time.
at::Tensor by_definition(const Case& c, const Tensors& x) {
  const at::Tensor starts = c.first.empty() ? at::zeros({2, c.tokens}, at::kLong) : starts_of(c);
  const std::int64_t size = c.shape.head_size;
  at::Tensor out = at::zeros_like(x[0]);
  const auto q = x[0].accessor<double, 3>(), k = x[1].accessor<double, 3>(), v = x[2].accessor<double, 3>();
  auto o = out.accessor<double, 3>();
  for (std::int64_t b = 0; b < 2; ++b)
    for (std::int64_t h = 0; h < c.shape.heads; ++h)
      for (std::int64_t t = 0; t < c.tokens; ++t) {
        const std::int64_t g = h * c.shape.kv_heads / c.shape.heads;
        double sum = 0;
        for (std::int64_t s = starts[b][t].item<std::int64_t>(); s <= t; ++s) {
          if (c.shape.window > 0 && t - s >= c.shape.window) continue;
          double score = 0;
          for (std::int64_t i = 0; i < size; ++i) score += q[b][t][h * size + i] * k[b][s][g * size + i];
          const double weight = std::exp(c.shape.scale * score);
          sum += weight;
          for (std::int64_t i = 0; i < size; ++i) o[b][t][h * size + i] += weight * v[b][s][g * size + i];
        }
        for (std::int64_t i = 0; i < size; ++i) o[b][t][h * size + i] /= sum;
      }
  return out;
}

TEST(AttentionBounds, IsTheDefinition) {
  for (Case c : cases()) {
    c.shape.softcap = c.shape.rope.base = 0;
    const Tensors x = inputs(c, at::kDouble);
    const at::Tensor expected = by_definition(c, x);
    for (const Path by : {Path::fused, Path::plain}) EXPECT_LE(fixture::distance(path(c, by)(x), expected), 1e-13) << c.name();
  }
}

TEST(AttentionBounds, EqualsPlainOperations) {
  for (const Case& c : cases()) {
    const double least = c.tokens <= 7 || c.shape.window <= 2 ? 1 : 1e-30;  // gradients that cancel to about 0
    fixture::expect_equal(path(c, Path::fused), path(c, Path::plain), inputs(c, at::kDouble), 1e-12, c.name() + " f64", least);
    fixture::expect_equal(path(c, Path::fused), path(c, Path::plain), inputs(c, at::kFloat), 1e-5, c.name() + " f32", least);
  }
}

TEST(AttentionBounds, GradientsAreFiniteDifferences) {
  for (const Case& c : cases())
    if (c.tokens <= 100) fixture::expect_gradients(path(c, Path::fused), inputs(c, at::kDouble), c.name(), 1e-7, 4);
}

// Rotation knows distances alone, so that it does not matter where a document lies.
TEST(AttentionBounds, ADocumentIsAsByItself) {
  for (const Case& c : cases()) {
    const Function packed = path(c, Path::fused);
    const Tensors x = inputs(c, at::kDouble);
    const fixture::Outcome all = fixture::differentiate(packed, x);
    for (std::int64_t b = 0; b < 2; ++b) {
      std::int64_t start = 0;
      for (const std::int64_t length : b == 0 ? c.first : c.second) {
        const auto own = [&, b](const at::Tensor& of) { return of.narrow(0, b, 1).narrow(1, start, length); };
        const Tensors leaves{own(x[0]).detach().clone().requires_grad_(), own(x[1]).detach().clone().requires_grad_(),
                             own(x[2]).detach().clone().requires_grad_()};
        const at::Tensor value = cautious::model::ops::attention(leaves[0], leaves[1], leaves[2], c.shape, Path::fused);
        value.backward(own(fixture::weights(all.value)));
        EXPECT_LE(fixture::distance(own(all.value), value), 1e-12) << c.name() << " from " << start;
        for (std::size_t i = 0; i < 3; ++i)
          EXPECT_LE(fixture::distance(own(all.gradients[i]), leaves[i].grad(), 1), 1e-12) << c.name() << " from " << start;
        start += length;
      }
    }
  }
}

TEST(AttentionBounds, StartsAtZeroAndWideWindowsChangeNoBit) {
  const Case none = windowed(130, 0, {4, 2, 8, 0.3, 3.0, {100.0}});
  const Tensors x = inputs(none, at::kFloat);
  const fixture::Outcome expected = fixture::differentiate(path(none, Path::fused), x);
  for (const Case& c :
       {windowed(130, 130, none.shape), make({130}, {130}, 0, none.shape), make({130}, {130}, 500, none.shape)}) {
    const fixture::Outcome got = fixture::differentiate(path(c, Path::fused), x);
    EXPECT_TRUE(fixture::same_bits(got.value, expected.value));
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(fixture::same_bits(got.gradients[i], expected.gradients[i])) << i;
  }
}

TEST(AttentionBounds, SameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const Case& c : cases()) {
    at::set_num_threads(1);
    const fixture::Outcome one = fixture::differentiate(path(c, Path::fused), inputs(c, at::kFloat));
    at::set_num_threads(3);
    const fixture::Outcome more = fixture::differentiate(path(c, Path::fused), inputs(c, at::kFloat));
    EXPECT_TRUE(fixture::same_bits(one.value, more.value)) << c.name();
    for (std::size_t i = 0; i < 3; ++i) EXPECT_TRUE(fixture::same_bits(one.gradients[i], more.gradients[i])) << c.name();
  }
  at::set_num_threads(threads);
}

TEST(AttentionBounds, WrongBoundsAreErrors) {
  const Case good = make({3, 4}, {7}, 0, {2, 1, 4, 0.5});
  const auto message = [&](const AttentionShape& shape, const at::Tensor& starts) {
    const Tensors x = inputs(good, at::kFloat);
    try {
      cautious::model::ops::attention(x[0], x[1], x[2], shape, Path::fused, starts);
    } catch (const cautious::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  AttentionShape shape = good.shape;
  EXPECT_EQ(message(shape, starts_of(good).to(at::kInt)), "");
  EXPECT_EQ(message(shape, starts_of(good).narrow(1, 0, 6)),
            "attention: starts are [2, 6] Long; expected whole numbers [2, 7], and causal");
  EXPECT_EQ(message(shape, starts_of(good).to(at::kFloat)),
            "attention: starts are [2, 7] Float; expected whole numbers [2, 7], and causal");
  at::Tensor wrong = starts_of(good);
  wrong[1][5] = 6;
  EXPECT_EQ(message(shape, wrong), "attention: token 5 starts at 6; valid: [0, 5]");
  wrong[1][5] = 5;
  EXPECT_EQ(message(shape, wrong), "attention: token 6 starts at 0; valid: [5, 6]");
  shape.window = -1;
  EXPECT_EQ(message(shape, {}), "attention: window -1; positive, or 0 for off, and causal");
  shape.window = 3;
  shape.causal = false;
  EXPECT_EQ(message(shape, {}), "attention: window 3; positive, or 0 for off, and causal");
}

// Llama 3.1's own numbers: 8 times slower for wavelengths above 8192, kept for those below 2048, and between.
TEST(RopeSpeeds, AreThoseOfLlama) {
  const cautious::model::ops::Rope plain{500000}, llama{500000, RopeScaling::llama3, 8, 1, 4, 8192},
      linear{500000, RopeScaling::linear, 2.5};
  const std::vector<double> unscaled = rope_speeds(plain, 128), scaled = rope_speeds(llama, 128),
                            slower = rope_speeds(linear, 128);
  ASSERT_EQ(scaled.size(), 64u);
  int between = 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const double wavelength = 2 * M_PI * std::pow(500000.0, double(i) / 64);
    EXPECT_NEAR(unscaled[i], 2 * M_PI / wavelength, 1e-15);
    EXPECT_NEAR(slower[i] * 2.5, unscaled[i], 1e-15);
    const double ratio = scaled[i] / unscaled[i];
    if (wavelength < 2048) {
      EXPECT_EQ(ratio, 1);
    } else if (wavelength > 8192) {
      EXPECT_NEAR(ratio, 1.0 / 8, 1e-15);
    } else {
      ++between;
      const double smooth = (8192 / wavelength - 1) / 3;
      EXPECT_NEAR(ratio, (1 - smooth) / 8 + smooth, 1e-12);
    }
  }
  EXPECT_EQ(between, 6);  // pairs 29 to 34
}

}  // namespace attention_bounds_test
