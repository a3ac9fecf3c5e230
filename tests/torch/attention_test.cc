// Causal attention: the fused path against ATen operations and finite differences, at awkward shapes.
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/cat.h>
#include <cautious/error.h>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include "model/ops/fused.h"
#include "model/ops/ops.h"
#include "ops_fixture.h"

namespace attention_test {

using cautious::model::ops::AttentionShape;
using cautious::model::ops::Path;
using fixture::Function;
using fixture::Tensors;

struct Case {
  std::int64_t batch, tokens;
  AttentionShape shape;
};

std::string name(const Case& c) {
  return fmt::format("B{} T{} heads {}/{} size {} scale {:.3} cap {} rope {}", c.batch, c.tokens, c.shape.heads,
                     c.shape.kv_heads, c.shape.head_size, c.shape.scale, c.shape.softcap, c.shape.rope.base);
}

Tensors inputs(const Case& c, at::ScalarType type) {
  const std::int64_t wide = c.shape.heads * c.shape.head_size, narrow = c.shape.kv_heads * c.shape.head_size;
  return {fixture::values({c.batch, c.tokens, wide}, 1, type), fixture::values({c.batch, c.tokens, narrow}, 2, type),
          fixture::values({c.batch, c.tokens, narrow}, 3, type)};
}

Function path(const AttentionShape& shape, Path by) {
  return [=](const Tensors& x) { return cautious::model::ops::attention(x[0], x[1], x[2], shape, by); };
}

// Every number of tokens around a block's end; head sizes, heads, batches, cap and rotation in turn.
std::vector<Case> cases() {
  std::vector<Case> all;
  int turn = 0;
  for (const std::int64_t tokens : {1, 2, 5, 63, 64, 65, 130})
    for (const std::int64_t size : {2, 6, 7, 16, 64})
      for (const auto& [heads, kv] : std::vector<std::pair<int, int>>{{1, 1}, {4, 4}, {4, 2}, {6, 1}}) {
        ++turn;
        const double rope = size % 2 == 0 && turn % 2 ? 100.0 : 0.0;
        const double scale = turn % 3 ? 1 / std::sqrt(static_cast<double>(size)) : 1.3;
        all.push_back({turn % 5 == 0 ? 3 : 1, tokens, {heads, kv, size, scale, turn / 2 % 2 ? 2.5 : 0.0, rope}});
      }
  return all;
}

const Case kUsual{2, 70, {4, 2, 6, 0.4, 3.0, 1000.0}};

TEST(Attention, EqualsPlainOperations) {
  for (const Case& c : cases()) {
    const Function fused = path(c.shape, Path::fused), plain = path(c.shape, Path::plain);
    const double least = c.tokens <= 2 ? 1 : 1e-30;  // few tokens: gradients of q and k are near 0 by cancellation
    fixture::expect_equal(fused, plain, inputs(c, at::kDouble), 1e-12, name(c) + " f64", least);
    fixture::expect_equal(fused, plain, inputs(c, at::kFloat), 1e-5, name(c) + " f32", least);
  }
}

TEST(Attention, EqualsPlainOperationsWithManyTokens) {
  const Case c{1, 1030, {2, 1, 8, 0.5, 5.0, 10000.0}};
  fixture::expect_equal(path(c.shape, Path::fused), path(c.shape, Path::plain), inputs(c, at::kFloat), 1e-5, name(c));
}

TEST(Attention, GradientsAreFiniteDifferences) {
  for (const Case& c : cases())
    if (c.tokens <= 5 || (c.tokens == 65 && c.shape.head_size < 16))
      fixture::expect_gradients(path(c.shape, Path::fused), inputs(c, at::kDouble), name(c), 1e-7, 5);
}

TEST(Attention, OneTokenIsItsValue) {
  const Case c{2, 1, {2, 2, 4, 0.5}};
  const Tensors x = inputs(c, at::kFloat);
  EXPECT_TRUE(fixture::same_bits(path(c.shape, Path::fused)(x), x[2]));
}

TEST(Attention, LaterTokensChangeNothing) {
  const Case c{1, 130, {2, 1, 6, 0.4, 0, 100}};
  const Function fused = path(c.shape, Path::fused);
  const at::Tensor before = fused(inputs(c, at::kFloat));
  for (const std::int64_t from : {1, 63, 64, 100, 129}) {
    Tensors x = inputs(c, at::kFloat);
    for (at::Tensor& tensor : x) tensor.narrow(1, from, 130 - from).add_(3);
    const at::Tensor after = fused(x);
    EXPECT_LE(fixture::distance(after.narrow(1, 0, from), before.narrow(1, 0, from)), 1e-6) << from;
    EXPECT_GT(fixture::distance(after.narrow(1, from, 130 - from), before.narrow(1, from, 130 - from)), 1e-2) << from;
  }
}

TEST(Attention, SameBitsForAnyNumberOfThreads) {
  const int threads = at::get_num_threads();
  for (const Case& c : {kUsual, Case{1, 200, {1, 1, 16, 0.25}}, Case{1, 200, {4, 1, 16, 0.25, 0, 500}}}) {
    at::set_num_threads(1);
    const fixture::Outcome one = fixture::differentiate(path(c.shape, Path::fused), inputs(c, at::kFloat));
    for (const int count : {1, 2, 3}) {
      at::set_num_threads(count);
      const fixture::Outcome more = fixture::differentiate(path(c.shape, Path::fused), inputs(c, at::kFloat));
      EXPECT_TRUE(fixture::same_bits(one.value, more.value)) << name(c) << ", threads " << count;
      for (std::size_t i = 0; i < 3; ++i)
        EXPECT_TRUE(fixture::same_bits(one.gradients[i], more.gradients[i]))
            << name(c) << ", threads " << count << ", input " << i;
      EXPECT_EQ(at::get_num_threads(), count);
    }
  }
  at::set_num_threads(threads);
}

TEST(Attention, TakesAnyStrides) {
  const Tensors x = inputs(kUsual, at::kDouble);
  const Function fused = path(kUsual.shape, Path::fused);
  const fixture::Outcome expected = fixture::differentiate(fused, x);
  const at::Tensor together = at::cat({x[0], x[1], x[2]}, 2);  // as one projection makes them
  const Tensors slices{together.narrow(2, 0, 24), together.narrow(2, 24, 12), together.narrow(2, 36, 12)};
  Tensors turned, wide;
  for (const at::Tensor& tensor : x) {
    turned.push_back(tensor.permute({2, 0, 1}).contiguous().permute({1, 2, 0}));
    wide.push_back(tensor.transpose(0, 1).contiguous().transpose(0, 1));
  }
  for (const Tensors& strided : {slices, turned, wide}) {
    const fixture::Outcome got = fixture::differentiate(fused, strided);
    EXPECT_LE(fixture::distance(got.value, expected.value), 1e-14);
    for (std::size_t i = 0; i < 3; ++i) EXPECT_LE(fixture::distance(got.gradients[i], expected.gradients[i]), 1e-13) << i;
  }
}

TEST(Attention, TakesAnExpandedGradientAndOneOfABatch) {
  const Case c{3, 9, {2, 1, 4, 0.5, 0, 10}};
  const auto gradient = [&](Path by) {
    const Tensors x = inputs(c, at::kDouble);
    const at::Tensor q = x[0].clone().requires_grad_();
    const at::Tensor key = x[1].narrow(0, 0, 1).expand({3, 9, 4});
    cautious::model::ops::attention(q, key, x[2], c.shape, by).sum().backward();
    return q.grad();
  };
  EXPECT_LE(fixture::distance(gradient(Path::fused), gradient(Path::plain)), 1e-12);
}

TEST(Attention, OnlyTheGradientsThatAreWanted) {
  for (const double rope : {0.0, 100.0}) {
    AttentionShape shape = kUsual.shape;
    shape.rope.base = rope;
    const Function fused = path(shape, Path::fused);
    const Tensors x = inputs(kUsual, at::kDouble);
    const fixture::Outcome all = fixture::differentiate(fused, x);
    for (unsigned mask = 1; mask < 7; ++mask) {
      const std::vector<bool> wanted{(mask & 1) != 0, (mask & 2) != 0, (mask & 4) != 0};
      const fixture::Outcome some = fixture::differentiate(fused, x, wanted);
      for (std::size_t i = 0; i < 3; ++i) {
        ASSERT_EQ(some.gradients[i].defined(), wanted[i]) << mask;
        if (wanted[i]) {
          EXPECT_TRUE(fixture::same_bits(some.gradients[i], all.gradients[i])) << mask;
        }
      }
    }
    EXPECT_FALSE(fused(x).requires_grad());
  }
}

TEST(Attention, NoTokensAndNoSequences) {
  for (const auto& [batch, tokens] : std::vector<std::pair<int, int>>{{0, 4}, {2, 0}}) {
    const Case c{batch, tokens, {2, 1, 4, 0.5, 0, 10}};
    const fixture::Outcome outcome = fixture::differentiate(path(c.shape, Path::fused), inputs(c, at::kFloat));
    EXPECT_EQ(outcome.value.numel(), 0);
    EXPECT_EQ(outcome.gradients[1].numel(), 0);
  }
}

TEST(Attention, LargeScoresAreFinite) {
  const Case c{1, 70, {1, 1, 8, 1000.0}};
  const fixture::Outcome outcome = fixture::differentiate(path(c.shape, Path::fused), inputs(c, at::kFloat));
  EXPECT_TRUE(outcome.value.isfinite().all().item<bool>());
  for (const at::Tensor& gradient : outcome.gradients) EXPECT_TRUE(gradient.isfinite().all().item<bool>());
}

TEST(Attention, OtherTypesTakeThePlainPath) {
  const Tensors x = inputs(kUsual, at::kBFloat16);
  EXPECT_TRUE(fixture::same_bits(path(kUsual.shape, Path::fused)(x), path(kUsual.shape, Path::plain)(x)));
}

TEST(Attention, RotationIsThatOfRope) {
  const Tensors x = inputs(kUsual, at::kDouble);
  AttentionShape bare = kUsual.shape;
  bare.rope.base = 0;
  const at::Tensor q = cautious::model::ops::rope(x[0], 6, {1000.0}), k = cautious::model::ops::rope(x[1], 6, {1000.0});
  EXPECT_LE(fixture::distance(path(kUsual.shape, Path::fused)(x), path(bare, Path::fused)({q, k, x[2]})), 1e-13);
  // by hand: token 2, head 1, pair 1
  const double angle = 2 * std::pow(1000.0, -2.0 / 6), x1 = x[0][0][2][7].item<double>(), x2 = x[0][0][2][10].item<double>();
  EXPECT_NEAR(q[0][2][7].item<double>(), x1 * std::cos(angle) - x2 * std::sin(angle), 1e-14);
  EXPECT_NEAR(q[0][2][10].item<double>(), x2 * std::cos(angle) + x1 * std::sin(angle), 1e-14);
  // a sequence may start anywhere
  const at::Tensor late = cautious::model::ops::rope(x[0].narrow(1, 30, 5), 6, {1000.0}, 30);
  EXPECT_TRUE(fixture::same_bits(late, q.narrow(1, 30, 5)));
}

TEST(Attention, WrongShapesAreErrors) {
  const auto refused = [](const Tensors& x, const AttentionShape& shape, const std::string& word) {
    for (const Path by : {Path::fused, Path::plain}) {
      try {
        path(shape, by)(x);
        ADD_FAILURE() << "no error about " << word;
      } catch (const cautious::Error& error) {
        EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
      }
    }
  };
  const AttentionShape good = kUsual.shape;
  const Tensors x = inputs(kUsual, at::kFloat);
  AttentionShape shape = good;
  shape.head_size = 3, shape.heads = 8, shape.kv_heads = 4;
  refused(x, shape, "odd");
  shape = good, shape.kv_heads = 3;
  refused(x, shape, "kv_heads divides heads");
  shape = good, shape.kv_heads = 0;
  refused(x, shape, "positive");
  shape = good, shape.softcap = -1;
  refused(x, shape, "softcap -1");
  shape = good, shape.heads = 2;
  refused(x, shape, "q is [2, 70, 24]; expected [2, 70, 12]");
  refused({x[0].narrow(1, 0, 69), x[1], x[2]}, good, "k is [2, 70, 12]; expected [2, 69, 12]");
  refused({x[0], x[1], x[0]}, good, "v is");
  refused({x[0].flatten(1), x[1], x[2]}, good, "expected [B, T, heads * head_size]");
  refused({x[0], x[1].to(at::kDouble), x[2]}, good, "k is Double, q is Float");
}

TEST(Attention, RefusesASecondDerivative) {
  const Tensors x = inputs(kUsual, at::kDouble);
  const at::Tensor q = x[0].clone().requires_grad_();
  const at::Tensor value = cautious::model::ops::attention(q, x[1], x[2], kUsual.shape, Path::fused).sum();
  EXPECT_THROW(value.backward({}, true, true), cautious::Error);
}

TEST(FastFunctions, AreCloseToTheLibrarys) {
  const auto ulps = [](float got, double expected) {
    const auto near = static_cast<float>(std::abs(expected));
    return std::abs(got - expected) / (std::nextafter(near, std::numeric_limits<float>::infinity()) - near);
  };
  for (float x = -87.3f; x < 88.3f; x += 0.0007f)
    ASSERT_LE(ulps(cautious::model::ops::fast_exp(x), std::exp(double{x})), 2) << x;
  for (float x = 1e-20f; x < 20; x *= 1.0005f) {
    ASSERT_LE(ulps(cautious::model::ops::fast_tanh(x), std::tanh(double{x})), 7) << x;
    ASSERT_EQ(cautious::model::ops::fast_tanh(-x), -cautious::model::ops::fast_tanh(x));
  }
  constexpr float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(cautious::model::ops::fast_exp(-infinity), 0);
  EXPECT_EQ(cautious::model::ops::fast_exp(-88.0f), 0);
  EXPECT_EQ(cautious::model::ops::fast_exp(infinity), infinity);
  EXPECT_TRUE(std::isnan(cautious::model::ops::fast_exp(std::nanf(""))));
  EXPECT_TRUE(std::isnan(cautious::model::ops::fast_tanh(std::nanf(""))));
}

}  // namespace attention_test
