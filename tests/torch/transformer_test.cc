// The Transformer against a naive forward pass, its gradients, its two paths, recomputation, initial values, errors.
#include "model/transformer.h"

#include <cmath>
#include <functional>
#include <map>

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "naive_transformer.h"
#include "tiny_models.h"

namespace cautious {
namespace transformer_test {

namespace ops = model::ops;

const model::RunOptions kFused{ops::Path::fused, false}, kPlain{ops::Path::plain, false};

at::Tensor words(std::int64_t batch, std::int64_t sequence, std::int64_t vocab, std::int64_t from = 1) {
  const at::Tensor i = at::arange(from, from + batch * sequence, at::kLong);
  return ((i * i * 7 + i * 3) % vocab).view({batch, sequence});
}

Tensors parameters_of(model::Transformer& model) {
  Tensors result;
  for (const auto& item : model.named_parameters()) result[item.key()] = item.value();
  return result;
}

struct Result {
  at::Tensor loss;
  Tensors gradients;
};

Result run(model::Transformer& model, const at::Tensor& tokens, const at::Tensor& target) {
  Result result{model.loss(tokens, target), {}};
  result.loss.backward();
  for (auto& [name, p] : parameters_of(model)) {
    EXPECT_TRUE(p.grad().defined()) << name;
    result.gradients[name] = p.grad().clone();
  }
  model.zero_grad();
  return result;
}

double distance(const at::Tensor& a, const at::Tensor& b) { return (a - b).abs().max().item<double>(); }

std::string message(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(Transformer, ParametersAreThoseOfTheConfig) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 1);
    const std::vector<model::Shape> shapes = model::parameter_shapes(config);
    const auto parameters = model.named_parameters();
    ASSERT_EQ(parameters.size(), shapes.size()) << name;
    std::int64_t count = 0;
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      EXPECT_EQ(parameters[i].key(), shapes[i].name) << name;
      EXPECT_EQ(parameters[i].value().sizes(), at::IntArrayRef(shapes[i].sides)) << name << " " << shapes[i].name;
      count += parameters[i].value().numel();
    }
    EXPECT_EQ(count, size_of(config, 1, 1, false).parameters);
  }
}

TEST(Transformer, LogitsAreThoseOfTheNaiveModel) {
  for (const auto& [name, config] : tiny::models()) {
    for (const model::RunOptions options : {kFused, kPlain}) {
      model::Transformer model(config, 2, options, at::kDouble);
      tiny::shake(model);
      const at::Tensor tokens = words(2, 9, config.vocab), logits = model.logits(tokens);
      ASSERT_EQ(logits.sizes(), at::IntArrayRef({2, 9, config.vocab}));
      NaiveTransformer naive(config, parameters_of(model));
      for (std::int64_t b = 0; b < 2; ++b) {
        const std::int64_t* row = tokens[b].data_ptr<std::int64_t>();
        const auto expected = naive.logits({row, row + 9});
        for (std::int64_t t = 0; t < 9; ++t) {
          for (std::int64_t i = 0; i < config.vocab; ++i) {
            ASSERT_NEAR(logits[b][t].data_ptr<double>()[i], expected[t][i], 1e-10) << name << " " << b << " " << t << " " << i;
          }
        }
      }
    }
  }
}

TEST(Transformer, LossIsTheCrossEntropyOfTheLogits) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 3, kFused, at::kDouble);
    tiny::shake(model);
    const at::Tensor tokens = words(2, 7, config.vocab), target = words(2, 7, config.vocab, 5);
    target.view({-1})[4] = -1;
    const at::Tensor logits = model.logits(tokens).flatten(0, 1);
    const at::Tensor expected = at::nll_loss(at::log_softmax(logits, 1), target.view({-1}), {}, at::Reduction::Mean, -1);
    EXPECT_NEAR(model.loss(tokens, target).item<double>(), expected.item<double>(), 1e-12) << name;
  }
}

TEST(Transformer, FirstLossIsNearLogVocabAndAStepLowersIt) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 4);
    const at::Tensor tokens = words(4, 12, config.vocab), target = words(4, 12, config.vocab, 2);
    const Result first = run(model, tokens, target);
    // Tied and with wide initial values, a token's logit for itself is large.
    const double doubt = config.init == model::Init::truncated_normal ? 0.1 : 1.5;
    EXPECT_NEAR(first.loss.item<double>(), std::log(config.vocab), doubt) << name;
    const at::NoGradGuard guard;
    for (const auto& [parameter, gradient] : first.gradients) {
      EXPECT_TRUE(at::isfinite(gradient).all().item<bool>()) << name << " " << parameter;
      EXPECT_GT(gradient.abs().max().item<double>(), 0) << name << " " << parameter;
      parameters_of(model).at(parameter).sub_(gradient, 0.02);
    }
    EXPECT_LT(model.loss(tokens, target).item<double>(), first.loss.item<double>()) << name;
  }
}

