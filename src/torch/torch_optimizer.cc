// cautious::torch::Optimizer: construction, and a step over all groups.
#include <algorithm>
#include <cmath>
#include <map>

#include <ATen/ATen.h>
#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/torch.h>

#include "base/text.h"
#include "optim/whole_tensor.h"
#include "torch/parts.h"

namespace cautious::torch {
namespace {

using ::torch::optim::OptimizerParamGroup;
using Groups = std::vector<OptimizerParamGroup>;

std::vector<std::string> keys_of(const Optimizer::Named& parameters) { return parameters.keys(); }

Groups one_group(std::vector<at::Tensor> parameters) { return {OptimizerParamGroup(std::move(parameters))}; }

std::unique_ptr<::torch::optim::OptimizerOptions> boxed(const Options& options) { return std::make_unique<Options>(options); }

// Where each parameter goes; names in the order of the groups.
struct Routed {
  Groups groups;
  std::vector<std::string> names;
};

Routed routed(const Optimizer::Named& parameters, const Routing& routing, double lr) {
  std::vector<std::vector<at::Tensor>> tensors(routing.groups.size());
  std::vector<std::vector<std::string>> names(routing.groups.size());
  for (const auto& item : parameters) {
    if (!item.value().defined())
      throw Error(Fault::usage, fmt::format("parameter {} is an undefined tensor", base::in_quotes(item.key())));
    const std::size_t group = route(routing, item.key(), {item.value().sizes().data(), item.value().sizes().size()});
    tensors[group].push_back(item.value());
    names[group].push_back(item.key());
  }
  Routed result;
  for (std::size_t g = 0; g < routing.groups.size(); ++g) {
    const Group& group = routing.groups[g];
    Options options(lr * group.lr_multiplier);
    options.recipe = group.recipe;
    options.decay = group.decay;
    result.groups.emplace_back(tensors[g], boxed(options));
    result.names.insert(result.names.end(), names[g].begin(), names[g].end());
  }
  return result;
}

Rates rates_of(const Options& options, const ParamGroup& group, std::size_t index) {
  const auto require = [index](const char* what, double value) {
    if (std::isfinite(value) && value >= 0) return;
    throw Error(Fault::usage, fmt::format("group {}: {} is {}; it must be finite and not negative", index, what, value));
  };
  require("lr", options.lr);
  require("lr_max", options.lr_max);
  require("decay_factor", options.decay_factor);
  Rates rates{.lr = options.lr, .highest_lr = std::max(group.highest_lr, options.lr)};
  const double wd = options.recipe.weight_decay * options.decay_factor,
               peak = options.lr_max > 0 ? options.lr_max : rates.highest_lr;
  if (portable::projects(options.recipe.decay)) {
    rates.wd = wd;
  } else if (options.lr > 0) {
    rates.wd = coupled_weight_decay(options.recipe.coupling, wd, options.lr, peak);
  }
  if (!std::isfinite(rates.wd))
    throw Error(Fault::usage, fmt::format("group {}: the weight decay is {} after its coupling", index, rates.wd));
  return rates;
}

Tally tally_of(const double* seen, std::int64_t count) {
  const auto whole = [](double number) { return static_cast<std::int64_t>(std::llround(number)); };
  Tally tally;
  tally.count = count;
  tally.decayed = whole(seen[0]), tally.active = whole(seen[1]), tally.nonfinite = whole(seen[2]);
  tally.x2 = seen[3], tally.g2 = seen[4], tally.u2 = seen[5], tally.budget = seen[6];
  return tally;
}

// Numbers of a report that are still on a device, seven for each tally, and where they go.
struct Pending {
  struct To {
    Tally* tally;
    std::int64_t count;
  };
  at::Tensor seen;
  std::vector<To> to;
};

// One copy per device.
void collect(std::vector<Pending> pending) {
  while (!pending.empty()) {
    const at::Device device = pending.front().seen.device();
    const auto rest =
        std::stable_partition(pending.begin(), pending.end(), [&](const Pending& p) { return p.seen.device() == device; });
    std::vector<at::Tensor> rows;
    for (auto p = pending.begin(); p != rest; ++p) rows.push_back(p->seen.reshape({-1}));
    const at::Tensor all = at::cat(rows).cpu();
    const double* next = all.data_ptr<double>();
    for (auto p = pending.begin(); p != rest; ++p) {
      for (const auto& [tally, count] : p->to) *tally = tally_of(next, count), next += 7;
    }
    pending.erase(pending.begin(), rest);
  }
}

// What a report says of a gradient alone.
at::Tensor survey(const at::Tensor& g) {
  const at::Tensor bad = g.isfinite().logical_not().sum(at::kDouble), g2 = g.to(at::kDouble).square().sum(),
                   none = at::zeros_like(g2);
  return at::stack({none, none, bad, none, g2, none, none});
}

using Gradients = std::vector<std::vector<at::Tensor>>;  // per group and parameter

// Whether a non-finite gradient forbids the step; then `report` says so.
bool skips(const std::vector<ParamGroup>& groups, const Gradients& gradients, Nonfinite policy, StepReport& report) {
  if (policy == Nonfinite::propagate) return false;
  StepReport seen{.step = report.step, .skipped = true, .total = {}, .tensors = {}};
  for (const ParamGroup& group : groups) seen.tensors.resize(seen.tensors.size() + group.entries.size());
  std::vector<Pending> pending;
  std::size_t place = 0;
  for (const std::vector<at::Tensor>& of_group : gradients) {
    for (const at::Tensor& gradient : of_group) {
      if (gradient.defined()) pending.push_back({survey(gradient), {{&seen.tensors[place], 0}}});
      ++place;
    }
  }
  collect(std::move(pending));
  place = 0;
  for (const ParamGroup& group : groups) {
    for (const Entry& entry : group.entries) {
      const Tally& tally = seen.tensors[place++];
      seen.total += tally;
      if (tally.nonfinite == 0 || policy != Nonfinite::error) continue;
      throw Error(Fault::data, fmt::format("the gradient of {} has {} non-finite entries of {}; nothing was changed",
                                           base::in_quotes(entry.name), tally.nonfinite, entry.tensor.numel()));
    }
  }
  if (seen.total.nonfinite == 0) return false;
  report = std::move(seen);
  return true;
}

}  // namespace

void Optimizer::Parts::step(const Groups& given) {
  sync(given);
  std::vector<Rates> rates;
  Gradients gradients(groups.size());
  bool any = false;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    rates.push_back(rates_of(options_of(given[g], g), groups[g], g));
    for (const Entry& entry : groups[g].entries) {
      any = gradients[g].emplace_back(gradient_of(entry)).defined() || any;
    }
  }
  if (!any) throw Error(Fault::usage, "no parameter has a gradient; call backward() first");
  if (skips(groups, gradients, settings.nonfinite, report)) return;
  for (std::size_t g = 0; g < groups.size(); ++g) prepare_core(groups[g], settings, gradients[g]);

