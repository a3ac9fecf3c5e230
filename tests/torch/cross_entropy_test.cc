// cross_entropy(): fused against plain and against finite differences, rows left out, extremes, what autograd may ask for.
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <cautious/error.h>

#include "model/ops/ops.h"
#include "torch/ops_fixture.h"

using cautious::model::ops::cross_entropy;
using cautious::model::ops::Path;
using fixture::Tensors;
using fixture::values;

namespace cross_entropy_test {

struct Case {
  std::int64_t rows, d, words;
  bool bias = false, softcap = false, skip = false;

  std::string name(at::ScalarType type) const {
    return fmt::format("N {} d {} V {}{}{}{} {}", rows, d, words, bias ? " bias" : "", softcap ? " softcap" : "",
                       skip ? " skip" : "", c10::toString(type));
  }
  double cap() const { return softcap ? 1.5 : 0; }
  Tensors inputs(at::ScalarType type) const {
    Tensors inputs{values({rows, d}, 1, type), values({words, d}, 2, type).mul(2 / std::sqrt(static_cast<double>(d)))};
    if (bias) inputs.push_back(values({words}, 3, type));
    return inputs;
  }
  at::Tensor target() const {
    fixture::Values draw(4);
    std::vector<std::int64_t> target(static_cast<std::size_t>(rows));
    for (std::size_t row = 0; row < target.size(); ++row)
      target[row] = skip && row % 3 == 1 ? -1 : static_cast<std::int64_t>(draw.uniform() * static_cast<double>(words));
    return at::tensor(target, at::kLong);
  }
  fixture::Function with(Path path) const {
    return [path, cap = cap(), target = target()](const Tensors& in) {
      return cross_entropy(in[0], in[1], in.size() > 2 ? in[2] : at::Tensor(), target, cap, path);
    };
  }
};

double tolerance(at::ScalarType type) { return type == at::kFloat ? 1e-5 : 1e-12; }

void expect_plain(const Case& each) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    fixture::expect_equal(each.with(Path::fused), each.with(Path::plain), each.inputs(type), tolerance(type), each.name(type));
}

at::Tensor words(const std::vector<std::int64_t>& target) { return at::tensor(target, at::kLong); }

std::string message_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const cautious::Error& error) {
    return error.what();
  }
  return "no Error";
}

TEST(CrossEntropy, is_the_plain_one_for_every_size) {
  unsigned turn = 0;
  for (const std::int64_t rows : {1, 7, 65, 300})
    for (const std::int64_t d : {1, 3, 17, 64})
      for (const std::int64_t vocabulary : {2, 5, 256, 1000, 5003}) {
        ++turn;
        expect_plain({rows, d, vocabulary, turn % 2 == 0, turn / 2 % 2 == 0, turn / 4 % 2 == 0});
      }
}

TEST(CrossEntropy, is_the_plain_one_for_every_option) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    expect_plain({65, 17, 33, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});
    expect_plain({230, 3, 20011, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0});  // chunks of 64 rows in both types
  }
}