TEST(Transformer, FusedIsPlain) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer fused(config, 5, kFused, at::kDouble), plain(config, 5, kPlain, at::kDouble);
    tiny::shake(fused);
    tiny::shake(plain);
    const at::Tensor tokens = words(3, 11, config.vocab), target = words(3, 11, config.vocab, 2);
    const Result a = run(fused, tokens, target), b = run(plain, tokens, target);
    EXPECT_NEAR(a.loss.item<double>(), b.loss.item<double>(), 1e-10) << name;
    for (const auto& [parameter, gradient] : a.gradients) {
      EXPECT_LE(distance(gradient, b.gradients.at(parameter)), 1e-10) << name << " " << parameter;
    }
  }
}

TEST(Transformer, RecomputingChangesNoBit) {
  for (const auto& [name, config] : tiny::models()) {
    for (const ops::Path path : {ops::Path::fused, ops::Path::plain}) {
      model::Transformer kept(config, 6, {path, false}), again(config, 6, {path, true});
      const at::Tensor tokens = words(2, 10, config.vocab), target = words(2, 10, config.vocab, 2);
      kept.loss(target, tokens).backward();  // gradients add up
      again.loss(target, tokens).backward();
      const Result a = run(kept, tokens, target), b = run(again, tokens, target);
      EXPECT_TRUE(a.loss.equal(b.loss)) << name;
      for (const auto& [parameter, gradient] : a.gradients) {
        EXPECT_TRUE(gradient.equal(b.gradients.at(parameter))) << name << " " << parameter;
      }
      EXPECT_TRUE(kept.logits(tokens).equal(again.logits(tokens)));
    }
  }
}

TEST(Transformer, RecomputingMindsFrozenParametersAndOutlivesTheModel) {
  const model::ModelConfig config = tiny::models().at("gemma");
  auto model = std::make_unique<model::Transformer>(config, 6, model::RunOptions{ops::Path::fused, true});
  Tensors parameters = parameters_of(*model);
  parameters.at("model.embed_tokens.weight").set_requires_grad(false);
  parameters.at("model.layers.0.mlp.up_proj.weight").set_requires_grad(false);
  const at::Tensor loss = model->loss(words(1, 5, config.vocab), words(1, 5, config.vocab, 2));
  model.reset();
  loss.backward();
  EXPECT_FALSE(parameters.at("model.layers.0.mlp.up_proj.weight").grad().defined());
  EXPECT_TRUE(parameters.at("model.layers.0.mlp.gate_proj.weight").grad().defined());
}

TEST(Transformer, GradientsAreThoseOfFiniteDifferences) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 7, kFused, at::kDouble);
    tiny::shake(model);
    const at::Tensor tokens = words(2, 6, config.vocab), target = words(2, 6, config.vocab, 2);
    const Result result = run(model, tokens, target);
    const at::NoGradGuard guard;
    for (const auto& [parameter, tensor] : parameters_of(model)) {
      for (const std::int64_t place : {std::int64_t{1}, tensor.numel() / 2}) {
        double& value = tensor.data_ptr<double>()[place];
        const double before = value, h = 1e-5;
        value = before + h;
        const double above = model.loss(tokens, target).item<double>();
        value = before - h;
        const double below = model.loss(tokens, target).item<double>();
        value = before;
        const double gradient = result.gradients.at(parameter).data_ptr<double>()[place];
        EXPECT_NEAR(gradient, (above - below) / (2 * h), 1e-8 + 1e-6 * std::abs(gradient)) << name << " " << parameter;
      }
    }
  }
}

TEST(Transformer, LaterTokensDoNotChangeEarlierLogits) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 8, kFused, at::kDouble);
    tiny::shake(model);
    const at::Tensor tokens = words(1, 12, config.vocab), other = tokens.clone();
    other.narrow(1, 7, 5).add_(1).remainder_(config.vocab);
    const at::Tensor a = model.logits(tokens), b = model.logits(other);
    EXPECT_LE(distance(a.narrow(1, 0, 7), b.narrow(1, 0, 7)), 1e-13) << name;
    EXPECT_GT(distance(a.narrow(1, 7, 1), b.narrow(1, 7, 1)), 1e-6) << name;
  }
}

TEST(Transformer, OneTokenAndMoreThanTheContext) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 9);
    for (const std::int64_t sequence : {std::int64_t{1}, config.context + 5}) {
      if (config.learned_positions && sequence > 1) {  // it has no vector for them
        EXPECT_THROW(model.logits(words(1, sequence, config.vocab)), Error) << name;
        continue;
      }
      const Result result = run(model, words(1, sequence, config.vocab), words(1, sequence, config.vocab, 2));
      EXPECT_TRUE(std::isfinite(result.loss.item<double>())) << name << " " << sequence;
    }
  }
}

