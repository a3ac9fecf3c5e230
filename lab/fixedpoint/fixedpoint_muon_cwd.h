// Muon with cautious decay. The nuclear norm is a norm, so at a fixed point the gradient vanishes (appendix C). But the
// mask works on entries and the norm does not: while the gradient has one singular value that is not 0, single entries of the
// orthogonal factor can change sign from step to step, and masked decay then balances the update on average. For a K that is a
// sum over coordinates this cannot happen, as an update changes sign only where its gradient is 0.
#pragma once

#include "lab/fixedpoint/fixedpoint_sections.h"

namespace cautious::lab::fixedpoint {

// |A X - B|_F^2 / 2 with a random 6 x 5 matrix A and 6 x 4 matrix B.
MatrixLeastSquares random_least_squares(Random& random);

// Twelve, all others with another seed.
std::vector<MatrixLeastSquares> muon_cwd_problems(std::uint64_t seed);

struct MuonCwd {
  Claim claim;
  report::Table table;
};

MuonCwd run_muon_cwd(const FixedpointOptions& options);

}  // namespace cautious::lab::fixedpoint
