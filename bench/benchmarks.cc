// Under Google Benchmark, for its statistics and its comparison tools: the cases of `cautious bench step`, and the steps per
// second of the toy experiment (a problem of two variables through the library's Optimizer, every point kept) next to the
// optimizer alone with a constant gradient.
//   benchmarks --benchmark_filter=adamw --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true
#include <array>
#include <string>

#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include <cautious/optimizer.h>

#include "bench/step_case.h"
#include "lab/toy/toy.h"

namespace {

using cautious::Element;
using cautious::bench::Data;
using cautious::bench::LimitRunner;
using cautious::bench::StepCase;
using cautious::bench::StepRunner;

template <class Runner>
void count(benchmark::State& state, const StepCase& c, Runner&& runner) {
  for (auto _ : state) runner.run();
  state.counters["time_per_1e9_params"] =
      benchmark::Counter(static_cast<double>(state.iterations()) * static_cast<double>(c.total()) * 1e-9,
                         benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(c.bytes_per_param() * static_cast<double>(c.total())));
}

void register_case(const StepCase& c) {
  const std::string name =
      fmt::format("{}/{}/{}/{}/{}", c.optimizer, c.decay, cautious::name_of(c.element), c.total(), c.threads);
  benchmark::RegisterBenchmark(name.c_str(), [c](benchmark::State& state) {
    const Data data(c);
    count(state, c, StepRunner(c, data));
  })->UseRealTime();
}

constexpr std::array kArms{"adam", "adamw decay=cautious", "lion decay=cautious", "sgdm decay=cautious lr=0.002"};

void toy(benchmark::State& state) {
  const auto arm = cautious::lab::parse_arm(kArms[static_cast<std::size_t>(state.range(0))], 0.5);
  cautious::lab::ToyOptions options;
  options.steps = 10000;
  for (auto _ : state) benchmark::DoNotOptimize(cautious::lab::toy_path(cautious::lab::problem("circle"), arm, options));
  state.SetItemsProcessed(state.iterations() * options.steps);
  state.SetLabel(arm.name);
}

void optimizer_alone(benchmark::State& state) {
  const auto arm = cautious::lab::parse_arm(kArms[static_cast<std::size_t>(state.range(0))], 0.5);
  cautious::Optimizer optimizer(arm.recipe, {.norms = cautious::Norms::off, .threads = 1});
  std::array<double, 2> x{1.4, 5.2}, g{0.1, -0.1};
  optimizer.add("x", {2}, x.data(), g.data());
  for (auto _ : state) benchmark::DoNotOptimize(optimizer.step({.lr = 1e-9, .lr_max = 1e-9}));
  state.SetItemsProcessed(state.iterations());
  state.SetLabel(arm.name);
}

BENCHMARK(toy)->DenseRange(0, static_cast<int>(kArms.size()) - 1);
BENCHMARK(optimizer_alone)->DenseRange(0, static_cast<int>(kArms.size()) - 1);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  for (const std::size_t n : {10'000ul, 1'000'000ul, 30'000'000ul, 100'000'000ul}) {
    for (const int threads : {1, 2}) {
      for (const Element element : {Element::f32, Element::bf16}) {
        for (const char* optimizer : {"sgdm", "adamw", "lion"}) {
          StepCase c;
          c.optimizer = optimizer;
          c.element = element;
          c.sizes = {n};
          c.threads = threads;
          for (const char* decay : {"none", "decoupled", "cautious"}) {
            c.decay = decay;
            register_case(c);
          }
          const std::string limit = fmt::format("{}/traffic/{}/{}/{}", optimizer, cautious::name_of(element), n, threads);
          benchmark::RegisterBenchmark(limit.c_str(), [c](benchmark::State& state) {
            count(state, c, LimitRunner(c));
          })->UseRealTime();
        }
      }
    }
  }
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
