// Muon under what surrounds a step: threads, bf16, non-finite gradients, clipping, saved state.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "fixture.h"
#include "matrix_fixture.h"

namespace muon_run_test {

using namespace matrices;
using fixture::Bf16;

Options with(const std::function<void(Options&)>& change) {
  Options options = alone();
  change(options);
  return options;
}

// f = |X - C|^2 / 2, C = -3 in every entry of a 2 x 2 matrix, weight decay 1, learning rates that sink to 0. The gradient is
// nearly s 11', whose orthogonal factors are I and J (ones on the other diagonal), each taken half of the time: an entry of the
// direction is 1 half of the time and otherwise nearly 0, of either sign, so that the mask by direction is open a quarter of
// the time. 1/2 + x / 4 = 0: the run stops at X = -2, where every entry of the gradient is 1. Masked by the momentum it reaches
// C.
std::vector<double> last_gradient(const char* mask) {
  std::vector<double> x{0.3, -0.2, 0.1, 0.4}, g(4);
  Recipe recipe = muon("cautious", {{"schedule", "exact"}, {"mask", mask}});
  recipe.weight_decay = 1;
  Optimizer optimizer(recipe, alone());
  optimizer.add("x", {2, 2}, x.data(), g.data());
  for (int t = 0; t < 20000; ++t) {
    for (std::size_t i = 0; i < 4; ++i) g[i] = x[i] + 3;
    optimizer.step({.lr = 0.05 / (1 + 0.005 * t)});
  }
  return g;
}

TEST(MuonMask, ByMomentumCuresTheBias) {
  for (const double g : last_gradient("direction")) EXPECT_NEAR(g, 1, 0.05);
  for (const double g : last_gradient("momentum")) EXPECT_NEAR(g, 0, 0.005);
}

// Whoever computes which piece of a product, every entry is summed up in one order. The second matrix is longer than the
// products sum up at a time.
TEST(MuonThreads, GiveTheSameBits) {
  std::vector<Tensor<float>> start{tensor<float>("big", {130, 210}, 1), tensor<float>("long", {700, 140}, 30)};
  for (std::uint64_t k = 0; k < 20; ++k) start.push_back(tensor<float>("small" + std::to_string(k), {8, 12}, 2 + k));
  const auto reversed = [](std::size_t count, const std::function<void(std::size_t)>& body) {
    while (count-- > 0) body(count);
  };
  const auto on_threads = [](std::size_t count, const std::function<void(std::size_t)>& body) {
    std::vector<std::thread> threads;
    for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&body, i] { body(i); });
    for (auto& thread : threads) thread.join();
  };
  for (const char* schedule : {"paper", "turbo"}) {
    const Recipe recipe = muon("cautious", {{"schedule", schedule}});
    const auto one = joined(stepped(recipe, start, with([](Options& o) { o.threads = 1; })));
    for (const int threads : {2, 3}) {
      EXPECT_EQ(joined(stepped(recipe, start, with([&](Options& o) { o.threads = threads; }))), one) << threads;
      EXPECT_EQ(joined(stepped(recipe, start, with([&](Options& o) { o.threads = threads, o.parallel_for = on_threads; }))),
                one);
      EXPECT_EQ(joined(stepped(recipe, start, with([&](Options& o) { o.threads = threads, o.parallel_for = reversed; }))), one);
    }
  }
}

// A singular value decomposition is one thread's work, whatever there is.
TEST(MuonThreads, ExactHasTheSameBits) {
  const std::vector<Tensor<float>> start{tensor<float>("big", {90, 70}, 1), tensor<float>("small", {8, 12}, 2)};
  const Recipe recipe = muon("cautious", {{"schedule", "exact"}});
  for (const int threads : {2, 3}) {
    EXPECT_EQ(joined(stepped(recipe, start, with([&](Options& o) { o.threads = threads; }))), joined(stepped(recipe, start)));
  }
}