TEST(CrossEntropy, gradients_are_slopes) {
  for (unsigned bits = 0; bits < 8; ++bits) {
    const Case each{7, 3, 11, (bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    fixture::expect_gradients(each.with(Path::fused), each.inputs(at::kDouble), each.name(at::kDouble), 1e-8);
  }
  const Case chunks{200, 3, 9001, true, true, true};
  fixture::expect_gradients(chunks.with(Path::fused), chunks.inputs(at::kDouble), chunks.name(at::kDouble), 1e-8, 4);
}

TEST(CrossEntropy, no_rows_left_is_zero) {
  for (const Path path : {Path::fused, Path::plain})
    for (const std::int64_t rows : {0, 1, 5}) {
      const fixture::Function function = [&](const Tensors& in) {
        return cross_entropy(in[0], in[1], in[2], words(std::vector<std::int64_t>(rows, -1)), 0, path);
      };
      const fixture::Outcome outcome = fixture::differentiate(function, Case{rows, 3, 4, true}.inputs(at::kFloat));
      EXPECT_EQ(outcome.value.item<double>(), 0);
      for (const at::Tensor& gradient : outcome.gradients) {
        ASSERT_TRUE(gradient.defined());
        EXPECT_EQ(gradient.count_nonzero().item<std::int64_t>(), 0);  // NaN counts as nonzero
      }
    }
}

TEST(CrossEntropy, rows_left_out_change_nothing) {
  const Case each{9, 5, 7};
  const Tensors inputs = each.inputs(at::kDouble);
  const at::Tensor target = each.target();
  const at::Tensor chosen = words({0, 2, 3, 8});
  at::Tensor sparse = at::ones_like(target).neg();
  sparse.index_copy_(0, chosen, target.index_select(0, chosen));
  const double some = cross_entropy(inputs[0], inputs[1], {}, sparse, 0, Path::fused).item<double>();
  const at::Tensor rows = inputs[0].index_select(0, chosen), their = target.index_select(0, chosen);
  EXPECT_NEAR(some, cross_entropy(rows, inputs[1], {}, their, 0, Path::fused).item<double>(), 1e-14);
}

TEST(CrossEntropy, extreme_logits_are_finite) {
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    for (const double softcap : {0.0, 30.0}) {
      const Tensors inputs{at::tensor({1e4, -1e4, 1e4, 0.0}, type).view({4, 1}),
                           at::tensor({1.0, -1.0, 0.5, 0.0, 1.0}, type).view({5, 1})};
      const auto with = [&](Path path) {
        return [=](const Tensors& in) { return cross_entropy(in[0], in[1], {}, words({1, 1, 0, 4}), softcap, path); };
      };
      fixture::expect_equal(with(Path::fused), with(Path::plain), inputs, tolerance(type), fmt::format("softcap {}", softcap));
    }
}

TEST(CrossEntropy, nan_is_not_hidden) {
  for (const double bad : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()})
    for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
      Tensors inputs = Case{3, 2, 20}.inputs(type);
      inputs[1][7][0] = bad;
      const fixture::Outcome outcome = fixture::differentiate(Case{3, 2, 20}.with(Path::fused), inputs);
      EXPECT_FALSE(std::isfinite(outcome.value.item<double>()));
      EXPECT_TRUE(outcome.gradients[0].isnan().any().item<bool>());
    }
}

TEST(CrossEntropy, takes_inputs_of_any_stride) {
  const Case each{30, 6, 50, true, true, true};
  at::Tensor target = words(std::vector<std::int64_t>(60, 99));
  target.slice(0, 0, 60, 2).copy_(each.target());
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const auto with = [&](Path path) {
      return [&, path](const Tensors& in) {
        return cross_entropy(in[0].t(), in[1].slice(1, 0, 12, 2), in[2].slice(0, 0, 150, 3), target.slice(0, 0, 60, 2), 1.5,
                             path);
      };
    };
    const Tensors inputs{values({6, 30}, 1, type), values({50, 12}, 2, type), values({150}, 3, type)};
    fixture::expect_equal(with(Path::fused), with(Path::plain), inputs, tolerance(type), "strides");
  }
  const at::Tensor row = values({1, 6}, 1).expand({30, 6});
  const double got = cross_entropy(row, values({50, 6}, 2), {}, each.target(), 0, Path::fused).item<double>();
  EXPECT_NEAR(got, cross_entropy(row, values({50, 6}, 2), {}, each.target(), 0, Path::plain).item<double>(), 1e-13);
}

TEST(CrossEntropy, weight_may_be_tied) {
  const auto with = [](Path path) {
    return [path](const Tensors& in) {
      const at::Tensor hidden = in[0].index_select(0, words({3, 1, 4, 1}));  // the embedding is the output matrix
      return cross_entropy(hidden.tanh(), in[0], {}, words({1, 4, 1, 5}), 0, path);
    };
  };
  for (const at::ScalarType type : {at::kFloat, at::kDouble})
    fixture::expect_equal(with(Path::fused), with(Path::plain), {values({8, 5}, 1, type)}, tolerance(type), "tied");
}

TEST(CrossEntropy, only_what_is_wanted_has_a_gradient) {
  const Case each{20, 5, 9, true, true, true};
  const Tensors inputs = each.inputs(at::kDouble);
  const fixture::Outcome all = fixture::differentiate(each.with(Path::plain), inputs);
  for (unsigned bits = 1; bits < 8; ++bits) {
    const std::vector<bool> wanted{(bits & 1) != 0, (bits & 2) != 0, (bits & 4) != 0};
    const fixture::Outcome some = fixture::differentiate(each.with(Path::fused), inputs, wanted);
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(some.gradients[i].defined(), wanted[i]);
      if (wanted[i]) {
        EXPECT_LE(fixture::distance(some.gradients[i], all.gradients[i]), 1e-12);
      }
    }
  }
}

