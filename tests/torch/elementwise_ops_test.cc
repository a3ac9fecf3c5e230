// rms_norm() and gated(): fused against plain and against finite differences, extremes, bits that do not depend on threads.
#include <cstdint>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cautious/error.h>

#include "model/ops/ops.h"
#include "torch/ops_fixture.h"

using cautious::model::Activation;
using cautious::model::ops::Path;
using fixture::Function;
using fixture::Tensors;
using fixture::values;

namespace elementwise_ops_test {

using Sides = std::vector<std::int64_t>;

Function norm(Path path, double offset = 0, double eps = 1e-6) {
  return [=](const Tensors& in) { return cautious::model::ops::rms_norm(in[0], in[1], offset, eps, path); };
}

Function gate(Path path, Activation activation) {
  return [=](const Tensors& in) { return cautious::model::ops::gated(in[0], in[1], activation, path); };
}

double tolerance(at::ScalarType type) { return type == at::kFloat ? 1e-5 : 1e-12; }

std::string what(const Sides& sides, at::ScalarType type) {
  return fmt::format("[{}] {}", fmt::join(sides, ", "), c10::toString(type));
}

Tensors to(const Tensors& inputs, at::ScalarType type) {
  Tensors out;
  for (const at::Tensor& input : inputs) out.push_back(input.to(type));
  return out;
}

// The fused one in f32 against the plain one in f64, of the same numbers.
void expect_exact(const Function& fused, const Function& plain, const Tensors& inputs, const std::string& name) {
  const fixture::Outcome a = fixture::differentiate(fused, inputs);
  const fixture::Outcome b = fixture::differentiate(plain, to(inputs, at::kDouble));
  EXPECT_LE(fixture::distance(a.value, b.value), 1e-5) << name;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    EXPECT_LE(fixture::distance(a.gradients[i], b.gradients[i]), 1e-5) << name << ": gradient of input " << i;
}

void expect_any_threads(const Function& function, const Tensors& inputs) {
  const int threads = at::get_num_threads();
  std::vector<fixture::Outcome> outcomes;
  for (const int count : {1, 2, 2}) {
    at::set_num_threads(count);
    outcomes.push_back(fixture::differentiate(function, inputs));
  }
  at::set_num_threads(threads);
  for (std::size_t run = 1; run < outcomes.size(); ++run) {
    EXPECT_TRUE(fixture::same_bits(outcomes[0].value, outcomes[run].value)) << run;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      EXPECT_TRUE(fixture::same_bits(outcomes[0].gradients[i], outcomes[run].gradients[i])) << run << ", input " << i;
  }
}

void expect_only_wanted(const Function& fused, const Function& plain, const Tensors& inputs) {
  const fixture::Outcome all = fixture::differentiate(plain, inputs);
  for (std::size_t one = 0; one < 2; ++one) {
    const fixture::Outcome some = fixture::differentiate(fused, inputs, {one == 0, one == 1});
    EXPECT_LE(fixture::distance(some.gradients[one], all.gradients[one]), 1e-12);
    EXPECT_FALSE(some.gradients[1 - one].defined());
  }
}

void expect_no_graph(const Function& function, const Tensors& constants) {
  Tensors inputs;
  for (const at::Tensor& constant : constants) inputs.push_back(constant.detach());
  const at::Tensor without = function(inputs);
  for (at::Tensor& input : inputs) input.requires_grad_();
  const at::Tensor with = function(inputs);
  EXPECT_FALSE(without.requires_grad());
  EXPECT_TRUE(with.requires_grad());
  EXPECT_TRUE(fixture::same_bits(without, with.detach()));
  EXPECT_THROW(torch::autograd::grad({with.sum()}, {inputs[0]}, {}, true, true), cautious::Error);  // no second derivative
  const c10::AutoGradMode off(false);
  EXPECT_FALSE(function(inputs).requires_grad());
}

constexpr Activation kBoth[] = {Activation::silu, Activation::gelu};

TEST(RmsNorm, is_the_plain_one) {
  for (const Sides& sides : {Sides{5}, {1}, {1, 1}, {2, 3, 7}, {64, 320}, {2, 5, 3, 16}, {1030, 9}, {3, 4099}})
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
      for (const double offset : {0.0, 1.0})
        fixture::expect_equal(norm(Path::fused, offset), norm(Path::plain, offset),
                              {values(sides, 1, type), values({sides.back()}, 2, type)}, tolerance(type), what(sides, type),
                              1);  // d = 1: what is left of the gradient by x is rounding
}

TEST(RmsNorm, gradients_are_slopes) {
  for (const Sides& sides : {Sides{5}, {2, 3, 7}, {2, 2, 3, 4}, {40, 6}})
    for (const double offset : {0.0, 1.0})
      fixture::expect_gradients(norm(Path::fused, offset, 1e-2), {values(sides, 1), values({sides.back()}, 2)},
                                what(sides, at::kDouble), 1e-8);
}

TEST(RmsNorm, of_a_zero_row_is_zero) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    at::Tensor x = values({6, 5}, 1, type);
    x[2].zero_();
    x[5].zero_();
    fixture::expect_equal(norm(Path::fused), norm(Path::plain), {x, values({5}, 2, type)}, tolerance(type), "zero rows");
    EXPECT_EQ(norm(Path::fused)({x, values({5}, 2, type)})[2].count_nonzero().item<std::int64_t>(), 0);
    fixture::expect_equal(norm(Path::fused), norm(Path::plain), {x.mul(0), values({5}, 2, type)}, tolerance(type), "all zero");
  }
}

