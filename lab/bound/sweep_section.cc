// The section on left side and bound.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/bound/bound.h"
#include "lab/bound/tight.h"

namespace cautious::lab {
namespace {

report::Table constants_table() {
  report::Table table{
      .name = "bound_constants",
      .title = fmt::format("Constants of the problems at η = {}, β₁ = {}, β₂ = {}, ε = {}, λ = {}", kUsualSetting.eta,
                           kUsualSetting.beta1, kUsualSetting.beta2, kUsualSetting.eps, kUsualSetting.weight_decay),
      .head = {"problem", "f", "d", "L", "G", "σ", "f(x1) - f*", "R", "K1", "K2", "K3", "K4"},
      .rows = {},
      .note =
          "G bounds the stochastic gradient; in K1 ... K4 it is raised to 1 / (1 - β₁) = 10 as the proof does. R is proved for "
          "bowl and ripple; for the valley it is the largest |x|∞ of the runs, and K2 ... K4 are shown for that of the start."};
  for (const BoundProblem& problem : bound_problems()) {
    const double start = as_vector(PointView(problem.start)).lpNorm<Eigen::Infinity>();
    const BoundConstants c = constants_of(problem, problem.noise, kUsualSetting, problem.start, start);
    const BoundFactors k = bound_factors(c, kUsualSetting);
    const auto number = [](double value) { return fmt::format("{:.3g}", value); };
    table.rows.push_back({problem.name, problem.formula, number(c.dimension), number(c.smoothness), number(c.gradient),
                          number(c.deviation), number(c.gap), problem.coercive ? number(c.radius) : "measured", number(k.k1),
                          number(k.k2), number(k.k3), number(k.k4)});
  }
  return table;
}

// What eps does to the bound.
report::Table eps_table(const BoundOptions& options, BoundTally& tally, double& usual_excess) {
  constexpr std::size_t kSteps = 1024;
  report::Table table{.name = "bound_eps",
                      .title = fmt::format("The bound for several ε: bowl, T = {}, η = {}, n = 64", kSteps, kUsualSetting.eta),
                      .head = {"ε", "left side", "Theorem 1", "sharper bound", "trivial"},
                      .rows = {},
                      .note =
                          "Sharper bound: see the section on the proof. Trivial: d (G² + λ G R), which needs no theorem; a "
                          "larger bound says nothing."};
  for (const double eps : {1e-8, 1e-4, 1e-2, 1.0, 10.0}) {
    BoundSetting setting = kUsualSetting;
    setting.eps = eps;
    setting.batch = 64;
    const BoundProblem& problem = bound_problems().front();
    const BoundCurve curve = over_steps(usual_case(problem, setting, options.seeds, options.seed), {kSteps});
    tally.add(curve, fmt::format("bowl, ε {:.2g}", eps));
    const double trivial = trivial_bound(constants_of(problem, problem.noise, setting, problem.start, 0), setting);
    if (eps == 1e-8) usual_excess = curve[0].paper / trivial;
    table.rows.push_back({fmt::format("{:g}", eps), fmt::format("{:.2g}", curve[0].left.mean),
                          fmt::format("{:.2g}", curve[0].paper), fmt::format("{:.2g}", curve[0].sharper),
                          fmt::format("{:.2g}", trivial)});
  }
  return table;
}

// Not by chance: to two thirds at most.
bool falls(double first, double last) { return last < first * 2 / 3; }

Claim batch_claim(const std::vector<NamedCurve>& curves, const BoundOptions& options, std::size_t steps) {
  bool lower = true, mutant_lower = true;
  Claim claim{.text = "A larger batch lowers the left side, as the bound's term σ / √n says",
              .source = "second remark after Theorem 1",
              .outcome = {},
              .evidence = {}};
  std::string mutant;
  for (std::size_t k = 0; k < curves.size(); ++k) {
    const BoundPoint &first = curves[k].curve.front(), &last = curves[k].curve.back();
    lower = lower && falls(first.left.mean, last.left.mean);
    claim.evidence += fmt::format("{}{}: from {:.2g} at n = 1 to {:.2g} at n = {:g}", claim.evidence.empty() ? "" : "; ",
                                  curves[k].name, first.left.mean, last.left.mean, last.at);
    const auto single = over_steps(usual_case(bound_problems()[k], kSignSetting, options.seeds, options.seed + 1), {steps});
    mutant_lower = mutant_lower && falls(first.left.mean, single.front().left.mean);
    mutant += fmt::format("{}{:.2g} for {}", mutant.empty() ? "" : ", ", single.front().left.mean, curves[k].name);
  }
  claim.outcome = outcome_of(lower);
  claim.mutations = {{"only one gradient of each batch used", mutant, !mutant_lower}};
  return claim;
}

// Where the bound and where the left side is least.
struct Best {
  BoundPoint bound, left;
};

Best best_of(const BoundCurve& curve) {
  return {*std::ranges::min_element(curve, {}, &BoundPoint::paper),
          *std::ranges::min_element(curve, {}, [](const BoundPoint& point) { return point.left.mean; })};
}

Claim eta_claim(const BoundCurve& curve, std::size_t steps) {
  const auto [bound, left] = best_of(curve);
  return {.text = fmt::format("With T = {} the bound is least at η = {:.2g}, the left side at η = {:.2g}", steps, bound.at,
                              left.at),
          .source = "",
          .outcome = Outcome::noted,
          .evidence = fmt::format("bowl, η from {:g} to {:g}: the least bound is {:.2g}, the least left side {:.2g}",
                                  curve.front().at, curve.back().at, bound.paper, left.left.mean)};
}

}  // namespace

void add_tight_cases(const BoundOptions& options, BoundTally& tally) {
  for (const TightCase& tight : tight_theorem_cases()) {
    const BoundCase here = usual_case(tight.problem, tight.setting, tight.seeds, options.seed);
    tally.add(over_steps(here, powers(64, tight.steps, 4)), tight.problem.name);
  }
}

Section sweep_section(const BoundOptions& options, const Progress& progress, BoundTally& tally) {
  constexpr std::size_t kSteps = 1024, kBatch = 1024;
  const std::vector<double> etas{1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3};
  std::vector<NamedCurve> by_steps, by_eta, by_batch;
  for (const BoundProblem& problem : bound_problems()) {
    progress(0.1 * static_cast<double>(by_steps.size()), fmt::format("left side and bound, {}", problem.name));
    const BoundCase usual = usual_case(problem, kUsualSetting, options.seeds, options.seed);
    by_steps.push_back({problem.name, over_steps(usual, powers(1, 1 << 14, 4))});
    BoundCase large = usual;
    large.setting.batch = kBatch;
    by_eta.push_back({problem.name, over_eta(large, etas, kSteps)});
    const BoundCase noisy = usual_case(problem, kSignSetting, options.seeds, options.seed);
    by_batch.push_back({problem.name, over_batch(noisy, powers(1, 1 << 12, 8), kSteps)});
    tally.add(by_steps.back().curve, problem.name + " over T");
    tally.add(by_eta.back().curve, problem.name + " over η");
    tally.add(by_batch.back().curve, problem.name + " over the batch");
  }
  double usual_excess = 0;
  const report::Table eps = eps_table(options, tally, usual_excess);

  Section section{.title = "Left side and bound",
                  .text =
                      "Adam + CWD with constant η on three problems whose constants are known: a convex bowl, a bowl with "
                      "waves and local minima, and a nonconvex valley whose minimisers are a hyperplane. Each gradient has the "
                      "mean of n independent signs of fixed size added to every coordinate, so the variance is exactly σ² / n. "
                      "The left side, the mean over t of |∇f|² + λ |(∇f x)⁺|₁, is a mean over runs with its 95 % interval.",
                  .command = {},
                  .claims = {},
                  .figures = {},
                  .tables = {},
                  .files = {}};
  section.claims.push_back(eta_claim(by_eta.front().curve, kSteps));
  section.claims.push_back(batch_claim(by_batch, options, kSteps));
  const BoundPoint& end = by_steps.front().curve.back();
  section.claims.push_back(
      {.text = fmt::format(
           "The bound is {:.1g} times the left side at ε = 1; at the usual ε = 1e-8 it is {:.1g} times the trivial one",
           end.paper / end.left.mean, usual_excess),
       .source = "",
       .outcome = Outcome::noted,
       .evidence =
           fmt::format("bowl, ε = 1, T = {:g}: left side {:.2g}, bound {:.2g}; a bound above the trivial one says nothing",
                       end.at, end.left.mean, end.paper)});

  report::LineChart steps_chart =
      bound_chart("Left side and bound over the number of steps", "steps T", "Left sides and bounds of three problems over T");
  add_curves(steps_chart, by_steps);
  section.figures.push_back({"bound_T", steps_chart,
                             fmt::format("η = {}, n = 1. With η and n fixed the bound levels off at K3 η + K4 σ. At T = {:g} "
                                         "on the bowl the bound is {:.2g}, the left side {:.2g}.",
                                         kUsualSetting.eta, end.at, end.paper, end.left.mean)});
  const Best best = best_of(by_eta.front().curve);
  report::LineChart eta_chart =
      bound_chart("Left side and bound over the step size", "step size η", "Left sides and bounds of three problems over η");
  add_curves(eta_chart, by_eta);
  section.figures.push_back({"bound_eta", eta_chart,
                             fmt::format("T = {}, n = {}. In the bound K1 / (η T) falls and K3 η rises. Least on the bowl: the "
                                         "bound at η = {:.2g}, the left side at η = {:.2g}.",
                                         kSteps, kBatch, best.bound.at, best.left.at)});
  const BoundPoint &one = by_batch.front().curve.front(), &most = by_batch.front().curve.back();
  report::LineChart batch_chart =
      bound_chart("Left side and bound over the batch size", "batch size n", "Left sides and bounds of three problems over n");
  add_curves(batch_chart, by_batch);
  section.figures.push_back(
      {"bound_batch", batch_chart,
       fmt::format("T = {}, η = {}, no momentum, ε = {}. In the bound K4 σ / √n falls, the other terms do not depend on n. "
                   "From n = 1 to {:g} on the bowl the bound changes by the factor {:.2g}, the left side by {:.2g}.",
                   kSteps, kSignSetting.eta, kSignSetting.eps, most.at, most.paper / one.paper,
                   most.left.mean / one.left.mean)});
  section.tables = {constants_table(), eps};
  return section;
}

}  // namespace cautious::lab
