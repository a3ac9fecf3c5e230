// linears(): products with several weights at once against at::linear, in values and gradients.
#include <gtest/gtest.h>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/core/grad_mode.h>

#include <cautious/error.h>

#include "model/ops/ops.h"

namespace linear_test {

using cautious::model::ops::linears;
using cautious::model::ops::Path;

struct Case {
  std::int64_t rows, in;
  std::vector<std::int64_t> outs;
};

std::vector<at::Tensor> inputs_of(const Case& c, at::ScalarType type) {
  at::manual_seed(3);
  const auto options = at::TensorOptions(type);
  std::vector<at::Tensor> inputs{at::randn({c.rows, c.in}, options).requires_grad_()};
  for (const std::int64_t out : c.outs) inputs.push_back(at::randn({out, c.in}, options).requires_grad_());
  return inputs;
}

// A scalar that weighs every output entry differently.
at::Tensor weighed(const std::vector<at::Tensor>& outputs) {
  at::Tensor sum = at::zeros({}, outputs.front().options());
  for (const at::Tensor& output : outputs) {
    sum = sum + (output * at::linspace(-1, 1, output.numel(), output.options()).view(output.sizes())).sum();
  }
  return sum;
}

std::vector<at::Tensor> gradients(const Case& c, at::ScalarType type, Path path) {
  std::vector<at::Tensor> inputs = inputs_of(c, type);
  const at::TensorList weights = at::TensorList(inputs).slice(1);
  weighed(linears(inputs[0], weights, path)).backward();
  std::vector<at::Tensor> all;
  for (const at::Tensor& input : inputs) all.push_back(input.grad());
  for (const at::Tensor& output : linears(inputs[0], weights, path)) all.push_back(output.detach());
  return all;
}

const std::vector<Case> kCases{{1, 1, {1}}, {5, 3, {7}}, {256, 4, {4, 4, 4}}, {257, 17, {5, 1, 33}}, {700, 64, {64, 32}}};

TEST(Linear, EqualsPlainInValuesAndGradients) {
  for (const Case& c : kCases) {
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      const auto fused = gradients(c, type, Path::fused), plain = gradients(c, type, Path::plain);
      for (std::size_t i = 0; i < fused.size(); ++i) {
        const double apart = (fused[i] - plain[i]).norm().item<double>(), size = plain[i].norm().item<double>();
        EXPECT_LE(apart, (type == at::kFloat ? 1e-5 : 1e-13) * (size + 1)) << c.rows << "x" << c.in << " tensor " << i;
      }
    }
  }
}

TEST(Linear, GradientsByFiniteDifferences) {
  const Case c{3, 4, {2, 5}};
  const std::vector<at::Tensor> inputs = inputs_of(c, at::kDouble);
  const auto loss = [&] { return weighed(linears(inputs[0], at::TensorList(inputs).slice(1), Path::fused)); };
  loss().backward();
  const at::NoGradGuard without;
  for (const at::Tensor& input : inputs) {
    auto* entries = input.data_ptr<double>();
    for (std::int64_t i = 0; i < input.numel(); ++i) {
      const double kept = entries[i], h = 1e-6;
      entries[i] = kept + h;
      const double above = loss().item<double>();
      entries[i] = kept - h;
      const double below = loss().item<double>();
      entries[i] = kept;
      EXPECT_NEAR(input.grad().flatten()[i].item<double>(), (above - below) / (2 * h), 1e-7);
    }
  }
}

TEST(Linear, OutputsNotUsedAndInputsWithoutGradient) {
  std::vector<at::Tensor> inputs = inputs_of({20, 6, {4, 3}}, at::kDouble);
  inputs[0].requires_grad_(false);
  const auto outputs = linears(inputs[0], at::TensorList(inputs).slice(1), Path::fused);
  outputs[1].sum().backward();
  EXPECT_FALSE(inputs[0].grad().defined());
  EXPECT_FALSE(inputs[1].grad().defined());
  EXPECT_TRUE(at::allclose(inputs[2].grad(), inputs[0].sum(0).expand({3, 6})));
}

TEST(Linear, ThreadsAndStridesDoNotMatter) {
  const std::vector<at::Tensor> inputs = inputs_of({1000, 40, {24, 40}}, at::kFloat);
  const at::TensorList weights = at::TensorList(inputs).slice(1);
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const auto one = linears(inputs[0], weights, Path::fused);
  at::set_num_threads(3);
  const auto three = linears(inputs[0], weights, Path::fused);
  at::set_num_threads(threads);
  const at::Tensor turned = inputs[0].t().contiguous().t();  // the same matrix, column by column
  EXPECT_TRUE(at::equal(one[0], three[0]) && at::equal(one[1], three[1]));
  EXPECT_TRUE(at::equal(one[0], linears(turned, weights, Path::fused)[0]));
}

TEST(Linear, WrongShapesAreErrors) {
  const at::Tensor x = at::ones({2, 3});
  EXPECT_THROW(linears(x, {at::ones({4, 2})}, Path::fused), cautious::Error);
  EXPECT_THROW(linears(at::ones({3}), {at::ones({4, 3})}, Path::fused), cautious::Error);
}

}  // namespace linear_test
