// The host's side of a launch (src/torch/grid_step.cc), with the grid's blocks and threads run by the CPU on tensors of the
// CPU: the bits of the fused core. No test of this repository has run on a GPU.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cautious/torch.h>

#include "grid_on_cpu.h"
#include "torch/parts.h"
#include "torch_fixture.h"

namespace torch_grid_test {

using cautious::Element;
using cautious::Rounding;
using cautious::torch::Entry;
using cautious::torch::ParamGroup;
using cautious::torch::Settings;
using torch_fixture::same_bits;

constexpr double kRate = 0.02, kDecay = 0.1;

ParamGroup group_of(const std::vector<std::pair<std::string, at::Tensor>>& parameters, const cautious::Recipe& recipe,
                    const Settings& settings) {
  ParamGroup group{.recipe = recipe};
  for (const auto& [name, tensor] : parameters) {
    Entry& entry = group.entries.emplace_back(Entry{.name = name,
                                                    .tensor = tensor,
                                                    .shape = tensor.sizes().vec(),
                                                    .type = tensor.scalar_type(),
                                                    .device = tensor.device(),
                                                    .fused = false,
                                                    .gradient = cautious::torch::element_of_type(tensor.scalar_type())});
    entry.state = cautious::aten::begin(tensor, recipe, settings);
  }
  return group;
}

// Several steps of a group on the grid beside the same by the optimizer's fused path. One parameter is not row after row, one
// has no gradient in some of the steps.
void compare(const cautious::Recipe& recipe, const Settings& settings, at::ScalarType type) {
  std::vector<std::pair<std::string, at::Tensor>> ours, theirs;
  for (const auto& [name, shape] : std::vector<std::pair<std::string, torch_fixture::Shape>>{
           {"matrix", {70, 80}}, {"turned", {30, 9}}, {"rare", {5}}, {"empty", {0, 3}}}) {
    at::Tensor x = torch_fixture::values(shape, type, 3);
    if (name == "turned") x = x.t();
    theirs.emplace_back(name, x.clone().set_requires_grad(true));
    ours.emplace_back(name, x.set_requires_grad(true));
  }
  ASSERT_FALSE(ours[1].second.is_contiguous());
  cautious::torch::Optimizer optimizer(torch_fixture::named(theirs), torch_fixture::options(kRate, recipe), settings);
  ParamGroup group = group_of(ours, recipe, settings);
  const at::NoGradGuard no_grad;
  for (std::size_t step = 0; step < 4; ++step) {
    std::vector<at::Tensor> gradients(ours.size());
    std::vector<std::size_t> moving;
    for (std::size_t i = 0; i < ours.size(); ++i) {
      const bool moves = i != 2 || step == 1;
      if (moves) gradients[i] = torch_fixture::values(ours[i].second.sizes().vec(), type, 100 * step + i);
      if (moves) moving.push_back(i);
      torch_fixture::set_gradient(theirs[i].second, gradients[i]);
    }
    const cautious::torch::Rates rates{.lr = kRate, .highest_lr = kRate, .wd = kDecay};
    const at::Tensor seen = cautious::torch::step_on_grid(group, moving, rates, gradients, settings, grid_on_cpu::kCpu);
    optimizer.step();
    for (std::size_t i = 0; i < ours.size(); ++i) {
      SCOPED_TRACE(ours[i].first + " of step " + std::to_string(step));
      EXPECT_TRUE(same_bits(ours[i].second, theirs[i].second));
    }
    ASSERT_EQ(seen.sizes(), at::IntArrayRef({static_cast<std::int64_t>(moving.size()), 7}));
    for (std::size_t k = 0; k < moving.size(); ++k) {
      const cautious::Tally& tally = optimizer.report().tensors[moving[k]];
      const double* row = seen.data_ptr<double>() + 7 * k;
      EXPECT_EQ(row[0], static_cast<double>(tally.decayed));
      EXPECT_EQ(row[1], static_cast<double>(tally.active));
      EXPECT_NEAR(row[4], tally.g2, 1e-6 * tally.g2);
      EXPECT_NEAR(row[6], tally.budget, 1e-6 * tally.budget);
    }
  }
  EXPECT_EQ(group.entries[0].state.t, 4);
  EXPECT_EQ(group.entries[2].state.t, 1);
}

TEST(TorchGrid, LaunchesTheStepOfTheFusedCore) {
  for (const auto& [rule, decay] : std::vector<std::pair<std::string, std::string>>{
           {"adam", "cautious"}, {"lion", "random"}, {"sgdm", "anchored"}, {"sgd", "decoupled"}}) {
    SCOPED_TRACE(rule + " " + decay);
    const cautious::Recipe recipe = fixture::make({rule, ""}, decay, kDecay);
    compare(recipe, {}, at::kFloat);
    compare(recipe, {.moments = Element::bf16, .rounding = Rounding::stochastic, .seed = 3}, at::kBFloat16);
    compare(recipe, {.rounding = Rounding::split}, at::kBFloat16);
  }
}

TEST(TorchGrid, FitsElementwiseRecipesOfFloatAndBFloat16) {
  const auto fits = [](const std::string& rule, const std::string& decay, at::ScalarType type, const Settings& settings = {},
                       cautious::DecaySwitch on = cautious::DecaySwitch::on) {
    const at::Tensor x = torch_fixture::leaf({4, 4}, type, 1);
    ParamGroup group = group_of({{"x", x}}, fixture::make({rule, rule == "lion-k" ? "huber" : ""}, decay), settings);
    group.decay = on;
    return cautious::torch::fits_grid(group.entries[0], group, settings);
  };
  EXPECT_TRUE(fits("adam", "cautious", at::kFloat));
  EXPECT_TRUE(fits("lion", "random", at::kBFloat16));
  EXPECT_FALSE(fits("adam", "cautious", at::kDouble));
  EXPECT_FALSE(fits("lion-k", "cautious", at::kFloat));
  EXPECT_FALSE(fits("muon", "cautious", at::kFloat));
  EXPECT_FALSE(fits("adam", "layerwise", at::kFloat));
  EXPECT_TRUE(fits("adam", "layerwise", at::kFloat, {}, cautious::DecaySwitch::off));
  EXPECT_FALSE(fits("adam", "cautious", at::kFloat, {.update_rms_clip = 1}));
}

}  // namespace torch_grid_test
