// The lemmas of appendix E on runs of the library's Adam + CWD: the worst left / right of each.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "lab/bound/bound_run.h"

namespace cautious::lab {

enum class Lemma { update, martingale, momentum, direction, indicator, mask, corrected };

struct LemmaCheck {
  Lemma lemma{};
  double worst = 0;  // largest left / right
  std::string where = {};
  bool holds() const { return worst <= 1 + 1e-12; }  // some are attained: rounding
};

std::string_view statement_of(Lemma lemma);
std::string_view source_of(Lemma lemma);

// In the order of Lemma. Expectations are means over the seeds, compared after every one of `steps` steps.
std::vector<LemmaCheck> check_lemmas(std::size_t seeds, std::size_t steps, std::uint64_t seed);

// The same for one setting; without the indicator.
std::vector<LemmaCheck> check_lemmas(const BoundProblem& problem, const BoundSetting& setting, std::size_t seeds,
                                     std::size_t steps, std::uint64_t seed);

// |(1(m x >= 0) - 1(g x >= 0)) x| and 1(m g <= 0) |x|.
double indicator_left(double m, double g, double x);
double indicator_right(double m, double g, double x);

// |u_t| of the library's Adam after the gradients (beta1 / beta2)^(t-k), k = 1 ... t, which make it largest.
double adversarial_update(double beta1, double beta2, std::size_t t);

}  // namespace cautious::lab
