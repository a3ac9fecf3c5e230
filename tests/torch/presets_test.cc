// Every preset that a test can afford takes an optimizer step; the counts of all are in model_config_test.
#include <gtest/gtest.h>

#include <cmath>

#include <ATen/ops/randint.h>

#include <cautious/torch.h>

#include "model/transformer.h"

namespace presets_test {

using namespace cautious;

TEST(Presets, TakeAStepWithMuonAndAdamw) {
  int taken = 0;
  for (const std::string& name : model::preset_names()) {
    const model::ModelConfig config = model::preset(name);
    if (size_of(config, 1, 16, false).parameters > 20'000'000) continue;
    model::Transformer model(config, 1);
    Recipe muon = recipe("muon"), adamw = recipe("adamw");
    muon.decay = adamw.decay = Cautious{};
    cautious::torch::Optimizer optimizer(model.named_parameters(), matrices_and_rest(muon, adamw, 10'000), 1e-3);
    const at::Tensor tokens = at::randint(config.vocab, {1, 16}, at::kLong),
                     target = at::randint(config.vocab, {1, 16}, at::kLong);
    double before = 0;
    for (int step = 0; step < 3; ++step) {
      optimizer.zero_grad();
      const at::Tensor loss = model.loss(tokens, target);
      if (step == 0) before = loss.item<double>();
      loss.backward();
      optimizer.step();
      EXPECT_EQ(optimizer.report().total.nonfinite, 0) << name;
      EXPECT_GT(optimizer.report().total.ratio(), 0) << name;
    }
    EXPECT_LT(model.loss(tokens, target).item<double>(), before) << name;
    ++taken;
  }
  EXPECT_EQ(taken, 6);  // five nanos and gemma-15m
}

}  // namespace presets_test
