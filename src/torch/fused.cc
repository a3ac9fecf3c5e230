// CPU tensors through the fused core: one core per parameter group, pointed to the tensors' memory in every step.
#include <cstring>

#include <ATen/Parallel.h>
#include <ATen/ops/from_blob.h>
#include <c10/core/TensorOptions.h>

#include "base/fields.h"
#include "torch/parts.h"

namespace cautious::torch {
namespace {

at::ScalarType type_named(std::string_view type) {
  return type == "F64" ? at::kDouble : type == "F32" ? at::kFloat : type == "BF16" ? at::kBFloat16 : at::kShort;
}

// Weight decay is one, so that the decay factor of a step is the whole weight decay, coupled by us.
Routing routing_of(const ParamGroup& group) {
  Routing routing = everything(group.recipe);
  routing.groups[0].recipe.weight_decay = 1;
  routing.groups[0].recipe.coupling = Coupling::plain;
  routing.groups[0].decay = group.decay;
  return routing;
}

cautious::Options core_options(const Settings& settings) {
  cautious::Options options;
  base::copy_fields(settings, options);
  return options;
}

}  // namespace

at::Tensor row_after_row(const at::Tensor& tensor) { return tensor.resolve_neg().contiguous(); }

void store_back(const at::Tensor& moved, const at::Tensor& tensor) {
  if (!moved.is_same(tensor)) {
    tensor.copy_(moved);
  } else if (!tensor.is_inference()) {
    tensor.unsafeGetTensorImpl()->bump_version();
  }
}

Settings checked(Settings settings) {
  cautious::check(core_options(settings));
  return settings;
}

std::vector<StateTensor> pieces_of(ParamGroup& group, Entry& entry) {
  std::vector<StateTensor> pieces;
  if (entry.fused) {
    for (const cautious::StateTensor& piece : group.core->state(entry.slot)) {
      pieces.push_back({piece.name, at::from_blob(piece.data, entry.shape, at::TensorOptions().dtype(type_named(piece.type)))});
    }
    return pieces;
  }
  const aten::State& state = entry.state;
  for (const auto& [name, tensor] : {std::pair{"m", &state.m}, {"v", &state.v}, {"low", &state.low}, {"x0", &state.x0}}) {
    if (tensor->defined()) pieces.push_back({name, *tensor});
  }
  return pieces;
}

std::int64_t steps_of(const ParamGroup& group, const Entry& entry) {
  return entry.fused ? group.core->steps_of(entry.slot) : entry.state.t;
}

void set_steps(ParamGroup& group, Entry& entry, std::int64_t t) {
  if (entry.fused) {
    group.core->set_steps(entry.slot, t);
  } else {
    entry.state.t = t;
  }
}

void prepare_core(ParamGroup& group, const Settings& settings, const std::vector<at::Tensor>& gradients) {
  std::vector<Element> types;
  std::size_t count = 0;
  bool fits = true;
  const int threads = at::get_num_threads();
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    const Entry& entry = group.entries[i];
    types.push_back(i < gradients.size() && gradients[i].defined() ? element_of_type(gradients[i].scalar_type())
                                                                   : entry.gradient);
    count += entry.fused;
    fits = fits && (!entry.fused || types.back() == entry.gradient);
  }
  const std::size_t known = group.core ? group.core->size() : 0;
  if (fits && count == known && (count == 0 || threads == group.threads)) return;

  cautious::Options options = core_options(settings);
  options.nonfinite = Nonfinite::propagate;  // a matter of all groups: Parts::step looks at it
  options.threads = threads;
  auto fresh = std::make_shared<cautious::Optimizer>(routing_of(group), options);
  std::vector<std::size_t> slots(group.entries.size());
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    Entry& entry = group.entries[i];
    if (!entry.fused) continue;
    const at::Tensor x = row_after_row(entry.tensor);  // the anchor of a new one
    slots[i] = fresh->add({entry.name, entry.shape, element_of_type(entry.type), types[i], x.data_ptr(), nullptr});
  }
  std::size_t seen = 0;  // new entries of a group come after the known ones
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    Entry& entry = group.entries[i];
    if (!entry.fused || seen++ >= known) continue;
    const auto from = group.core->state(entry.slot), to = fresh->state(slots[i]);
    for (std::size_t k = 0; k < from.size(); ++k) {
      const std::size_t bytes = entry.tensor.numel() * c10::elementSize(type_named(from[k].type));
      if (bytes > 0) std::memcpy(to[k].data, from[k].data, bytes);
    }
    fresh->set_steps(slots[i], group.core->steps_of(entry.slot));
  }
  group.core = std::move(fresh);
  group.threads = threads;
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    group.entries[i].slot = slots[i];
    group.entries[i].gradient = types[i];
  }
}

void step_fused(ParamGroup& group, const Rates& rates, const std::vector<at::Tensor>& gradients, std::vector<Tally>& tallies) {
  struct Bound {
    const Entry* entry;
    at::Tensor x, g;  // kept until the step is done
  };
  std::vector<Bound> bound;
  bool any = false;
  const double* density = density_in(group.recipe.decay);
  for (std::size_t i = 0; i < group.entries.size(); ++i) {
    const Entry& entry = group.entries[i];
    if (!entry.fused) continue;
    const bool moves = gradients[i].defined();
    any = any || moves;
    Bound& now = bound.emplace_back(Bound{&entry, moves ? row_after_row(entry.tensor) : entry.tensor, {}});
    if (moves) now.g = row_after_row(gradients[i]);
    group.core->bind(entry.slot, now.x.data_ptr(), moves ? now.g.data_ptr() : nullptr);
    if (density != nullptr) group.core->set_density(entry.slot, *density);
  }
  if (!any) return;
  const StepReport& report = group.core->step({.lr = rates.lr, .lr_max = rates.highest_lr, .decay_factor = rates.wd});
  for (const Bound& done : bound) {
    tallies[static_cast<std::size_t>(done.entry - group.entries.data())] = report.tensors[done.entry->slot];
    if (done.g.defined()) store_back(done.x, done.entry->tensor);
  }
}

}  // namespace cautious::torch
