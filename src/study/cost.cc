// Estimates from counts of operations. The rates are rounded measurements: small models on one core of a desktop or server
// processor train at 30 to 45 GFLOP/s.
#include <algorithm>

#include "study/halving.h"
#include "study/reproduce.h"

namespace cautious::study {
namespace {

constexpr double kCoreRate = 30e9;            // operations per second
constexpr double kStart = 3;                  // seconds for a process to start and to end
constexpr double kGpuRate = 0.4 * 989e12;     // of a present data-centre GPU, in bf16
constexpr double kForwardOfStep = 1.0 / 3.0;  // what an evaluation does of a training step's operations

struct RunCost {
  double operations, memory;
};

RunCost cost_of(const run::RunConfig& config) {
  const std::int64_t sequence = run::sequence_length(config), part = config.train.batch_size / config.train.grad_accum;
  const model::ModelSize size = size_of(config.model.shape, part, sequence, config.model.recompute);
  const auto steps = static_cast<double>(steps_of(config));
  const double trained = steps * static_cast<double>(config.train.batch_size * sequence);
  const double evaluations = config.eval.every > 0 ? 1 + steps / static_cast<double>(config.eval.every) : 1;
  const double evaluated = evaluations * static_cast<double>(config.eval.tokens) * kForwardOfStep;
  return {(trained + evaluated) * size.flops_per_token, static_cast<double>(size.parameter_bytes + size.activation_bytes)};
}

// Later stages are a third of the points with twice the steps.
double of_all_stages(std::size_t points, int stages) {
  double sum = 0, length = 1;
  auto runs = static_cast<double>(points);
  for (int stage = 0; stage < stages; ++stage, length *= 2) {
    sum += runs * length;
    runs = static_cast<double>(kept(static_cast<std::size_t>(runs)));
  }
  return sum / static_cast<double>(points);
}

}  // namespace

Cost cost_of(const Experiment& experiment) {
  Plan one = experiment.plan;
  one.seeds.resize(1);
  const std::vector<PlannedRun> runs = expand(one);
  const auto seeds = static_cast<double>(experiment.plan.seeds.size());
  const double factor = seeds * of_all_stages(runs.size(), experiment.stages);
  Cost cost;
  for (std::size_t left = runs.size(), stage = 0; stage < static_cast<std::size_t>(experiment.stages); ++stage) {
    cost.runs += left * experiment.plan.seeds.size();
    left = kept(left);
  }
  for (const PlannedRun& run : runs) {
    const RunCost of_run = cost_of(run.config);
    cost.core_hours += factor * of_run.operations / kCoreRate / 3600;
    cost.gpu_hours += factor * of_run.operations / kGpuRate / 3600;
    cost.memory = std::max(cost.memory, of_run.memory);
  }
  cost.core_hours += static_cast<double>(cost.runs) * kStart / 3600;
  return cost;
}

}  // namespace cautious::study
