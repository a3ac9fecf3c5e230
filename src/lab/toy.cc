#include "lab/toy.h"

#include <array>
#include <cmath>

#include <fmt/format.h>

#include <cautious/error.h>
#include <cautious/optimizer.h>

#include "recipe/names.h"

namespace cautious {
namespace {

constexpr std::array kArms{ToyArm::adam, ToyArm::adamw, ToyArm::cwd};

Recipe recipe_of(ToyArm arm, const ToyOptions& options) {
  Recipe recipe{.rule = Adam{options.beta1, options.beta2, options.eps}, .decay = None{}, .weight_decay = options.weight_decay};
  if (arm == ToyArm::adamw) recipe.decay = Decoupled{};
  if (arm == ToyArm::cwd) recipe.decay = Cautious{};
  return recipe;
}

Schedule schedule_of(const ToyOptions& options) { return {.kind = options.schedule, .lr = options.lr, .steps = options.steps}; }

std::vector<ToyPoint> path_of(ToyArm arm, const ToyObjective& objective, const ToyOptions& options) {
  Options quick;
  quick.norms = Norms::off;
  quick.threads = 1;
  Optimizer optimizer(recipe_of(arm, options), quick);
  const ToyPoint start = options.start.value_or(objective.start);
  std::array<double, 2> x{start.x, start.y};
  std::array<double, 2> g{};
  optimizer.add("x", {2}, x.data(), g.data());
  const Schedule schedule = schedule_of(options);
  std::vector<ToyPoint> path{start};
  path.reserve(static_cast<std::size_t>(options.steps) + 1);
  for (std::int64_t t = 1; t <= options.steps; ++t) {
    const ToyPoint gradient = objective.gradient(path.back());
    g = {gradient.x, gradient.y};
    optimizer.step({.lr = lr_at(schedule, t), .lr_max = options.lr});
    path.push_back({x[0], x[1]});
  }
  return path;
}

ToyRun measure(ToyArm arm, const ToyObjective& objective, double box, std::vector<ToyPoint> path) {
  ToyRun run;
  run.arm = arm;
  run.path = std::move(path);
  run.end = run.path.back();
  run.f = objective.value(run.end);
  if (!std::isfinite(run.f)) {
    throw Error(Fault::failure, fmt::format("lab toy: {} diverged on the {} to ({}, {}); try a smaller lr", name_of(arm),
                                            objective.name, run.end.x, run.end.y));
  }
  run.to_manifold = to_manifold(objective, run.end);
  run.to_front = to_front(objective, run.end);
  run.to_local_front = to_local_front(objective, run.end);
  run.to_box = to_box(box, run.end);
  for (std::size_t t = run.path.size(); t-- > 0 && to_front(objective, run.path[t]) <= kNear;) {
    run.arrival = static_cast<std::int64_t>(t);
  }
  if (run.arrival) run.slide = distance(run.path[static_cast<std::size_t>(*run.arrival)], run.end);
  return run;
}

}  // namespace

std::string_view name_of(ToyArm arm) {
  constexpr std::array<std::string_view, 3> names{"Adam", "AdamW", "Adam + CWD"};
  return names[static_cast<std::size_t>(arm)];
}

std::string_view key_of(ToyArm arm) {
  constexpr std::array<std::string_view, 3> keys{"adam", "adamw", "adam_cwd"};
  return keys[static_cast<std::size_t>(arm)];
}

void check(const ToyOptions& options) {
  check_range("lr", options.lr, kToyLr);
  check_range("weight_decay", options.weight_decay, kToyWeightDecay);
  check_range("lr * weight_decay", options.lr * options.weight_decay, kFraction);  // beyond it decay overshoots zero
  check_range("beta1", options.beta1, kMomentum);
  check_range("beta2", options.beta2, kMomentum);
  check_range("eps", options.eps, kFraction);
  check_range("steps", static_cast<double>(options.steps), kToySteps);
  if (options.start) {
    check_range("start x", options.start->x, kToyStart);
    check_range("start y", options.start->y, kToyStart);
  }
}

ToyStudy run_toy(const ToyObjective& objective, const ToyOptions& options) {
  check(options);
  ToyStudy study;
  study.objective = &objective;
  study.options = options;
  study.box = 1 / options.weight_decay;
  study.least_in_box = objective.least_in_box(study.box);
  for (const ToyArm arm : kArms) study.runs.push_back(measure(arm, objective, study.box, path_of(arm, objective, options)));
  return study;
}

}  // namespace cautious
