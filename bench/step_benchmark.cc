// The cases of `cautious bench step` under Google Benchmark, for its statistics and its comparison tools:
//   step_benchmark --benchmark_filter=adamw --benchmark_repetitions=9 --benchmark_enable_random_interleaving=true
#include <benchmark/benchmark.h>

#include <fmt/format.h>

#include "bench/step_case.h"

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
    const Data data(c.element, c.total(), c.spacing, c.gradient);
    count(state, c, StepRunner(c, data));
  })->UseRealTime();
}

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