TEST(MuonThreads, TwoOptimizersAtOnceDoNotDisturbEachOther) {
  const std::vector<Tensor<float>> some{tensor<float>("a", {150, 140}, 1), tensor<float>("b", {20, 31}, 2)};
  const std::vector<Tensor<float>> others{tensor<float>("c", {64, 200}, 3), tensor<float>("d", {9, 9}, 4)};
  const Options two = with([](Options& o) { o.threads = 2; });
  const auto first = joined(stepped(muon(), some, two)), second = joined(stepped(muon("layerwise"), others, two));
  for (int round = 0; round < 5; ++round) {
    std::vector<float> a, b;
    std::thread one([&] { a = joined(stepped(muon(), some, two)); });
    std::thread other([&] { b = joined(stepped(muon("layerwise"), others, two)); });
    one.join();
    other.join();
    EXPECT_EQ(a, first);
    EXPECT_EQ(b, second);
  }
}

// Matrix products choose their instructions by themselves, whatever the kernels' are.
TEST(MuonInstructionSets, GiveTheSameBits) {
  const std::vector<Tensor<float>> start{tensor<float>("a", {33, 20}, 1), tensor<float>("b", {5, 300}, 2)};
  for (const std::string& decay : fixture::every_decay()) {
    const auto portable = joined(stepped(muon(decay), start, with([](Options& o) { o.isa = cautious::Isa::portable; })));
    for (const cautious::Isa isa : fixture::isas()) {
      EXPECT_EQ(joined(stepped(muon(decay), start, with([&](Options& o) { o.isa = isa; }))), portable) << decay;
    }
  }
}

TEST(Types, Bf16) {
  const std::vector<Tensor<float>> wide{tensor<float>("w", {6, 10}, 5)};
  const auto f32 = [&] {  // the same parameters, which bf16 holds exactly
    std::vector<Tensor<float>> rounded = wide;
    for (float& x : rounded[0].x) x = fixture::widen(fixture::to_element<Bf16>(x));
    return rounded;
  }();
  const auto run = [&](const Options& options, std::vector<float>& high, std::vector<std::int16_t>& low) {
    auto x = fixture::elements<Bf16>(60, [i = std::size_t{0}, &f32]() mutable { return f32[0].x[i++]; });
    Optimizer optimizer(muon(), options);
    optimizer.add({"w", {6, 10}, cautious::Element::bf16, cautious::Element::f32, x.data(), nullptr});
    for (std::size_t t = 0; t < kSteps; ++t) {
      optimizer.bind(0, x.data(), f32[0].g[t].data());
      optimizer.step(fixture::rates(t));
    }
    high.clear();
    for (const Bf16 each : x) high.push_back(fixture::widen(each));
    EXPECT_EQ(optimizer.state(0)[0].type, options.moments == cautious::Element::bf16 ? "BF16" : "F32");
    if (options.rounding != cautious::Rounding::split) return;
    const auto* halves = static_cast<const std::int16_t*>(optimizer.state(0).at(1).data);
    low.assign(halves, halves + 60);
  };
  const std::vector<float> exact = stepped(muon(), f32)[0].x;
  std::vector<float> x;
  std::vector<std::int16_t> low;
  run(with([](Options& o) { o.rounding = cautious::Rounding::split; }), x, low);
  for (std::size_t i = 0; i < 60; ++i) {
    std::uint32_t high, whole;
    std::memcpy(&high, &x[i], 4);
    std::memcpy(&whole, &exact[i], 4);
    EXPECT_EQ(high + static_cast<std::uint32_t>(low[i]), whole) << "split keeps the f32 weight";
  }
  for (const cautious::Element moments : {cautious::Element::f32, cautious::Element::bf16}) {
    for (const auto rounding : {cautious::Rounding::nearest, cautious::Rounding::stochastic}) {
      run(with([&](Options& o) { o.moments = moments, o.rounding = rounding; }), x, low);
      // A unit in the last place of bf16 a step, and what bf16 moments change in u, at most a few percent of lr.
      for (std::size_t i = 0; i < 60; ++i) EXPECT_NEAR(x[i], exact[i], 3 * 0x1p-7 * std::fabs(exact[i]) + 0.02 * 0.1);
    }
  }
}