TEST(RmsNorm, does_not_overflow) {
  for (const double size : {1e-25, 1e-10, 1e-3, 1e10, 1e20, 1e25})
    expect_exact(norm(Path::fused), norm(Path::plain), {values({4, 33}, 1, at::kFloat).mul(size), values({33}, 2, at::kFloat)},
                 fmt::format("size {}", size));
}

TEST(RmsNorm, takes_inputs_of_any_stride) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const auto with = [](Path path) {
      return [path](const Tensors& in) {
        const at::Tensor y = cautious::model::ops::rms_norm(in[0].transpose(0, 2), in[1].slice(0, 0, 10, 2), 1, 1e-6, path);
        return y.transpose(0, 1);  // so that the incoming gradient has strides too
      };
    };
    fixture::expect_equal(with(Path::fused), with(Path::plain), {values({5, 3, 4}, 1, type), values({10}, 2, type)},
                          tolerance(type), "strides");
  }
  const Function sum = [](const Tensors& in) { return norm(Path::fused)(in).sum(); };  // an expanded incoming gradient
  const Function plain = [](const Tensors& in) { return norm(Path::plain)(in).sum(); };
  fixture::expect_equal(sum, plain, {values({7, 5}, 1), values({5}, 2)}, 1e-12, "sum");
}

TEST(RmsNorm, bits_do_not_depend_on_threads) {
  for (const Sides& sides : {Sides{2000, 33}, {3001, 16}, {40, 2047}})
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
      expect_any_threads(norm(Path::fused, 1), {values(sides, 1, type), values({sides.back()}, 2, type)});
}

TEST(RmsNorm, serves_what_autograd_asks_for) {
  const Tensors inputs{values({6, 5}, 1), values({5}, 2)};
  expect_only_wanted(norm(Path::fused), norm(Path::plain), inputs);
  expect_no_graph(norm(Path::fused), inputs);
}

TEST(RmsNorm, of_nothing_is_nothing) {
  for (const Sides& sides : {Sides{0, 5}, {3, 0}, {0}}) {
    const fixture::Outcome outcome = fixture::differentiate(norm(Path::fused), {values(sides, 1), values({sides.back()}, 2)});
    EXPECT_EQ(outcome.value.sizes(), at::IntArrayRef(sides));
    EXPECT_EQ(outcome.gradients[1].count_nonzero().item<std::int64_t>(), 0);
  }
}

TEST(RmsNorm, wrong_shapes_are_errors) {
  EXPECT_THROW(norm(Path::fused)({values({6, 5}, 1), values({6}, 2)}), cautious::Error);
  EXPECT_THROW(norm(Path::fused)({values({6, 5}, 1), values({1, 5}, 2)}), cautious::Error);
  EXPECT_THROW(norm(Path::plain)({values({}, 1), values({1}, 2)}), cautious::Error);
}

