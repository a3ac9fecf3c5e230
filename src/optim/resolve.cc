// From recipe, schedule and seed to the numbers that one step uses for each tensor.
#include <algorithm>
#include <cmath>

#include "optim/parts.h"
#include "optim/random_key.h"

namespace cautious {
namespace {

// Index of a decay in the variant's list.
template <class D>
const std::size_t kIndexOf = Decay(D{}).index();

// What all tensors of a group and compute type at step t have in common.
optim::Move common_move(const Group& group, const StepInput& input, double clip_scale) {
  const Recipe& recipe = group.recipe;
  optim::Move move;
  move.lr = input.lr * group.lr_multiplier;
  move.g_scale = clip_scale;
  move.decay = group.decay == DecaySwitch::on ? recipe.decay.index() : kIndexOf<None>;
  move.projects = move.decay == kIndexOf<Selective>;
  const double wd = recipe.weight_decay * input.decay_factor;
  if (move.projects) {
    move.wd = wd;
  } else if (move.decay != kIndexOf<None> && move.lr > 0) {
    move.wd = coupled_weight_decay(recipe.coupling, wd, move.lr, input.lr_max * group.lr_multiplier);
  }
  return move;
}

}  // namespace

const optim::Coefficients& Optimizer::Parts::coefficients_of(const optim::Slot& slot, const StepInput& input) {
  const Element compute = compute_element(slot);
  const std::int64_t t = slot.t + 1;
  const auto fits = [&](const optim::Coefficients& c) { return c.group == slot.group && c.compute == compute && c.t == t; };
  const auto found = std::find_if(coefficients.rbegin(), coefficients.rend(), fits);
  if (found != coefficients.rend()) return *found;

  const Group& group = routing.groups[slot.group];
  optim::Coefficients& fresh = coefficients.emplace_back(slot.group, compute, t);
  const std::size_t rule = group.recipe.rule.index();
  const auto prepare = compute == Element::f64 ? kernels->f64.fill[rule].prepare : kernels->f32.fill[rule].prepare;
  std::visit([&](const auto& r) { prepare(&r, t, fresh.prepared); }, group.recipe.rule);
  fresh.move = common_move(group, input, report.clip_scale);
  fresh.move.rule = &fresh.prepared;
  if (group.decay == DecaySwitch::on) {
    optim::set_mask(*kernels, slot, group.recipe.decay, fresh.move);
  } else {
    optim::set_mask(*kernels, slot, None{}, fresh.move);
  }
  return fresh;
}

void Optimizer::Parts::resolve(const StepInput& input) {
  coefficients.clear();
  coefficients.reserve(slots.size());  // moves point into it
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (taking_part[s] == 0) continue;
    const optim::Slot& slot = slots[s];
    const optim::Coefficients& common = coefficients_of(slot, input);
    optim::Move& move = moves[s] = common.move;
    if (move.decay == kIndexOf<Random>) optim::set_mask(*kernels, slot, Random{slot.density}, move);
    if (is_random(recipe_of(slot).decay)) {
      move.chance = optim::random_key(options.seed, optim::Purpose::decay, common.t, slot.name_hash);
    }
    if (slot.parameter.element == Element::bf16 && options.rounding == Rounding::stochastic) {
      move.rounding = optim::random_key(options.seed, optim::Purpose::rounding, common.t, slot.name_hash);
    }
  }
}

}  // namespace cautious
