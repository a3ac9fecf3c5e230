#include "run/scale.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/text.h"

namespace cautious::run {
namespace {

constexpr double kGiB = 1024.0 * 1024 * 1024;

// Data sheets: dense bf16 (f16 of the V100), NVLink or PCIe of one direction, a network card of 200 (V100: 100, H100: 400) Gb/s
// for each, 25 for the desktop card.
const std::vector<Hardware>& known_hardware() {
  static const std::vector<Hardware> all{{"v100-32g", 125e12, 32 * kGiB, 0.9e12, 150e9, 12.5e9},
                                         {"a100-40g", 312e12, 40 * kGiB, 1.555e12, 300e9, 25e9},
                                         {"a100-80g", 312e12, 80 * kGiB, 2.039e12, 300e9, 25e9},
                                         {"h100-80g", 989e12, 80 * kGiB, 3.35e12, 450e9, 50e9},
                                         {"rtx4090-24g", 165e12, 24 * kGiB, 1.008e12, 25e9, 3.1e9}};
  return all;
}

}  // namespace

std::vector<std::string> hardware_names() {
  std::vector<std::string> names;
  for (const Hardware& one : known_hardware()) names.push_back(one.label);
  return names;
}

Hardware parse_hardware(std::string_view line) {
  const std::vector<base::Word> words = base::words_of(line);
  const std::vector<std::string> names = hardware_names();
  const std::vector<std::string_view> choices(names.begin(), names.end());
  if (words.empty()) throw Error(Fault::usage, "--hardware is missing; choices: " + base::join(names));
  Hardware made = known_hardware()[base::index_of_name("hardware", words.front().text, choices)];
  for (const base::Setting& setting : base::settings_of("hardware", line, std::span(words).subspan(1))) {
    base::with_context(setting.where, [&] { base::set_field(made, "field of the hardware", setting.field, setting.value); });
  }
  return made;
}

Load load_of(const RunConfig& config, int ranks) {
  const bool half = config.train.precision == Precision::bf16 || config.train.precision == Precision::bf16_stochastic;
  const std::int64_t chunk = std::max<std::int64_t>(1, config.train.batch_size / config.train.grad_accum / ranks);
  Load load;
  load.parameters = static_cast<double>(parameters_of(config));
  load.weight_bytes = load.gradient_bytes = half ? 2 : 4;
  load.state_bytes = moment_bytes(config) / load.parameters + (config.train.precision == Precision::bf16 ? 2 : 0);
  if (config.task == TaskKind::image) {
    const model::ImageModelSize size = size_of(config.model.image, chunk);
    load.activation_bytes = static_cast<double>(size.activation_bytes);
    load.flops = size.flops_per_image * static_cast<double>(units_per_step(config));
  } else {
    const model::ModelSize size = size_of(config.model.shape, chunk, sequence_length(config), config.model.recompute);
    load.activation_bytes = static_cast<double>(size.activation_bytes) * (half ? 0.5 : 1);
    load.flops = size.flops_per_token * static_cast<double>(units_per_step(config)) * (config.model.recompute ? 4.0 / 3 : 1);
  }
  return load;
}

double exposed_seconds(double compute, double gradients, double parameters) {
  return std::max(0.0, gradients - compute * 2 / 3) + parameters;
}

StepCost cost_of(const Load& load, const Hardware& hardware, int ranks) {
  const double others = static_cast<double>(ranks - 1) / ranks;
  const double bandwidth = ranks > hardware.per_machine ? std::min(hardware.link, hardware.network) : hardware.link;
  StepCost cost;
  cost.memory = load.parameters * (load.weight_bytes + load.gradient_bytes + load.state_bytes / ranks) + load.activation_bytes;
  cost.compute = load.flops / (ranks * hardware.peak * hardware.utilization);
  cost.gradients = others * load.parameters * load.sum_bytes / bandwidth;
  cost.parameters = others * load.parameters * load.weight_bytes / bandwidth;
  cost.sent = others * load.parameters * (load.sum_bytes + load.weight_bytes);
  cost.exposed = exposed_seconds(cost.compute, cost.gradients, cost.parameters);
  // A rank reads and writes its slice of weights and state once, and reads its gradients.
  const double moved = load.parameters / ranks * (2 * load.weight_bytes + load.gradient_bytes + 2 * load.state_bytes);
  cost.optimizer = moved / hardware.memory_bandwidth;
  return cost;
}

}  // namespace cautious::run
