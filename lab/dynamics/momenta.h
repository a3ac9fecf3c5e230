// Muon's direction O against its momentum m: how large must lambda/gamma be for H to rise?
//
// Where x is tiny and its signs are the worst ones, dH/dt = -gamma |m|_* + lambda N(m), with N(m) the sum of |O m| over the
// entries with O m < 0. So dH/dt <= 0 at every state exactly if lambda/gamma is at most the least of |m|_* / N(m). Write m = O
// P with P positive semidefinite. The entries of O m add up to tr P = |m|_*, and their sizes to S; N = (S - tr P) / 2. For a
// given O, S is convex in P, so its greatest value for tr P = 1 is at a P of rank one, p p' with |p| = 1:
//   S = |O p|' |O| |p|,  and the least lambda/gamma is 2 / (S - 1).
// S is at most the norm of |O|, which is at most that of O in the sense of Frobenius: sqrt(n), n the smaller side. Kronecker
// products of O and p multiply S; O = Hadamard's matrix / 2 and p = (1, 1, 1, -1) / 2 have S = 2 = sqrt(4). So for n a power of
// 4 the least lambda/gamma is 2 / (sqrt(n) - 1), and for no other n is it less than that.
#pragma once

#include <cstddef>
#include <cstdint>

#include "lab/dynamics/system.h"
#include "lab/numbers.h"
#include "lab/problem/problem.h"

namespace cautious::lab {

// The momentum m = O p p' of rank one.
struct RankOne {
  Eigen::MatrixXd o;  // orthogonal
  Eigen::VectorXd p;  // of length 1
};

double opposition(const RankOne& m);  // S
inline double threshold_of(double opposition) { return 2 / (opposition - 1); }
double least_threshold(std::int64_t n);  // 2 / (sqrt(n) - 1)

// Uphill from that many random starts: the best.
RankOne climb_from_random(Random& random, std::int64_t n, std::size_t starts);
// With S = sqrt(n), for n = 4, 16, 64, ...
RankOne flat_momentum(std::int64_t n);
// The 2 x 2 one with S = 5/4: O turns by 30 degrees, p is at 30 degrees.
RankOne turned_momentum();

// dH/dt over |m|_* of Muon + CWD with the mask by m, where x is tiny and has the worst signs; m a little off rank one, so that
// its orthogonal factor is O.
double worst_rate(const RankOne& m, double lambda, double gamma);

// C = u v' + noise Z for normal u, v and Z, and |X - C|^2 / 2 with the start 0.
Matrix near_rank_one(Random& random, std::int64_t n, double noise);
Problem nearest_matrix(const Matrix& c);

// Muon + CWD with the mask by m, by Runge and Kutta's steps of fixed length: large matrices have thousands of switches, which
// are not located. H is continuous across them.
struct LargeFlow {
  double rise = 0;     // the most that H is above an earlier value, over its fall
  double of_h = 0;     // the same over H at the start
  double until = 0;    // when that is
  double first = 0;    // least lambda/gamma for which H rises at once: |C|_* / N(C)
  double against = 0;  // part of the entries of m with O m < 0, over the time
};
LargeFlow large_flow(const System& system, const Matrix& c, double t_end, std::size_t steps);

// Random matrices m with their orthogonal factors.
struct Signs {
  double differ = 0;  // part of the entries with O m < 0
  double ratio = 0;   // least |m|_* / N(m)
};
Signs signs_of(const std::vector<Matrix>& matrices);

}  // namespace cautious::lab