TEST(Transformer, SameSeedSameBits) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 11), other(config, 12), wide(config, 11, {}, at::kDouble);
    const int threads = at::get_num_threads();
    at::set_num_threads(threads == 1 ? 2 : 1);
    model::Transformer same(config, 11);
    at::set_num_threads(threads);
    model::ModelConfig more = config;
    more.tied = !config.tied;
    more.qk_norm = !config.qk_norm;
    model::Transformer longer(more, 11);
    const Tensors b = parameters_of(same), c = parameters_of(other), d = parameters_of(wide), e = parameters_of(longer);
    for (const auto& [parameter, value] : parameters_of(model)) {
      EXPECT_TRUE(value.equal(b.at(parameter))) << name << " " << parameter;
      EXPECT_TRUE(value.equal(d.at(parameter).to(at::kFloat))) << name << " " << parameter;
      EXPECT_EQ(value.equal(c.at(parameter)), value.dim() == 1) << name << " " << parameter;
      EXPECT_TRUE(e.count(parameter) == 0 || value.equal(e.at(parameter))) << name << " " << parameter;
      const bool scale = parameter.ends_with("norm.weight") && config.norm != model::NormKind::rms_offset;
      EXPECT_TRUE(value.dim() == 2 || value.eq(scale ? 1 : 0).all().item<bool>()) << name << " " << parameter;
    }
  }
}

TEST(Transformer, InitialValuesHaveTheirSpread) {
  model::ModelConfig config;
  config.layers = 8;
  const double cut = 0.98658;  // deviation of a normal variable cut at 3
  const auto expect = [&](model::Init init, const std::string& name, const std::vector<std::int64_t>& sides, double deviation,
                          double most) {
    config.init = init;
    std::vector<double> values(std::size_t(sides[0] * sides[1]));
    model::fill_initial(config, {name, sides}, 1, values);
    const at::Tensor v = at::from_blob(values.data(), {std::int64_t(values.size())}, at::kDouble);
    EXPECT_NEAR(v.mean().item<double>(), 0, 0.01 * deviation) << name;
    EXPECT_NEAR(v.std().item<double>(), deviation, 0.01 * deviation) << name;
    EXPECT_NEAR(v.abs().max().item<double>(), most, 0.01 * most) << name;
    EXPECT_LE(v.abs().max().item<double>(), most) << name;
  };
  const std::string layer = "model.layers.5.", o = layer + "self_attn.o_proj.weight", down = layer + "mlp.down_proj.weight";
  expect(model::Init::truncated_normal, "model.embed_tokens.weight", {512, 256}, 0.02 * cut, 0.06);
  expect(model::Init::truncated_normal, layer + "mlp.up_proj.weight", {512, 256}, 0.02 * cut, 0.06);
  expect(model::Init::truncated_normal, o, {512, 256}, 0.005 * cut, 0.015);  // 8 layers: a quarter
  expect(model::Init::mitchell, "model.embed_tokens.weight", {512, 256}, cut / 16, 3. / 16);
  expect(model::Init::mitchell, layer + "self_attn.q_proj.weight", {512, 256}, cut / 16, 3. / 16);
  expect(model::Init::mitchell, down, {512, 256}, cut / 16 / std::sqrt(12), 3. / 16 / std::sqrt(12));
  expect(model::Init::xavier, down, {512, 256}, std::sqrt(2. / 768), std::sqrt(6. / 768));
}

TEST(Transformer, WrongTokensAreOneLine) {
  model::Transformer model(tiny::models().at("llama"), 1);
  const at::Tensor good = words(2, 3, 50);
  const auto with = [&](std::int64_t value) {
    at::Tensor bad = good.clone();
    bad[1][2] = value;
    return bad;
  };
  EXPECT_EQ(message([&] { model.logits(with(50)); }), "tokens has the value 50, but the vocabulary is 50; valid: [0, 49]");
  EXPECT_EQ(message([&] { model.loss(with(-1), good); }), "tokens has the value -1, but the vocabulary is 50; valid: [0, 49]");
  EXPECT_EQ(message([&] { model.loss(good, with(-2)); }), "target has the value -2, but the vocabulary is 50; valid: [-1, 49]");
  EXPECT_EQ(message([&] { model.loss(good, words(3, 2, 50)); }),
            "target is [3, 2], but tokens is [2, 3]; their shapes must be equal");
  EXPECT_EQ(message([&] { model.logits(good.narrow(1, 0, 0)); }), "tokens is [2, 0]; batch and sequence must be at least 1");
  EXPECT_EQ(message([&] { model.logits(good.to(at::kFloat)); }),
            "tokens has 2 sides and type Float; valid: 2 sides [batch, sequence], type Long");
  EXPECT_EQ(message([&] { model::Transformer(model.config(), 1, {}, at::kHalf); }),
            "model's type is Half; choices: Float, Double");
}

TEST(Transformer, LossFallsWhenTraining) {
  for (const auto& [name, config] : tiny::models()) {
    model::Transformer model(config, 10, {ops::Path::fused, name == "gemma"});
    const at::Tensor all = words(1, 13, config.vocab), tokens = all.narrow(1, 0, 12), target = all.narrow(1, 1, 12);
    double first = 0, last = 0;
    for (int step = 0; step < 30; ++step) {
      const Result result = run(model, tokens, target);
      (step == 0 ? first : last) = result.loss.item<double>();
      const at::NoGradGuard guard;
      for (auto& [parameter, tensor] : parameters_of(model)) tensor.sub_(result.gradients.at(parameter).sign(), 0.01);
    }
    EXPECT_LT(last, first - 1) << name << ": " << first << " to " << last;
  }
}

}  // namespace transformer_test
}  // namespace cautious