TEST(CrossEntropy, without_gradients_it_is_the_same_loss) {
  const Case each{65, 17, 1000, true, false, true};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    Tensors inputs = each.inputs(type);
    const at::Tensor none = each.with(Path::fused)(inputs);
    for (at::Tensor& input : inputs) input.requires_grad_();
    const at::Tensor some = each.with(Path::fused)(inputs);
    const c10::AutoGradMode off(false);
    const at::Tensor guarded = each.with(Path::fused)(inputs);
    EXPECT_FALSE(none.requires_grad());
    EXPECT_TRUE(some.requires_grad());
    EXPECT_FALSE(guarded.requires_grad());
    EXPECT_TRUE(fixture::same_bits(none, guarded));
    EXPECT_LE(fixture::distance(none, some), type == at::kFloat ? 1e-6 : 1e-14);
    EXPECT_EQ(none.scalar_type(), type);
    EXPECT_EQ(none.dim(), 0);
  }
}

TEST(CrossEntropy, same_bits_twice) {
  const Case each{300, 17, 5003, true, true, true};
  for (const at::ScalarType type : {at::kFloat, at::kDouble}) {
    const Tensors inputs = each.inputs(type);
    const fixture::Outcome a = fixture::differentiate(each.with(Path::fused), inputs);
    const fixture::Outcome b = fixture::differentiate(each.with(Path::fused), inputs);
    EXPECT_TRUE(fixture::same_bits(a.value, b.value));
    for (std::size_t i = 0; i < inputs.size(); ++i) EXPECT_TRUE(fixture::same_bits(a.gradients[i], b.gradients[i])) << i;
  }
}

TEST(CrossEntropy, backward_twice_adds_up) {
  const Case each{20, 5, 9, true};
  Tensors once = each.inputs(at::kDouble), twice = each.inputs(at::kDouble);
  for (at::Tensor& input : once) input.requires_grad_();
  for (at::Tensor& input : twice) input.requires_grad_();
  each.with(Path::fused)(once).backward();
  const at::Tensor loss = each.with(Path::fused)(twice);
  loss.backward({}, true);
  loss.mul(3).backward({}, true);
  for (std::size_t i = 0; i < once.size(); ++i) EXPECT_LE(fixture::distance(twice[i].grad(), once[i].grad().mul(4)), 1e-14);
  EXPECT_NE(message_of([&] { torch::autograd::grad({loss}, {twice[0]}, {}, true, true); }).find("no second derivative"),
            std::string::npos);
  loss.backward();
  EXPECT_THROW(loss.backward(), std::exception);  // libtorch: the graph is freed
}

TEST(CrossEntropy, wrong_targets_are_errors) {
  const Tensors in = Case{3, 2, 10}.inputs(at::kFloat);
  for (const Path path : {Path::fused, Path::plain}) {
    const auto error = [&](const at::Tensor& target) {
      return message_of([&] { cross_entropy(in[0], in[1], {}, target, 0, path); });
    };
    EXPECT_EQ(error(words({0, 10, 1})), "cross_entropy: target 10 of row 1 is outside [-1, 10)");
    EXPECT_EQ(error(words({0, 9, -2})), "cross_entropy: target -2 of row 2 is outside [-1, 10)");
    EXPECT_NE(error(words({0, 1, 2}).to(at::kInt)).find("int64"), std::string::npos);
  }
}

TEST(CrossEntropy, wrong_shapes_are_errors) {
  const at::Tensor hidden = values({3, 2}, 1), weight = values({10, 2}, 2), target = words({0, 1, 2});
  const auto error = [&](const at::Tensor& h, const at::Tensor& w, const at::Tensor& b, const at::Tensor& t, double cap = 0) {
    return message_of([&] { cross_entropy(h, w, b, t, cap, Path::fused); });
  };
  EXPECT_NE(error(hidden, values({10, 3}, 2), {}, target).find("hidden [3, 2], weight [10, 3], bias none"), std::string::npos);
  EXPECT_NE(error(hidden, weight, values({9}, 3), target).find("bias [9]"), std::string::npos);
  EXPECT_NE(error(hidden, weight, {}, words({0, 1})).find("target [2]"), std::string::npos);
  EXPECT_NE(error(hidden.view({3, 2, 1}), weight, {}, target).find("do not fit together"), std::string::npos);
  EXPECT_NE(error(hidden, weight, {}, target.view({3, 1})).find("do not fit together"), std::string::npos);
  EXPECT_NE(error(hidden, weight, {}, target, -1).find("soft-cap"), std::string::npos);
}

TEST(CrossEntropy, other_types_take_the_plain_path) {
  const Case each{7, 4, 5};
  const double expected = each.with(Path::plain)(each.inputs(at::kDouble)).item<double>();
  EXPECT_NEAR(each.with(Path::fused)(each.inputs(at::kBFloat16)).item<double>(), expected, 0.05);
}

}  // namespace cross_entropy_test
