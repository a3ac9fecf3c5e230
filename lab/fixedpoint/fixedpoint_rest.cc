#include "lab/fixedpoint/fixedpoint_rest.h"

#include <cautious/optimizer.h>

namespace cautious::lab::fixedpoint {
namespace {

Arm arm(std::string name, Rule rule, double weight_decay, Surrogate surrogate) {
  return {std::move(name), {.rule = std::move(rule), .decay = Decoupled{}, .weight_decay = weight_decay}, surrogate};
}

Point scaled(PointView x, double factor) {
  Point result(x.begin(), x.end());
  for (double& entry : result) entry *= factor;
  return result;
}

}  // namespace

Arm adamw(double weight_decay, double beta2, double eps) {
  return arm("AdamW", Adam{.beta1 = 0.9, .beta2 = beta2, .eps = eps}, weight_decay, {.target = Target::box});
}

Arm muon(double weight_decay, Eigen::Index rows, NewtonSchulz schedule) {
  return arm("Muon", Muon{.polar = {.schedule = schedule}}, weight_decay, {.target = Target::spectral, .rows = rows});
}

Arm threshold(double weight_decay) {
  return arm("Lion-K threshold", LionK{.k = Convex::threshold, .e = kThreshold}, weight_decay,
             {.target = Target::lasso_box, .e = kThreshold});
}

Arm with_cwd(Arm arm) {
  arm.name = arm.name == "AdamW" ? "Adam + CWD" : arm.name + " + CWD";
  arm.recipe.decay = Cautious{};
  const bool sparse = arm.surrogate.target == Target::lasso_box;
  arm.surrogate = {.target = sparse ? Target::lasso : Target::original, .e = sparse ? arm.surrogate.e : 0};
  return arm;
}

std::vector<Arm> plain_arms(double weight_decay) {
  return {arm("SGD", Sgd{}, weight_decay, {.target = Target::ridge}),
          arm("SGDM", Sgdm{}, weight_decay, {.target = Target::ridge}),
          adamw(weight_decay),
          arm("Lion", Lion{}, weight_decay, {.target = Target::box}),
          arm("Lion-K l2", LionK{.k = Convex::l2}, weight_decay, {.target = Target::ball}),
          arm("Lion-K huber", LionK{.k = Convex::huber, .e = kHuber}, weight_decay, {.target = Target::huber, .e = kHuber})};
}

std::vector<Arm> cautious_arms(double weight_decay) {
  std::vector<Arm> arms = plain_arms(weight_decay);
  for (Arm& arm : arms) arm = with_cwd(std::move(arm));
  return arms;
}

std::vector<Arm> matrix_arms(double weight_decay, Eigen::Index rows) {
  LionK nuclear{.k = Convex::nuclear};
  nuclear.polar.schedule = NewtonSchulz::exact;
  return {muon(weight_decay, rows), arm("Lion-K nuclear", nuclear, weight_decay, {.target = Target::spectral, .rows = rows}),
          adamw(weight_decay), arm("SGD", Sgd{}, weight_decay, {.target = Target::ridge}), with_cwd(muon(weight_decay, rows))};
}

Point rest(const Arm& arm, const Posed& problem, const Pace& pace, const Watch& watch) {
  Options quick;
  quick.norms = Norms::off;
  quick.threads = 1;
  Optimizer optimizer(arm.recipe, quick);
  Point x = problem.start;
  Point g(x.size());
  optimizer.add("x", problem.shape, x.data(), static_cast<const double*>(g.data()));
  const double weight_decay = arm.recipe.weight_decay;
  const Schedule schedule{.kind = pace.kind, .lr = pace.lr / weight_decay, .steps = pace.steps};
  for (std::int64_t step = 1; step <= pace.steps; ++step) {
    problem.gradient(x, g);
    optimizer.step({.lr = lr_at(schedule, step), .lr_max = schedule.lr});
    if (watch) watch(step, scaled(x, weight_decay));
  }
  return scaled(x, weight_decay);
}

}  // namespace cautious::lab::fixedpoint
