// Construction, registration of tensors and their checks.
#include <cautious/optimizer.h>

#include <cmath>
#include <cstring>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "base/text.h"
#include "optim/parts.h"
#include "optim/polar.h"
#include "optim/random_key.h"
#include "optim/shaping.h"

namespace cautious {
namespace {

using optim::Slot;

[[noreturn]] void refuse(const std::string& message) { throw Error(Fault::usage, message); }

std::size_t coordinates(const Parameter& parameter) {
  constexpr std::int64_t kMost = std::int64_t{1} << 48;
  std::int64_t count = 1;
  for (const std::int64_t side : parameter.shape) {
    if (side < 0) refuse(fmt::format("tensor {} has a side of length {}", base::in_quotes(parameter.name), side));
    if (side > 0 && count > kMost / side)
      refuse(fmt::format("tensor {} has more than 2^48 coordinates", base::in_quotes(parameter.name)));
    count *= side;
  }
  return static_cast<std::size_t>(count);
}

// A tensor of buffers that know their size.
template <class T>
Parameter of_spans(std::string name, std::vector<std::int64_t> shape, std::span<T> x, std::span<const T> g) {
  Parameter tensor{std::move(name), std::move(shape), element_of<T>(),
                   element_of<T>(), x.data(),         g.empty() ? nullptr : g.data()};
  const std::size_t count = coordinates(tensor);
  const auto require = [&](const char* which, std::size_t size) {
    if (size == count) return;
    refuse(
        fmt::format("tensor {}: {} has {} elements, but its shape has {}", base::in_quotes(tensor.name), which, size, count));
  };
  require("x", x.size());
  if (!g.empty()) require("g", g.size());
  return tensor;
}

bool gradient_fits(const Parameter& parameter) {
  return parameter.gradient == parameter.element || (parameter.element == Element::bf16 && parameter.gradient == Element::f32);
}

bool has_whole_direction(const Group& group, const Options& options) {
  const Shaping shaping = optim::shaping_of(group.recipe.rule);
  return options.update_rms_clip > 0 || shaping == Shaping::tensor || shaping == Shaping::matrix;
}

template <class Has>
std::string decays_with(const Has& has) {
  std::vector<std::string> names = decay_names();
  std::erase_if(names, [&](const std::string& name) { return !has(decay(name)); });
  return base::join(names);
}

void check_multiplier(const std::string& group, double lr_multiplier) {
  if (std::isfinite(lr_multiplier) && lr_multiplier >= 0) return;
  refuse(
      fmt::format("group {}: lr_multiplier is {}; it must be finite and not negative", base::in_quotes(group), lr_multiplier));
}

void check_share(const Share& share) {
  if (share.ranks < 1) refuse(fmt::format("share.ranks is {}; it must be at least 1", share.ranks));
  if (share.rank < 0 || share.rank >= share.ranks) {
    refuse(fmt::format("share.rank is {}; of {} ranks it must be one from 0 to {}", share.rank, share.ranks, share.ranks - 1));
  }
  if (share.ranks > 1 && !share.exchange) refuse(fmt::format("{} ranks need share.exchange, which is not set", share.ranks));
}

// Where a tensor goes: to the group it names, or along the first route that fits.
std::size_t group_for(const Routing& routing, const Parameter& parameter) {
  if (parameter.group.empty()) return route(routing, parameter.name, parameter.shape);
  std::vector<std::string_view> groups;
  for (const Group& group : routing.groups) groups.push_back(group.name);
  return base::index_of_name("parameter group", parameter.group, groups);
}

Slot& slot_at(std::vector<Slot>& slots, std::size_t tensor) {
  if (tensor >= slots.size())
    refuse(fmt::format("tensor {} does not exist; the optimizer has {} tensors", tensor, slots.size()));
  return slots[tensor];
}

}  // namespace

std::vector<FieldInfo> fields(const Options& options) { return base::fields_of(options); }
void set(Options& options, std::string_view field, std::string_view value) {
  base::set_field(options, "option of the optimizer", field, value);
}
void check(const Options& options) { base::check_fields(options); }

Optimizer::Optimizer(const Recipe& recipe, Options options) : Optimizer(everything(recipe), std::move(options)) {}

Optimizer::Optimizer(Routing routing, Options options) : parts_(std::make_unique<Parts>()) {
  check(options);
  check_share(options.share);
  for (const Group& group : routing.groups) {
    cautious::check(group.recipe);
    check_multiplier(group.name, group.lr_multiplier);
  }
  parts_->kernels = &kernels::kernels_for(options.isa);
  parts_->routing = std::move(routing);
  parts_->options = std::move(options);
}

Optimizer::~Optimizer() = default;
Optimizer::Optimizer(Optimizer&&) noexcept = default;
Optimizer& Optimizer::operator=(Optimizer&&) noexcept = default;

std::size_t Optimizer::add(Parameter parameter) {
  Parts& p = *parts_;
  if (parameter.name.empty()) refuse("a tensor needs a name");
  if (p.index.contains(parameter.name))
    refuse(fmt::format("there is a tensor named {} already", base::in_quotes(parameter.name)));
  base::check_choice(parameter.element, fmt::format("the element type of {}", base::in_quotes(parameter.name)));
  base::check_choice(parameter.gradient, fmt::format("the gradient type of {}", base::in_quotes(parameter.name)));
  Slot slot;
  slot.count = coordinates(parameter);
  if (parameter.x == nullptr && slot.count > 0)
    refuse(fmt::format("tensor {} has no data: x is null", base::in_quotes(parameter.name)));
  if (!gradient_fits(parameter)) {
    refuse(
        fmt::format("tensor {} is {} with a gradient of {}; the gradient must be of the parameter's type, or f32 beside bf16",
                    base::in_quotes(parameter.name), name_of(parameter.element), name_of(parameter.gradient)));
  }
  slot.group = group_for(p.routing, parameter);
  const Group& group = p.routing.groups[slot.group];
  slot.name_hash = base::hash_of(parameter.name);
  slot.moments = p.kernels->f32.fill[group.recipe.rule.index()].moments;
  slot.moment = parameter.element == Element::f64 ? Element::f64 : p.options.moments;
  slot.split = parameter.element == Element::bf16 && p.options.rounding == Rounding::split;
  slot.looks_first = group.decay == DecaySwitch::on && portable::looks_first(group.recipe.decay);
  slot.whole_tensor = slot.looks_first || has_whole_direction(group, p.options);
  slot.random = is_random(group.recipe.decay);
  if (const Polar* how = optim::polar_in(group.recipe.rule)) {
    optim::matrices_of(parameter.name, parameter.shape, how->blocks);
  }
  slot.decay = group.recipe.decay;
  if (has_anchor(group.recipe.decay)) {
    const auto* x = static_cast<const std::byte*>(parameter.x);
    slot.x0.assign(x, x + slot.count * size_of(parameter.element));
  }
  slot.parameter = std::move(parameter);
  const std::size_t tensor = p.slots.size();
  p.index.emplace(slot.parameter.name, tensor);
  p.slots.push_back(std::move(slot));
  return tensor;
}

std::size_t Optimizer::add(std::string name, std::vector<std::int64_t> shape, std::span<float> x, std::span<const float> g) {
  return add(of_spans(std::move(name), std::move(shape), x, g));
}
std::size_t Optimizer::add(std::string name, std::vector<std::int64_t> shape, std::span<double> x, std::span<const double> g) {
  return add(of_spans(std::move(name), std::move(shape), x, g));
}
std::size_t Optimizer::add(std::string name, std::vector<std::int64_t> shape, std::span<Bf16> x, std::span<const Bf16> g) {
  return add(of_spans(std::move(name), std::move(shape), x, g));
}

void Optimizer::bind(std::size_t tensor, void* x, const void* g) {
  Slot& slot = slot_at(parts_->slots, tensor);
  if (x == nullptr && slot.count > 0)
    refuse(fmt::format("tensor {} has no data: x is null", base::in_quotes(slot.parameter.name)));
  slot.parameter.x = x;
  slot.parameter.g = g;
}

void Optimizer::set_anchor(std::size_t tensor, const void* x0) {
  Slot& slot = slot_at(parts_->slots, tensor);
  const Decay& decay = parts_->recipe_of(slot).decay;
  if (!has_anchor(decay)) {
    refuse(fmt::format("tensor {} has no anchor: its decay is '{}'; anchors belong to: {}",
                       base::in_quotes(slot.parameter.name), name_of(decay), decays_with(has_anchor)));
  }
  if (x0 == nullptr && slot.count > 0)
    refuse(fmt::format("tensor {}: the anchor x0 is null", base::in_quotes(slot.parameter.name)));
  if (slot.count > 0) std::memcpy(slot.x0.data(), x0, slot.x0.size());
}

void Optimizer::set_density(std::size_t tensor, double density) {
  Slot& slot = slot_at(parts_->slots, tensor);
  double* own = density_in(slot.decay);
  if (own == nullptr) {
    refuse(fmt::format("tensor {} has no density: its decay is '{}'; densities belong to: {}",
                       base::in_quotes(slot.parameter.name), name_of(slot.decay),
                       decays_with([](Decay decay) { return density_in(decay) != nullptr; })));
  }
  base::check_range("density", density, kFraction);
  *own = density;
}

void Optimizer::set_group(std::size_t group, const Recipe& recipe, double lr_multiplier) {
  Parts& p = *parts_;
  if (group >= p.routing.groups.size())
    refuse(fmt::format("group {} does not exist; the optimizer has {} groups", group, p.routing.groups.size()));
  Group& now = p.routing.groups[group];
  cautious::check(recipe);
  check_multiplier(now.name, lr_multiplier);
  const Polar *was = optim::polar_in(now.recipe.rule), *will = optim::polar_in(recipe.rule);
  const bool same_cut = (was == nullptr) == (will == nullptr) && (was == nullptr || was->blocks == will->blocks);
  if (recipe.rule.index() != now.recipe.rule.index() || recipe.decay.index() != now.recipe.decay.index() || !same_cut ||
      optim::shaping_of(recipe.rule) != optim::shaping_of(now.recipe.rule)) {
    refuse(fmt::format("group {} is '{}' and cannot become '{}'; rule, decay and shaping stay, their numbers may change",
                       base::in_quotes(now.name), to_string(now.recipe), to_string(recipe)));
  }
  if (was != nullptr && *was != *will) p.planned.clear();  // the plan holds what matrices go through
  now.recipe = recipe;
  now.lr_multiplier = lr_multiplier;
  for (Slot& slot : p.slots) {
    if (slot.group == group) slot.decay = recipe.decay;
  }
}

std::size_t Optimizer::size() const { return parts_->slots.size(); }

std::int64_t Optimizer::steps_of(std::size_t tensor) const { return slot_at(parts_->slots, tensor).t; }

const Group& Optimizer::group_of(std::size_t tensor) const {
  return parts_->routing.groups[slot_at(parts_->slots, tensor).group];
}

}  // namespace cautious
