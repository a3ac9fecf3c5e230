// One step: look at the gradients if a policy needs it (survey), turn recipe, schedule and seed into the numbers of each tensor
// (resolve), one parallel pass over all chunks, the rest of the whole-tensor tensors, and the report.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "optim/parts.h"
#include "optim/random_key.h"

namespace cautious {
namespace {

void check(const StepInput& input, std::size_t tensors) {
  const auto require = [](const std::string& what, double value) {
    if (std::isfinite(value) && value >= 0) return;
    throw Error(Fault::usage, fmt::format("{} is {}; it must be finite and not negative", what, value));
  };
  require("lr", input.lr);
  require("lr_max", input.lr_max);
  require("decay_factor", input.decay_factor);
  if (!input.tensor_factors.empty() && input.tensor_factors.size() != tensors) {
    throw Error(Fault::usage,
                fmt::format("tensor_factors has {} numbers, the optimizer has {} tensors; give one for each or none",
                            input.tensor_factors.size(), tensors));
  }
  for (std::size_t i = 0; i < input.tensor_factors.size(); ++i) {
    require(fmt::format("tensor_factors[{}]", i), input.tensor_factors[i]);
  }
}

// Chunks of the slots taking part: elementwise ones in `plan`, whole-tensor ones in `whole_plan`.
void make_plans(std::vector<optim::Slot>& slots, const std::vector<char>& taking_part, const Options& options,
                optim::Plan& plan, optim::Plan& whole_plan) {
  const int rank = options.share.rank, threads = optim::thread_count(options);
  std::vector<char> whole(slots.size());
  for (std::size_t s = 0; s < slots.size(); ++s) whole[s] = taking_part[s] != 0 && slots[s].whole_tensor;
  plan = optim::make_plan(slots, taking_part, rank, threads);
  whole_plan = optim::make_plan(slots, whole, rank, threads);
}

// What all tensors of a group and compute type at step t have in common.
optim::Move common_move(const Group& group, const StepInput& input, double clip_scale) {
  const Recipe& recipe = group.recipe;
  optim::Move move;
  move.lr = input.lr * group.lr_multiplier;
  move.g_scale = clip_scale;
  move.projects = group.decay == DecaySwitch::on && portable::projects(recipe.decay);
  const double wd = recipe.weight_decay * input.decay_factor;
  if (move.projects) {
    move.wd = wd;
  } else if (group.decay == DecaySwitch::on && !std::holds_alternative<None>(recipe.decay) && move.lr > 0) {
    move.wd = coupled_weight_decay(recipe.coupling, wd, move.lr, input.lr_max * group.lr_multiplier);
  }
  return move;
}

double root_mean(double sum, std::int64_t count) { return std::sqrt(sum / static_cast<double>(count)); }

}  // namespace

double Tally::rms_x() const { return root_mean(x2, count); }
double Tally::rms_g() const { return root_mean(g2, count); }
double Tally::rms_u() const { return root_mean(u2, count); }

void Optimizer::Parts::survey() {
  for (Tally& tally : report.tensors) tally = {};
  optim::parallel(options, plan.jobs.size(), [this](std::size_t j) {
    for (std::size_t c = plan.jobs[j].first; c < plan.jobs[j].last; ++c) {
      if (!is_own(plan.chunks[c])) continue;
      kernels::Counted fresh;
      fresh.g2 = optim::survey_chunk(*kernels, slots[plan.chunks[c].slot], plan.chunks[c], fresh.nonfinite);
      counted[c] = fresh;
    }
  });
  if (options.share.ranks > 1) {
    std::vector<Piece> pieces;
    add_counts(pieces);
    options.share.exchange(pieces, {});
  }
  for (std::size_t c = 0; c < plan.chunks.size(); ++c) {
    Tally& tally = report.tensors[plan.chunks[c].slot];
    tally.g2 += counted[c].g2;
    tally.nonfinite += counted[c].nonfinite;
  }
}

const optim::Coefficients& Optimizer::Parts::coefficients_of(const optim::Slot& slot, double factor, const StepInput& input) {
  const Element element = slot.parameter.element, gradient = slot.parameter.gradient;
  const std::int64_t t = slot.t + 1;
  for (std::size_t c = coefficients.size(); c-- > 0;) {
    if (coefficients[c].fits(slot, factor)) return coefficients[c];
  }
  const Group& group = routing.groups[slot.group];
  optim::Coefficients& fresh = coefficients.emplace_back(optim::Coefficients{slot.group, element, gradient, t, factor});
  const std::size_t rule = group.recipe.rule.index();
  const auto prepare = element == Element::f64 ? kernels->f64.fill[rule].prepare : kernels->f32.fill[rule].prepare;
  std::visit([&](const auto& r) { prepare(&r, t, fresh.prepared); }, group.recipe.rule);
  fresh.move = common_move(group, input, report.clip_scale);
  fresh.move.rule = &fresh.prepared;
  fresh.move.wd *= factor;
  optim::set_mask(*kernels, slot, group.decay == DecaySwitch::on ? group.recipe.decay : Decay(None{}), fresh.move);
  fresh.walk = optim::walk_of(*kernels, slot, group.recipe, options, fresh.move);
  return fresh;
}

void Optimizer::Parts::resolve(const StepInput& input) {
  coefficients.clear();
  coefficients.reserve(slots.size());           // others point into it
  const optim::Coefficients* common = nullptr;  // of the tensor before
  for (std::size_t s = 0; s < slots.size(); ++s) {
    if (taking_part[s] == 0) continue;
    optim::Slot& slot = slots[s];
    const double factor = input.tensor_factors.empty() ? 1 : input.tensor_factors[s];
    if (common == nullptr || !common->fits(slot, factor)) common = &coefficients_of(slot, factor, input);
    shared[s] = common;
    if (slot.parameter.element == Element::bf16 && options.rounding == Rounding::stochastic) {
      slot.rounding = optim::random_key(options.seed, optim::Purpose::rounding, common->t, slot.name_hash);
    }
    if (!has_own_move(slot)) continue;
    moves[s] = common->move;
    if (!slot.random) continue;
    moves[s].chance = optim::random_key(options.seed, optim::Purpose::decay, common->t, slot.name_hash);
    if (routing.groups[slot.group].decay == DecaySwitch::on) optim::set_mask(*kernels, slot, slot.decay, moves[s]);
  }
}

void Optimizer::Parts::add_up() {
  const bool clipped = report.clip_scale != 1;  // then g as given is what the survey saw
  report.total = {};
  std::size_t next = 0, next_whole = 0;  // chunks of both plans are in the order of their slots
  for (std::size_t s = 0; s < slots.size(); ++s) {
    Tally tally;
    if (clipped) tally.g2 = report.tensors[s].g2;
    const auto add = [&](const optim::Plan& of, std::size_t& chunk, const kernels::Counted* seen) {
      for (; chunk < of.chunks.size() && of.chunks[chunk].slot == s; ++chunk) {
        tally.decayed += seen[chunk].decayed;
        tally.active += seen[chunk].active;
        tally.x2 += seen[chunk].x2;
        tally.u2 += seen[chunk].u2;
        tally.budget += seen[chunk].pull;
        tally.nonfinite += seen[chunk].nonfinite;
        if (!clipped) tally.g2 += seen[chunk].g2;
      }
    };
    add(plan, next, counted.data());
    add(whole_plan, next_whole, counted.data() + plan.chunks.size());
    if (taking_part[s] != 0) {
      const optim::Move& move = move_of(s);
      slots[s].t += 1;
      tally.count = static_cast<std::int64_t>(slots[s].count);
      tally.budget *= move.projects ? move.wd : move.lr * move.wd;
      if (options.norms == Norms::off) tally.g2 = 0;
      report.total += tally;
    }
    report.tensors[s] = tally;
  }
}

void Optimizer::Parts::run_job(const optim::Job& job) {
  for (std::size_t c = job.first; c < job.last;) {
    const optim::Chunk& chunk = plan.chunks[c];
    if (!is_own(chunk)) {
      ++c;
      continue;
    }
    const optim::Slot& slot = slots[chunk.slot];
    const optim::Coefficients* common = shared[chunk.slot];
    if (common->walk == nullptr) {
      counted[c] = {};
      if (slot.whole_tensor) {
        optim::fill_only(*kernels, slot, recipe_of(slot), move_of(chunk.slot), chunk);
      } else {
        optim::fill_and_apply(*kernels, slot, recipe_of(slot), options, move_of(chunk.slot), chunk, counted[c]);
      }
      ++c;
      continue;
    }
    // Small tensors that have everything in common go together.
    std::size_t end = c + 1;
    const auto small = [&](std::size_t i) {
      return plan.chunks[i].count <= kernels::kTile && shared[plan.chunks[i].slot] == common && is_own(plan.chunks[i]);
    };
    if (small(c)) {
      while (end < job.last && end - c < optim::kMostWalked && small(end)) ++end;
    }
    optim::walk(common->walk, common->move, slots, {plan.chunks.data() + c, end - c}, &counted[c]);
    c = end;
  }
}

void Optimizer::Parts::move_until(std::size_t slot) {
  const std::size_t first = jobs_done;
  while (jobs_done < plan.jobs.size() && plan.chunks[plan.jobs[jobs_done].first].slot < slot) ++jobs_done;
  optim::parallel(options, jobs_done - first, [&](std::size_t j) { run_job(plan.jobs[first + j]); });
}

void Optimizer::Parts::move_all() {
  move_until(slots.size());
  std::fill(counted.begin() + static_cast<std::ptrdiff_t>(plan.chunks.size()), counted.end(), kernels::Counted{});
  finish_whole_tensors();
}

const StepReport& Optimizer::step(const StepInput& input) {
  Parts& p = *parts_;
  check(input, p.slots.size());
  p.ensure_state();
  const std::size_t count = p.slots.size();
  p.taking_part.resize(count);
  for (std::size_t s = 0; s < count; ++s) p.taking_part[s] = p.slots[s].parameter.g != nullptr || p.slots[s].count == 0;
  if (p.planned != p.taking_part) {
    make_plans(p.slots, p.taking_part, p.options, p.plan, p.whole_plan);
    p.counted.resize(p.plan.chunks.size() + p.whole_plan.chunks.size());
    p.plan_whole_tensors();
    p.moves.resize(count);
    p.shared.resize(count);
    p.report.tensors.resize(count);
    p.planned = p.taking_part;
  }

  p.report.skipped = false;
  p.report.clip_scale = 1;
  const bool surveyed = p.options.grad_clip > 0 || p.options.nonfinite != Nonfinite::propagate;
  if (surveyed) {
    p.survey();
    Tally seen;
    for (std::size_t s = 0; s < count; ++s) seen += p.report.tensors[s];
    if (seen.nonfinite > 0 && p.options.nonfinite != Nonfinite::propagate) {
      for (std::size_t s = 0; s < count && p.options.nonfinite == Nonfinite::error; ++s) {
        if (p.report.tensors[s].nonfinite == 0) continue;
        throw Error(Fault::data,
                    fmt::format("the gradient of {} has {} non-finite entries of {}; nothing was changed",
                                base::in_quotes(p.slots[s].parameter.name), p.report.tensors[s].nonfinite, p.slots[s].count));
      }
      p.report.skipped = true;
      p.report.total = seen;
      return p.report;
    }
    const double norm = std::sqrt(seen.g2);
    if (p.options.grad_clip > 0 && std::isfinite(norm) && norm > p.options.grad_clip) {
      p.report.clip_scale = p.options.grad_clip / norm;
    }
  }
  p.resolve(input);
  p.jobs_done = 0;
  if (p.options.share.ranks == 1) {
    p.move_all();
  } else {
    p.move_with_others();
  }

  p.report.step += 1;
  p.add_up();
  return p.report;
}

}  // namespace cautious
