// From recipe, schedule and seed to the numbers that one step uses for each tensor.
#include <algorithm>
#include <cmath>

#include "optim/parts.h"
#include "optim/random_key.h"

namespace cautious {
namespace {

std::int32_t odds_of(double density) { return static_cast<std::int32_t>(std::floor(density * 0x1p24 + 0.5)); }

// Index of a decay in the variant's list.
template <class D>
const std::size_t kIndexOf = Decay(D{}).index();

}  // namespace

void Optimizer::Parts::resolve(const StepInput& input) {
  coefficients.clear();
  coefficients.reserve(slots.size());  // moves point into it
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (taking_part[s] == 0) continue;
    const optim::Slot& slot = slots[s];
    const Group& group = routing.groups[slot.group];
    const Recipe& recipe = group.recipe;
    const bool decays = group.decay == DecaySwitch::on;
    optim::Move& move = moves[s];
    move = {};
    move.lr = input.lr * group.lr_multiplier;
    move.g_scale = report.clip_scale;
    move.decay = decays ? recipe.decay.index() : kIndexOf<None>;
    move.projects = move.decay == kIndexOf<Selective>;
    if (move.decay != kIndexOf<None> && (move.lr > 0 || move.projects)) {
      const double wd = recipe.weight_decay * input.decay_factor;
      move.wd = move.projects ? wd : coupled_weight_decay(recipe.coupling, wd, move.lr, input.lr_max * group.lr_multiplier);
    }

    const std::int64_t t = slot.t + 1;
    if (move.decay == kIndexOf<Random>) {
      move.odds = odds_of(slot.density);
      move.chance = optim::random_key(options.seed, optim::Purpose::decay, t, slot.name_hash);
    }
    if (slot.parameter.element == Element::bf16 && options.rounding == Rounding::stochastic) {
      move.rounding = optim::random_key(options.seed, optim::Purpose::rounding, t, slot.name_hash);
    }

    const Element compute = compute_element(slot);
    auto fits = [&](const optim::Coefficients& c) { return c.group == slot.group && c.compute == compute && c.t == t; };
    auto found = coefficients.end();
    if (!coefficients.empty() && fits(coefficients.back())) {
      found = coefficients.end() - 1;
    } else {
      found = std::find_if(coefficients.begin(), coefficients.end(), fits);
    }
    if (found == coefficients.end()) {
      found = coefficients.insert(coefficients.end(), {slot.group, compute, t, {}});
      const std::size_t rule = recipe.rule.index();
      const auto prepare = compute == Element::f64 ? kernels->f64.fill[rule].prepare : kernels->f32.fill[rule].prepare;
      std::visit([&](const auto& r) { prepare(&r, t, found->prepared); }, recipe.rule);
    }
    move.rule = &found->prepared;
  }
}

}  // namespace cautious
