// The sections on the lemmas and on the proof.
#include <cmath>

#include <fmt/format.h>

#include "lab/bound/bound.h"
#include "lab/bound/theory.h"

namespace cautious::lab {
namespace {

const LemmaCheck& check_of(const std::vector<LemmaCheck>& checks, Lemma lemma) {
  return checks[static_cast<std::size_t>(lemma)];
}

std::string number(double value) { return fmt::format("{:.3g}", value); }

report::Table lemma_table(const std::vector<LemmaCheck>& checks) {
  report::Table table{.name = "bound_lemmas",
                      .title = "Lemmas: the largest left / right over all runs and steps",
                      .head = {"lemma", "statement", "largest left / right", "where", "verdict"},
                      .rows = {},
                      .note =
                          "The first term of the right sides of both inner products is counted on the left, so that the ratio "
                          "has a meaning. G is that of the gradients, not raised. Expectations are means over runs."};
  for (const LemmaCheck& check : checks) {
    table.rows.push_back({std::string(source_of(check.lemma)), std::string(statement_of(check.lemma)), number(check.worst),
                          check.where, check.holds() ? "holds" : "fails"});
  }
  return table;
}

struct Betas {
  double beta1, beta2;
};

// The gradients that make |u| largest, through the library's Adam.
report::Table update_table() {
  report::Table table{
      .name = "bound_update",
      .title = "How large an update can get",
      .head = {"β₁", "β₂", "C", "|u| after 1 step", "after 100", "after 1000", "least upper bound", "over C"},
      .rows = {},
      .note = "Gradients (β₁ / β₂)^(t - k), the case of equality in the lemma's first step. The lemma needs β₁ ≤ β₂."};
  for (const auto& [beta1, beta2] :
       {Betas{0.9, 0.9}, Betas{0.9, 0.95}, Betas{0.9, 0.999}, Betas{0.5, 0.9}, Betas{0.9, 0.85}, Betas{0.95, 0.9}}) {
    const BoundSetting setting{.beta1 = beta1, .beta2 = beta2};
    const bool bounded = beta1 * beta1 < beta2;
    const double c = largest_update(setting), supremum = attainable_update(setting, 100'000);
    std::vector<std::string> row{number(beta1), number(beta2), number(c)};
    for (const std::size_t t : {1, 100, 1000}) row.push_back(number(adversarial_update(beta1, beta2, t)));
    row.push_back(bounded ? number(supremum) : "none");
    row.push_back(bounded ? number(supremum / c) : "-");
    table.rows.push_back(row);
  }
  return table;
}

Claim momentum_order_claim() {
  constexpr double kBeta1 = 0.9, kBeta2 = 0.5;
  const double c = largest_update({.beta1 = kBeta1, .beta2 = kBeta2});
  const double first = adversarial_update(kBeta1, kBeta2, 1), later = adversarial_update(kBeta1, kBeta2, 50);
  return {
      .text = "The condition β₁ ≤ β₂ is needed: beyond it the first update exceeds C, and with β₁² > β₂ updates have no bound",
      .source = "",
      .outcome = Outcome::noted,
      .evidence = fmt::format("β₁ = {}, β₂ = {}: C = {:.2g}, |u| = {:.2g} after 1 step and {:.2g} after 50", kBeta1, kBeta2, c,
                              first, later)};
}

// A start next to the minimiser: f first rises, which the weights 1 - beta1^t count less than the fall after it.
Claim telescope_claim() {
  const BoundProblem& problem = bound_problems().front();
  const BoundSetting setting{.eta = 0.5, .eps = 1};
  constexpr std::size_t kSteps = 1000;
  Point start = problem.minimiser;
  for (double& x : start) x += 1e-3;
  const double sum = weighted_descent(problem, setting, start, kSteps), gap = problem.value(start);
  const BoundCase here{&problem, {}, setting, start, 2, 0};
  const BoundPoint end = over_steps(here, {kSteps}).front();
  return {.text = "The descents, multiplied by (1 - β₁^t) (G + ε) / η, add up to at most (G + ε) (f(x1) - f*) / η",
          .source = "appendix E, last step of the proof",
          .outcome = outcome_of(sum <= gap),
          .evidence = fmt::format("bowl from 0.001 beside its minimiser, η = {}, ε = 1, no noise: the sum of (1 - β₁^t) "
                                  "(f(x_t) - f(x_t+1)) is {:.2g}, f(x1) - f* is {:.2g}; left side {:.2g}, bound {:.2g}",
                                  setting.eta, sum, gap, end.left.mean, end.paper)};
}

}  // namespace

double weighted_descent(const BoundProblem& problem, const BoundSetting& setting, PointView start, std::size_t steps) {
  BoundRun run(problem, {}, setting, start, 0);
  double sum = 0;
  for (std::size_t t = 1; t <= steps; ++t) {
    run.step();
    sum += (1 - std::pow(setting.beta1, t)) * (problem.value(run.point()) - problem.value(run.next()));
  }
  return sum;
}

Claim theorem_claim(const BoundTally& tally) {
  return {.text = "The left side is at most K1 / (η T) + K2 / T + K3 η + K4 σ / √n in every setting tried",
          .source = "Theorem 1",
          .outcome = outcome_of(tally.paper_violated == 0),
          .evidence = fmt::format("{} of {} comparisons violate it; the largest left / bound is {:.2g} ({})",
                                  tally.paper_violated, tally.count, tally.paper, tally.paper_where)};
}

Section lemma_section(const std::vector<LemmaCheck>& checks) {
  Section section{.title = "The lemmas",
                  .text =
                      "Each inequality of appendix E after every step of runs on all problems, with four pairs of betas, two "
                      "step sizes and two ε. The indicator is tried on signs, zeros and random sizes.",
                  .command = {},
                  .claims = {},
                  .figures = {},
                  .tables = {lemma_table(checks), update_table()},
                  .files = {}};
  for (const Lemma lemma :
       {Lemma::update, Lemma::martingale, Lemma::momentum, Lemma::direction, Lemma::indicator, Lemma::mask}) {
    const LemmaCheck& check = check_of(checks, lemma);
    section.claims.push_back({.text = std::string(statement_of(lemma)),
                              .source = fmt::format("appendix E, {}", source_of(lemma)),
                              .outcome = outcome_of(check.holds()),
                              .evidence = fmt::format("largest left / right {:.2g} ({})", check.worst, check.where)});
  }
  section.claims.push_back(momentum_order_claim());
  return section;
}

Section proof_section(const BoundTally& tally, const std::vector<LemmaCheck>& checks) {
  Section section{
      .title = "The proof",
      .text =
          "The steps of the proof were read one by one. One is not valid as written: the weights 1 - β₁^t grow with t, so the "
          "weighted descents do not telescope; what is proved has the mean of E f(x_t) - f* with weights (1 - β₁) β₁^(t-1) in "
          "place of f(x1) - f*. It can be repaired without any change of K1 ... K4: with m_hat in place of m the factor 1 / (1 "
          "- β₁^t) never appears. Assumption 2 is to be read given the whole past, not x_t alone; the martingale fact needs "
          "that. The other steps are right: √v_hat ≤ G, the products are bounded on each path before the expectation is taken, "
          "Markov's inequality holds on each path too, and |a + b|² / 2 ≤ |a|² + |b|² gives C² + λ² R².",
      .command = {},
      .claims = {telescope_claim()},
      .figures = {},
      .tables = {},
      .files = {}};
  const LemmaCheck& corrected = check_of(checks, Lemma::corrected);
  section.claims.push_back(
      {.text = "With m_hat in place of m the sum telescopes, and Theorem 1 follows with the paper's K1 ... K4",
       .source = "",
       .outcome = Outcome::noted,
       .evidence = fmt::format("momentum error with m_hat: largest left / right {:.2g}; the bound of that proof: {} of {} "
                               "comparisons violate it, largest left / bound {:.2g} ({})",
                               corrected.worst, tally.sharper_violated, tally.count, tally.sharper, tally.sharper_where)});
  const BoundProblem& problem = bound_problems().front();
  const BoundSetting setting{.eta = 0.01, .eps = 1, .batch = 64};
  const BoundConstants constants = constants_of(problem, problem.noise, setting, problem.start, 0);
  constexpr std::size_t kSteps = 4096;
  section.claims.push_back(
      {.text = "G need not be raised to 1 / (1 - β₁); G + ε ≥ 1 is enough, and K2 is then needed only for the noise of the "
               "first step",
       .source = "",
       .outcome = Outcome::noted,
       .evidence = fmt::format("bowl, ε = 1, n = 64, T = {}: bound {:.2g} with G = {:.2g}, {:.2g} with G = {:.2g} and √d for d",
                               kSteps, paper_bound(constants, setting, kSteps), 1 / (1 - setting.beta1),
                               sharper_bound(constants, setting, kSteps), constants.gradient)});
  section.claims.push_back(
      {.text = "σ² bounds the sum of the variances of all coordinates, yet is used for each: d σ in K4 may be √d σ",
       .source = "",
       .outcome = Outcome::noted,
       .evidence = fmt::format("with d = {:g} the martingale fact is at most at {:.2g} of its bound (1 / d up to chance)",
                               constants.dimension, check_of(checks, Lemma::martingale).worst)});
  return section;
}

}  // namespace cautious::lab
