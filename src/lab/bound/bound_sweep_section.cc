#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/bound/bound_figures.h"
#include "lab/bound/bound_sections.h"

namespace cautious::lab {
namespace {

Table constants_table() {
  Table table{
      .name = "bound_constants",
      .title = fmt::format("Constants of the problems at η = {}, β₁ = {}, β₂ = {}, ε = {}, λ = {}", kUsualSetting.eta,
                           kUsualSetting.beta1, kUsualSetting.beta2, kUsualSetting.eps, kUsualSetting.weight_decay),
      .head = {"problem", "f", "d", "L", "G", "sigma", "f(x1) - f*", "R", "K1", "K2", "K3", "K4"},
      .rows = {},
      .note =
          "G bounds the stochastic gradient; in K1 ... K4 it is raised to 1 / (1 - β₁) = 10 as the proof does. R is proved "
          "for bowl and ripple; for the valley it is the largest |x| of the runs, and K2 ... K4 are shown for that of the "
          "start."};
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
Table eps_table(const BoundOptions& options, BoundTally& tally, double& usual_excess) {
  constexpr std::size_t kSteps = 1024;
  Table table{.name = "bound_eps",
              .title = fmt::format("The bound for several ε: bowl, T = {}, η = {}, n = 64", kSteps, kUsualSetting.eta),
              .head = {"eps", "left side", "Theorem 1", "sharper bound", "trivial"},
              .rows = {},
              .note =
                  "Sharper bound: see the section on the proof. Trivial: d (G^2 + λ G R), which needs no "
                  "theorem; a larger bound says nothing."};
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

Claim batch_claim(const std::vector<NamedCurve>& curves) {
  Claim claim{.text = "A larger batch lowers the left side, as the bound's term σ / sqrt(n) has it",
              .source = "remark after Theorem 1",
              .outcome = Outcome::holds,
              .evidence = {}};
  for (const NamedCurve& named : curves) {
    const BoundPoint &first = named.curve.front(), &last = named.curve.back();
    if (last.left.mean >= first.left.mean) claim.outcome = Outcome::fails;
    claim.evidence += fmt::format("{}{}: from {:.2g} at n = 1 to {:.2g} at n = {:g}", claim.evidence.empty() ? "" : "; ",
                                  named.name, first.left.mean, last.left.mean, last.at);
  }
  return claim;
}

Claim eta_claim(const BoundCurve& curve) {
  const auto least = [&](auto key) {
    return *std::min_element(curve.begin(), curve.end(), [&](auto& a, auto& b) { return key(a) < key(b); });
  };
  const BoundPoint bound = least([](const BoundPoint&p) { return p.paper; }),
                   left = least([](const BoundPoint&p) { return p.left.mean; });
  const bool inside = bound.at > curve.front().at && bound.at < curve.back().at;
  return {.text = "For a fixed T the bound has a best η inside the range, since K1 / (η T) falls and K3 η rises",
          .source = "Theorem 1",
          .outcome = inside ? Outcome::holds : Outcome::fails,
          .evidence = fmt::format("bowl: the bound is least at η = {:.2g} ({:.2g}), the left side at η = {:.2g} ({:.2g})",
                                  bound.at, bound.paper, left.at, left.left.mean)};
}

}  // namespace

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
  const Table eps = eps_table(options, tally, usual_excess);

  Section section{
      .title = "Left side and bound",
      .text =
          "Adam + CWD with constant η on three problems whose constants are known: a convex bowl, a bowl with waves and "
          "local minima, and a nonconvex valley whose minimisers are a hyperplane. Each gradient has the mean of n "
          "independent signs of fixed size added to every coordinate, so the variance is exactly σ^2 / n. The left side, "
          "the mean over t of |∇f|^2 + λ |(∇f x)^+|_1, is a mean over runs with its 95 % interval.",
      .command = "cautious lab bound",
      .claims = {},
      .figures = {},
      .tables = {},
      .files = {}};
  section.claims.push_back(eta_claim(by_eta.front().curve));
  section.claims.push_back(batch_claim(by_batch));
  const BoundPoint& end = by_steps.front().curve.back();
  section.claims.push_back(
      {.text = "The bound is loose by orders of magnitude, and at the usual ε = 1e-8 it says nothing",
       .source = "",
       .outcome = Outcome::noted,
       .evidence = fmt::format("bowl, ε = 1, T = {:g}: left side {:.2g}, bound {:.2g}; ε = 1e-8: the bound is {:.1g} "
                               "times the trivial one",
                               end.at, end.left.mean, end.paper, usual_excess)});

  LineChart steps_chart =
      bound_chart("Left side and bound over the number of steps", "steps T",
                  "Three lines of left sides that fall with T, far below three lines of bounds that level off");
  add_curves(steps_chart, by_steps);
  section.figures.push_back({"bound_T", steps_chart,
                             fmt::format("η = {}, n = 1. With η and n fixed the bound levels off at K3 η + K4 σ; the left side "
                                         "levels off much lower.",
                                         kUsualSetting.eta)});
  LineChart eta_chart = bound_chart("Left side and bound over the step size", "step size η",
                                    "Bounds and left sides over η, both high at small and at large η");
  add_curves(eta_chart, by_eta);
  section.figures.push_back(
      {"bound_eta", eta_chart,
       fmt::format("T = {}, n = {}. A small η does not arrive within T steps, a large one does not settle: both sides "
                   "have a best η, but that of the bound is smaller.",
                   kSteps, kBatch)});
  LineChart batch_chart = bound_chart("Left side and bound over the batch size", "batch size n",
                                      "Bounds and left sides over n, both falling and then level");
  add_curves(batch_chart, by_batch);
  section.figures.push_back({"bound_batch", batch_chart,
                             fmt::format("T = {}, η = {}, no momentum, ε = {}. The bound falls like n^(-1/2); the left "
                                         "side falls at once to what η and T "
                                         "leave.",
                                         kSteps, kSignSetting.eta, kSignSetting.eps)});
  section.tables = {constants_table(), eps};
  return section;
}

}  // namespace cautious::lab
