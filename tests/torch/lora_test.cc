// Low-rank adapters: nothing at first, gradients by finite differences, merged weights, dropout.
#include <cmath>
#include <map>
#include <string>

#include <ATen/TensorOperators.h>
#include <ATen/ops/arange.h>
#include <c10/core/GradMode.h>
#include <gtest/gtest.h>

#include <cautious/error.h>

#include "model/adapters.h"
#include "model/transformer.h"
#include "tiny_models.h"

namespace cautious {
namespace lora_test {

using model::Adapters, model::LoraConfig, model::Transformer;

at::Tensor tokens_of(std::int64_t vocab) { return tiny::row(tiny::words(10, vocab)); }
at::Tensor targets_of(std::int64_t vocab) { return tiny::row(tiny::words(11, vocab)).narrow(1, 1, 10); }

void shake(Adapters& adapters) {
  const at::NoGradGuard guard;
  double phase = 0;
  for (at::Tensor& p : adapters.parameters()) {
    p.add_(at::arange(p.numel(), p.options()).mul(1.3).add(phase += 0.7).cos().view(p.sizes()), 0.3);
  }
}

// W + scale B A of every matrix, in a model without adapters.
void merge(Transformer& model, const Adapters& adapters) {
  const at::NoGradGuard guard;
  for (auto& item : model.named_parameters()) {
    const Adapters::Pair* const pair = adapters.find(item.key());
    if (pair) item.value().add_(pair->b.matmul(pair->a), model::scale_of(adapters.lora()));
  }
}

TEST(Lora, ChangesNothingAtFirst) {
  for (const auto& [name, config] : tiny::models()) {
    const Adapters adapters(config, {.rank = 2}, 3, at::kDouble);
    Transformer plain(config, 1, {}, at::kDouble), adapted(config, 1, {.adapters = &adapters}, at::kDouble);
    const at::Tensor tokens = tokens_of(config.vocab);
    EXPECT_TRUE(plain.logits(tokens).equal(adapted.logits(tokens))) << name;
  }
}

TEST(Lora, MergedIsUnmerged) {
  for (const auto& [name, config] : tiny::models()) {
    for (const LoraConfig& lora :
         {LoraConfig{.rank = 3, .alpha = 2, .rslora = true}, LoraConfig{.rank = 1, .targets = {"q_proj", "down_proj"}}}) {
      Adapters adapters(config, lora, 3, at::kDouble);
      shake(adapters);
      Transformer adapted(config, 1, {.adapters = &adapters}, at::kDouble), merged(config, 1, {}, at::kDouble);
      tiny::shake(merged);
      tiny::shake(adapted);
      const at::Tensor tokens = tokens_of(config.vocab);
      const at::Tensor before = merged.logits(tokens);
      merge(merged, adapters);
      EXPECT_LT((merged.logits(tokens) - adapted.logits(tokens)).abs().max().item<double>(), 1e-11) << name;
      EXPECT_GT((merged.logits(tokens) - before).abs().max().item<double>(), 1e-3) << name;
    }
  }
}

TEST(Lora, GradientsAreThoseOfFiniteDifferences) {
  const model::ModelConfig config = tiny::models().at("all");
  for (const bool recompute : {false, true}) {
    Adapters adapters(config, {.rank = 2, .dropout = 0.3}, 3, at::kDouble);
    shake(adapters);
    Transformer model(config, 1, {.recompute = recompute, .adapters = &adapters}, at::kDouble);
    const at::Tensor tokens = tokens_of(config.vocab), target = targets_of(config.vocab);
    adapters.draw(5);
    model.loss(tokens, target).backward();
    for (const at::Tensor& parameter : model.parameters()) EXPECT_FALSE(parameter.grad().defined());
    const at::NoGradGuard guard;
    for (auto& item : adapters.named_parameters()) {
      const at::Tensor values = item.value().view(-1), slopes = item.value().grad().view(-1);
      for (const std::int64_t i : {std::int64_t{0}, values.numel() - 1}) {
        constexpr double kStep = 1e-6;
        const double before = values[i].item<double>();
        const auto at = [&](double value) {
          values[i].fill_(value);
          return model.loss(tokens, target).item<double>();
        };
        const double slope = (at(before + kStep) - at(before - kStep)) / (2 * kStep);
        values[i].fill_(before);
        EXPECT_NEAR(slopes[i].item<double>(), slope, 1e-8) << item.key();
      }
    }
  }
}

TEST(Lora, DropoutIsAFunctionOfTheDraw) {
  const model::ModelConfig config = tiny::models().at("llama");
  Adapters adapters(config, {.rank = 2, .dropout = 0.5}, 3, at::kDouble);
  shake(adapters);
  Transformer model(config, 1, {.adapters = &adapters}, at::kDouble);
  const at::Tensor tokens = tokens_of(config.vocab), target = targets_of(config.vocab);
  const auto loss = [&](std::uint64_t number) {
    adapters.draw(number);
    return model.loss(tokens, target).item<double>();
  };
  const double first = loss(1), second = loss(2);
  EXPECT_NE(first, second);
  EXPECT_EQ(first, loss(1));
  adapters.eval();
  EXPECT_EQ(loss(1), loss(2));
}

TEST(Lora, NamesAreThoseOfPeft) {
  model::ModelConfig config = tiny::models().at("llama");
  config.layers = 1;
  const Adapters adapters(config, {.rank = 2, .targets = {"v_proj"}}, 0);
  std::map<std::string, std::vector<std::int64_t>> found;
  for (const auto& item : adapters.named_parameters()) found[item.key()] = item.value().sizes().vec();
  const std::map<std::string, std::vector<std::int64_t>> wanted{
      {"base_model.model.model.layers.0.self_attn.v_proj.lora_A.weight", {2, 16}},
      {"base_model.model.model.layers.0.self_attn.v_proj.lora_B.weight", {16, 2}}};
  EXPECT_EQ(found, wanted);
  EXPECT_THROW(Adapters(config, {.rank = 2, .targets = {"w_proj"}}, 0), Error);
}

}  // namespace lora_test
}  // namespace cautious
