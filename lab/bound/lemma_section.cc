// The section on the lemmas.
#include <cmath>

#include <fmt/format.h>

#include "lab/bound/bound.h"
#include "lab/bound/theory.h"
#include "lab/bound/tight.h"

namespace cautious::lab {
namespace {

std::string number(double value) { return fmt::format("{:.3g}", value); }

report::Table lemma_table(const std::vector<LemmaCheck>& checks) {
  report::Table table{
      .name = "bound_lemmas",
      .title = "Lemmas: the largest left / right over all runs and steps",
      .head = {"lemma", "statement", "largest left / right", "where", "verdict"},
      .rows = {},
      .note =
          "The first term of the right sides of both inner products is counted on the left, so that the ratio "
          "has a meaning. G is that of the gradients, not raised. Expectations are means over runs, that of the "
          "weighted noise less four standard errors."};
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

// A right side that is broken is noticed where the left side is above it.
Mutation broken(std::string change, double worst) {
  return {std::move(change),
          std::isinf(worst) ? "a left side above 0, nothing on the right" : fmt::format("largest left / right {:.3g}", worst),
          worst > 1 + 1e-12};
}

std::vector<Mutation> mutations_of(const LemmaCheck& check) {
  switch (check.lemma) {
    case Lemma::update: {
      constexpr double kBeta1 = 0.9, kBeta2 = 0.5;
      return {broken("C × 0.9", check.worst / 0.9),
              broken("β₁ > β₂", adversarial_update(kBeta1, kBeta2, 1) / largest_update({.beta1 = kBeta1, .beta2 = kBeta2}))};
    }
    case Lemma::martingale:
      return {broken("σ² halved", 2 * check.worst)};
    case Lemma::indicator:
      return {broken("m g < 0 for m g ≤ 0", strict_indicator_ratio())};
    case Lemma::mask:
      return {broken("without the drift of ∇f", check.without_drift), broken("without the noise", check.without_noise),
              broken("right side halved", 2 * check.worst),
              broken("without β₁^t G d (not needed: m and m_hat have the same signs)", check.without_start)};
    default:
      return {broken("without β₁^t G d", check.without_start), broken("without the drift of ∇f", check.without_drift),
              broken("without the noise", check.without_noise), broken("right side halved", 2 * check.worst)};
  }
}

// The lemmas' noise terms, of which noise can attain only a part, whatever its size.
Claim noise_claim() {
  const NoiseSearch found = search_two_values(200'000, 0);
  return {
      .text = fmt::format("The noise terms of the lemmas on the inner products are too large by a factor of {:.2g} (update) "
                          "and {:.2g} (decay)",
                          1 / found.update, 1 / found.mask),
      .source = "",
      .outcome = Outcome::noted,
      .evidence = fmt::format("noise of two values, 200000 drawn, expectations exact, no momentum: left / right is at most "
                              "{:.2g} and {:.2g}. No run can be nearer: noise has mean 0, so of E|g - ∇f| only one half "
                              "can point the wrong way. The other terms are attained",
                              found.update, found.mask)};
}

}  // namespace

Section lemma_section(const std::vector<LemmaCheck>& checks) {
  Section section{.title = "The lemmas",
                  .text =
                      "Each inequality of appendix E after every step of runs on all problems, with four pairs of betas, two "
                      "step sizes and two ε, and in four cases made for them: decay that moves x so fast that momentum lags "
                      "behind as far as it can (ramp, crossing), and noise that turns signs (coin, skew). The fact about "
                      "weighted noise is looked at in every coordinate. The indicator is tried on signs, zeros and random "
                      "sizes.",
                  .command = {},
                  .claims = {},
                  .figures = {},
                  .tables = {lemma_table(checks), update_table()},
                  .files = {}};
  for (const LemmaCheck& check : checks) {
    if (check.lemma == Lemma::corrected) continue;
    section.claims.push_back({.text = std::string(statement_of(check.lemma)),
                              .source = fmt::format("appendix E, {}", source_of(check.lemma)),
                              .outcome = outcome_of(check.holds()),
                              .evidence = fmt::format("largest left / right {:.2g} ({})", check.worst, check.where),
                              .mutations = mutations_of(check)});
  }
  section.claims.push_back(noise_claim());
  section.claims.push_back(momentum_order_claim());
  return section;
}

}  // namespace cautious::lab