TEST(Policies, NonfiniteGradients) {
  const Tensor<double> good = tensor("good", {4, 6}, 1);
  Tensor<double> bad = tensor("bad", {6, 5}, 2);
  const auto solo = stepped(muon(), {good});
  for (const double poison : {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    bad.g[1][7] = poison;
    for (const char* schedule : {"paper", "turbo", "exact"}) {
      const auto after = stepped(muon("cautious", {{"schedule", schedule}, {"blocks", "2"}}), {bad, good});
      for (std::size_t i = 0; i < 30; ++i) EXPECT_EQ(std::isnan(after[0].x[i]), i < 15) << "the block of the entry, no other";
    }
    EXPECT_EQ(stepped(muon(), {bad, good})[1].x, solo[0].x);
    for (const auto policy : {cautious::Nonfinite::skip, cautious::Nonfinite::error}) {
      std::vector<Tensor<double>> both{bad, good}, before;
      Optimizer optimizer(muon(), with([&](Options& o) { o.nonfinite = policy; }));
      add(optimizer, both);
      step(optimizer, both, 0);
      before = both;
      const auto state = fixture::state_bytes(optimizer, 0, 30);
      if (policy == cautious::Nonfinite::skip) {
        EXPECT_TRUE(step(optimizer, both, 1).skipped);
      } else {
        fixture::expect_error([&] { step(optimizer, both, 1); }, {"'bad'", "1 non-finite"});
      }
      EXPECT_EQ(joined(both), joined(before));
      EXPECT_EQ(fixture::state_bytes(optimizer, 0, 30), state);
      step(optimizer, both, 2);
      EXPECT_TRUE(std::isfinite(both[0].x[7])) << "and the next step goes on";
      EXPECT_NE(joined(both), joined(before));
    }
  }
}

TEST(Policies, Clipping) {
  const std::vector<Tensor<double>> start{tensor("a", {6, 10}, 1), tensor("b", {7, 3}, 2)};
  const auto first_step = [&](const Options& options, std::vector<Tensor<double>>& tensors) {
    tensors = start;
    Optimizer optimizer(muon("none"), options);
    add(optimizer, tensors);
    return step(optimizer, tensors, 0);
  };
  std::vector<Tensor<double>> plain, clipped;
  const cautious::StepReport free = first_step(alone(), plain);
  const cautious::StepReport tight = first_step(with([](Options& o) { o.update_rms_clip = 0.05; }), clipped);
  for (std::size_t k = 0; k < 2; ++k) {
    const double factor = 0.05 / free.tensors[k].rms_u();
    ASSERT_LT(factor, 1);
    EXPECT_NEAR(tight.tensors[k].rms_u(), 0.05, 1e-14);
    for (std::size_t i = 0; i < start[k].x.size(); ++i) {
      EXPECT_NEAR(clipped[k].x[i], start[k].x[i] + factor * (plain[k].x[i] - start[k].x[i]), 1e-15);
    }
  }
  // The factor does not see the length of the gradient, so in the first step clipping it changes nothing.
  EXPECT_LT(first_step(with([](Options& o) { o.grad_clip = 0.01; }), clipped).clip_scale, 0.1);
  EXPECT_LE(apart(joined(clipped), joined(plain)), 1e-14);
}

TEST(MuonState, SavedAndLoadedContinuesWithTheSameBits) {
  const auto path = std::filesystem::path(testing::TempDir()) / "muon_test.safetensors";
  const auto routing = cautious::matrices_and_rest(muon("anchored", {{"nesterov", "on"}}), cautious::recipe("adamw"));
  const std::vector<Tensor<float>> start{tensor<float>("w", {40, 30}, 1), tensor<float>("b", {30}, 2)};
  auto tensors = start;
  Optimizer first(routing, alone());
  add(first, tensors);
  step(first, tensors, 0);
  first.save(path);
  auto copies = tensors;
  Optimizer second(routing, alone());
  add(second, copies);
  second.load(path);
  for (std::size_t t = 1; t < kSteps; ++t) step(second, copies, t);
  EXPECT_EQ(joined(copies), joined(stepped(routing, start)));
  Optimizer other(cautious::matrices_and_rest(muon("anchored"), cautious::recipe("adamw")), alone());
  add(other, copies);
  fixture::expect_error([&] { other.load(path); }, {"the recipe of 'w' differs", "nesterov=on", "nesterov=off"});
  std::filesystem::remove(path);
}

}  // namespace muon_run_test
