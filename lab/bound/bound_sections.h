// The sections of the experiment: each runs its part and says what came out.
#pragma once

#include "lab/bound/bound.h"
#include "lab/bound/bound_lemmas.h"
#include "lab/bound/bound_sweep.h"

namespace cautious::lab {

// Left side and bound over T, eta and n. Adds every comparison to the tally.
Section sweep_section(const BoundOptions& options, const Progress& progress, BoundTally& tally);

// eta = 1 / sqrt(T).
Section rate_section(const BoundOptions& options, const Progress& progress, BoundTally& tally);

Section lemma_section(const std::vector<LemmaCheck>& checks);

Claim theorem_claim(const BoundTally& tally);

// What a reader of the proof finds; `tally` is of all comparisons.
Section proof_section(const BoundTally& tally, const std::vector<LemmaCheck>& checks);

// The mean of <x_t, c> / <c, c> over the second half of a run, c the minimiser: 1 if the iterates settle about it, less if they
// are drawn towards the origin.
double part_of_minimiser(const BoundProblem& problem, const BoundSetting& setting, std::size_t steps, std::uint64_t seed);

// The weighted sum of descents in the proof, sum_t (1 - beta1^t) (f(x_t) - f(x_{t+1})), of a run without noise.
double weighted_descent(const BoundProblem& problem, const BoundSetting& setting, PointView start, std::size_t steps);

}  // namespace cautious::lab
