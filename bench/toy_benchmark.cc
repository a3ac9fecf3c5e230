// Steps per second of the toy experiment: a problem of two variables through the library's Optimizer, every point kept, beside
// the optimizer alone with a constant gradient.
#include <array>
#include <string>

#include <benchmark/benchmark.h>

#include <cautious/optimizer.h>

#include "lab/toy/toy.h"

namespace {

using namespace cautious;

constexpr std::array kArms{"adam", "adamw decay=cautious", "lion decay=cautious", "sgdm decay=cautious lr=0.002"};

void toy(benchmark::State& state) {
  const auto arm = lab::parse_arm(kArms[static_cast<std::size_t>(state.range(0))], 0.5);
  lab::ToyOptions options;
  options.steps = 10000;
  for (auto _ : state) benchmark::DoNotOptimize(lab::toy_path(lab::problem("circle"), arm, options));
  state.SetItemsProcessed(state.iterations() * options.steps);
  state.SetLabel(arm.name);
}

void optimizer_alone(benchmark::State& state) {
  const auto arm = lab::parse_arm(kArms[static_cast<std::size_t>(state.range(0))], 0.5);
  Optimizer optimizer(arm.recipe, {.norms = Norms::off, .threads = 1});
  std::array<double, 2> x{1.4, 5.2}, g{0.1, -0.1};
  optimizer.add("x", {2}, x.data(), g.data());
  for (auto _ : state) benchmark::DoNotOptimize(optimizer.step({.lr = 1e-9, .lr_max = 1e-9}));
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(arm.name);
}

BENCHMARK(toy)->DenseRange(0, static_cast<int>(kArms.size()) - 1);
BENCHMARK(optimizer_alone)->DenseRange(0, static_cast<int>(kArms.size()) - 1);

}  // namespace

BENCHMARK_MAIN();
