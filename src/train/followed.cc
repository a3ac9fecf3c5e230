#include "train/followed.h"

#include <variant>

#include <ATen/ops/abs.h>
#include <ATen/ops/sum.h>
#include <fmt/format.h>

#include <cautious/error.h>

namespace cautious::train {

double Followed::decay_factor(std::int64_t number, double lr, Optimizer& optimizer,
                              const std::vector<at::Tensor>& parameters) const {
  double plain = 0;  // budget of a factor of 1
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const Group& group = optimizer.group_of(i);
    if (group.decay == DecaySwitch::off || std::holds_alternative<None>(group.recipe.decay)) continue;
    if (what_ == What::density) {
      optimizer.set_density(i, trace_.ratio(number, i));
    } else {
      const auto sum = parameters[i].detach().abs().sum(at::kDouble).item<double>();
      plain += lr * group.lr_multiplier * group.recipe.weight_decay * sum;
    }
  }
  if (what_ == What::density) return 1;
  return plain > 0 ? trace_.budget(number) / plain : 0;
}

std::optional<Followed> followed_run(const run::RunConfig& config, const std::vector<std::string>& tensors) {
  const bool density = !config.optimizer.density_from.empty();
  const std::string& from = density ? config.optimizer.density_from : config.optimizer.budget_from;
  if (from.empty()) return std::nullopt;
  run::DecayTrace trace = run::DecayTrace::read(from);
  if (trace.tensors() != tensors) {
    throw Error(Fault::data,
                fmt::format("{}: its {} tensors are not the {} of this model", from, trace.tensors().size(), tensors.size()));
  }
  if (trace.steps() < steps_of(config)) {
    throw Error(Fault::data,
                fmt::format("{}: its decay trace has {} steps, this run has {}", from, trace.steps(), steps_of(config)));
  }
  return Followed(density ? Followed::What::density : Followed::What::budget, std::move(trace));
}

}  // namespace cautious::train