TEST(RmsNorm, other_types_take_the_plain_path) {
  const Tensors inputs = to({values({6, 5}, 1), values({5}, 2)}, at::kBFloat16);
  EXPECT_TRUE(fixture::same_bits(norm(Path::fused)(inputs), norm(Path::plain)(inputs)));
}

TEST(Gated, is_the_plain_one) {
  for (const Activation activation : kBoth)
    for (const Sides& sides : {Sides{1}, {7}, {3, 5, 17}, {4095}, {4097}, {33, 1001}, {2, 3, 4, 5}, {0}})
      for (const at::ScalarType type : {at::kFloat, at::kDouble})
        fixture::expect_equal(gate(Path::fused, activation), gate(Path::plain, activation),
                              {values(sides, 1, type).mul(3), values(sides, 2, type)}, tolerance(type), what(sides, type));
}

TEST(Gated, gradients_are_slopes) {
  for (const Activation activation : kBoth)
    fixture::expect_gradients(gate(Path::fused, activation), {values({3, 19}, 1).mul(2), values({3, 19}, 2)}, "gated", 1e-8,
                              57);
}

TEST(Gated, extremes_are_finite) {
  const std::vector<double> ends{0, 1e-30, 1, 10, 20, 88, 89, 100, 1e4, 1e20};
  std::vector<double> both = ends;
  for (const double end : ends) both.push_back(-end);
  const auto count = static_cast<std::int64_t>(both.size());
  for (const Activation activation : kBoth) {
    for (std::int64_t i = 0; i < count; ++i)  // one at a time: differences are relative to the largest
      expect_exact(gate(Path::fused, activation), gate(Path::fused, activation),
                   {at::tensor({both[i], 0.5}, at::kFloat), at::tensor({2.0, 2.0}, at::kFloat)}, fmt::format("{}", both[i]));
    for (const double end : {-100.0, 100.0})
      for (const at::ScalarType type : {at::kFloat, at::kDouble})
        fixture::expect_equal(gate(Path::fused, activation), gate(Path::plain, activation),
                              {at::tensor({end, 1.0}, type), at::tensor({1.0, 3.0}, type)}, tolerance(type),
                              fmt::format("{}", end));
  }
}

TEST(Gated, takes_inputs_of_any_stride) {
  for (const Activation activation : kBoth)
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const auto with = [=](Path path) {  // gate and up are halves of one product
        return [=](const Tensors& in) {
          return cautious::model::ops::gated(in[0].narrow(1, 0, 9), in[0].narrow(1, 9, 9), activation, path).t();
        };
      };
      fixture::expect_equal(with(Path::fused), with(Path::plain), {values({5, 18}, 1, type)}, tolerance(type), "halves");
    }
  const Function same = [](const Tensors& in) {
    return cautious::model::ops::gated(in[0], in[0], Activation::silu, Path::fused);
  };
  fixture::expect_gradients(same, {values({7}, 1)}, "gate is up", 1e-8);
}

TEST(Gated, bits_do_not_depend_on_threads) {
  for (const Activation activation : kBoth)
    for (const at::ScalarType type : {at::kFloat, at::kDouble})
      expect_any_threads(gate(Path::fused, activation), {values({101, 1003}, 1, type), values({101, 1003}, 2, type)});
}

TEST(Gated, serves_what_autograd_asks_for) {
  const Tensors inputs{values({6, 5}, 1), values({6, 5}, 2)};
  for (const Activation activation : kBoth) {
    expect_only_wanted(gate(Path::fused, activation), gate(Path::plain, activation), inputs);
    expect_no_graph(gate(Path::fused, activation), inputs);
  }
}

TEST(Gated, wrong_shapes_are_errors) {
  for (const Path path : {Path::fused, Path::plain})
    EXPECT_THROW(gate(path, Activation::silu)({values({6, 5}, 1), values({5}, 2)}), cautious::Error);
}

TEST(Gated, other_types_take_the_plain_path) {
  const Tensors inputs = to({values({6, 5}, 1), values({6, 5}, 2)}, at::kBFloat16);
  for (const Activation activation : kBoth)
    EXPECT_TRUE(fixture::same_bits(gate(Path::fused, activation)(inputs), gate(Path::plain, activation)(inputs)));
}

}  // namespace elementwise_ops_test
