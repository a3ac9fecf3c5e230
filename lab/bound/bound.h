// `cautious lab bound`: Theorem 1, the convergence rate of discrete Adam with CWD (appendix E), with K1 ... K4 as in the proof.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/detail/field.h>

#include "lab/bound/runs.h"
#include "lab/experiment.h"
#include "report/chart.h"

namespace cautious::lab {

struct BoundOptions {
  std::size_t seeds = 64;  // runs per estimate of the left side
  std::uint64_t seed = 0;
};

inline constexpr Range kBoundSeeds{2, 10000, false, false};

// Throws an Error(Fault::usage) if the number of seeds is out of range.
Experiment run_bound(const BoundOptions& options, const Progress& progress);

// The lemmas of appendix E on runs of the library's Adam + CWD: the worst left / right of each.
enum class Lemma { update, martingale, momentum, direction, indicator, mask, corrected };

struct LemmaCheck {
  Lemma lemma{};
  double worst = 0;  // largest left / right; of the martingale, of the left side less four standard errors
  std::string where = {};
  // The same without one of the three terms of the right side, for lemmas that have them.
  double without_start = 0, without_drift = 0, without_noise = 0;
  bool holds() const { return worst <= 1 + 1e-12; }  // some are attained: rounding
};

std::string_view statement_of(Lemma lemma);
std::string_view source_of(Lemma lemma);

// In the order of Lemma, on the problems with many settings and on the tight cases. Expectations are means over the seeds,
// compared after every one of `steps` steps.
std::vector<LemmaCheck> check_lemmas(std::size_t seeds, std::size_t steps, std::uint64_t seed);

// The same for one setting; without the indicator.
std::vector<LemmaCheck> check_lemmas(const BoundProblem& problem, const BoundSetting& setting, std::size_t seeds,
                                     std::size_t steps, std::uint64_t seed);

// |(1(m x >= 0) - 1(g x >= 0)) x| and 1(m g <= 0) |x|.
double indicator_left(double m, double g, double x);
double indicator_right(double m, double g, double x);

// Left / right with 1(m g < 0) on the right, at m = 0: infinite.
double strict_indicator_ratio();

// |u_t| of the library's Adam after the gradients (beta1 / beta2)^(t-k), k = 1 ... t, which make it largest.
double adversarial_update(double beta1, double beta2, std::size_t t);

// eps = 1: the bound is least loose about there.
inline constexpr BoundSetting kUsualSetting{.eta = 0.01, .eps = 1};

// No momentum and a small eps: the update is little more than the sign of one gradient, which noise can hide.
inline constexpr BoundSetting kSignSetting{.eta = 0.03, .beta1 = 0, .beta2 = 0, .eps = 0.01};

struct NamedCurve {
  std::string name;
  BoundCurve curve;
};

// Both axes logarithmic.
report::LineChart bound_chart(std::string title, std::string x_label, std::string description);

// Left sides with their intervals, then the paper's bound for each, then sharper_bound() for the first.
void add_curves(report::LineChart& chart, const std::vector<NamedCurve>& curves);

// first, first * factor, ... up to last.
std::vector<std::size_t> powers(std::size_t first, std::size_t last, std::size_t factor);

// The sections: each runs its part and says what came out. Left side and bound over T, eta and n. Adds every comparison to the
// tally.
Section sweep_section(const BoundOptions& options, const Progress& progress, BoundTally& tally);

// Cases in which the bound is nearly attained. Adds their comparisons to the tally.
void add_tight_cases(const BoundOptions& options, BoundTally& tally);

// eta = 1 / sqrt(T).
Section rate_section(const BoundOptions& options, const Progress& progress, BoundTally& tally);

Section lemma_section(const std::vector<LemmaCheck>& checks);

Claim theorem_claim(const BoundTally& tally);

// What the remarks and the assumptions say and what they do not: Pareto, and bounded iterates.
Section remarks_section(const Progress& progress);

// What a reader of the proof finds; `tally` is of all comparisons.
Section proof_section(const BoundTally& tally, const std::vector<LemmaCheck>& checks);

// The mean of <x_t, c> / <c, c> over the second half of a run, c the minimiser: 1 if the iterates settle about it, less if they
// are drawn towards the origin.
double part_of_minimiser(const BoundProblem& problem, const BoundSetting& setting, std::size_t steps, std::uint64_t seed);

// The weighted sum of descents in the proof, sum_t (1 - beta1^t) (f(x_t) - f(x_{t+1})), of a run without noise.
double weighted_descent(const BoundProblem& problem, const BoundSetting& setting, PointView start, std::size_t steps);

}  // namespace cautious::lab