  std::vector<std::vector<Tally>> tallies;
  std::vector<Pending> pending;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    ParamGroup& group = groups[g];
    group.recipe = options_of(given[g], g).recipe;
    group.highest_lr = rates[g].highest_lr;
    std::vector<Tally>& of_group = tallies.emplace_back(group.entries.size());
    step_fused(group, rates[g], gradients[g], of_group);
    std::map<c10::DeviceIndex, std::vector<std::size_t>> on_grid;
    for (std::size_t i = 0; i < group.entries.size(); ++i) {
      Entry& entry = group.entries[i];
      if (entry.fused || !gradients[g][i].defined()) continue;
      if (entry.on_grid) {
        on_grid[entry.device.index()].push_back(i);
        continue;
      }
      const aten::Move move{entry.name, group.recipe, group.decay, rates[g].lr, rates[g].wd, settings};
      pending.push_back(
          {aten::step(entry.state, entry.tensor, gradients[g][i].detach(), move), {{&of_group[i], entry.tensor.numel()}}});
    }
    for (const auto& [index, moving] : on_grid) {
      const kernels::GridDevice& grid = *grid_device(group.entries[moving.front()].device);
      Pending& fresh = pending.emplace_back(Pending{step_on_grid(group, moving, rates[g], gradients[g], settings, grid), {}});
      for (const std::size_t i : moving) fresh.to.push_back({&of_group[i], group.entries[i].tensor.numel()});
    }
  }
  collect(std::move(pending));
  StepReport next{.step = report.step + 1, .total = {}, .tensors = {}};
  for (const std::vector<Tally>& of_group : tallies) {
    for (const Tally& tally : of_group) {
      next.tensors.push_back(tally);
      next.total += tally;
    }
  }
  report = std::move(next);
}

Optimizer::Optimizer(std::vector<at::Tensor> parameters, Options defaults, Settings settings)
    : Optimizer(one_group(std::move(parameters)), std::move(defaults), settings) {}

Optimizer::Optimizer(const Named& parameters, Options defaults, Settings settings)
    : ::torch::optim::Optimizer(checked(one_group(parameters.values()), keys_of(parameters)), boxed(defaults)),
      parts_(std::make_unique<Parts>(Parts{.settings = checked(settings)})) {
  const at::NoGradGuard no_grad;
  parts_->sync(param_groups_, keys_of(parameters));
}

Optimizer::Optimizer(const Named& parameters, const Routing& routing, double lr, Settings settings)
    : ::torch::optim::Optimizer(checked(routed(parameters, routing, lr).groups, routed(parameters, routing, lr).names),
                                boxed(Options(lr))),
      parts_(std::make_unique<Parts>(Parts{.settings = checked(settings)})) {
  const at::NoGradGuard no_grad;
  parts_->sync(param_groups_, routed(parameters, routing, lr).names);
}

Optimizer::Optimizer(std::vector<OptimizerParamGroup> groups, Options defaults, Settings settings)
    : ::torch::optim::Optimizer(checked(std::move(groups)), boxed(defaults)),
      parts_(std::make_unique<Parts>(Parts{.settings = checked(settings)})) {
  const at::NoGradGuard no_grad;
  parts_->sync(param_groups_);
}

Optimizer::~Optimizer() = default;

at::Tensor Optimizer::step(LossClosure closure) {
  at::Tensor loss;
  if (closure) {
    const at::AutoGradMode with_grad(true);
    loss = closure();
  }
  const at::NoGradGuard no_grad;
  parts_->step(param_groups_);
  return loss;
}

const StepReport& Optimizer::report() const { return parts_->report; }

const std::vector<std::string>& Optimizer::names() const { return parts_->names; }

}  // namespace cautious::torch
