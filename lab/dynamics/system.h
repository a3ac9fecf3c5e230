// The continuous-time systems of Table 1 and appendix D: their fields as inclusions, the Lyapunov functions H and the analytic
// dH/dt of the appendix.
//   SGD     x' = -g - D                           H = f
//   SGDM    x' = -m - D,  m' = beta (g - m)       H = beta f + |m|^2/2 + lambda |(m x)+|_1
//   Lion-K  x' = grad K(m) - D,  m' = -alpha g - gamma m
//                                                 H = alpha f + K(m) + lambda |(-m x)+|_1
//   Adam    x' = -alpha_t m / h - D,  m' = alpha (g - m),  v' = gamma (g^2 - v),  h = sqrt(gamma_t v) + eps
//                                                 H = alpha f + |alpha_t m^2 / 2h|_1 + lambda |(m x)+|_1
// with g = grad f(x) and D = 0 (none), lambda x (decoupled) or lambda 1(u x >= 0) x (cautious), u the direction.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/rules/lion_k.h>

#include "lab/dynamics/inclusion.h"
#include "lab/problem/problem.h"

namespace cautious::lab {

enum class Flow { sgd, sgdm, lion_k, adam };
enum class FlowDecay { none, decoupled, cautious };

struct System {
  Flow flow{};
  FlowDecay decay = FlowDecay::cautious;
  double lambda = 0.5;
  double alpha = 1, beta = 1, gamma = 1, eps = 1e-3;
  ConvexFunction k{};               // of Lion-K
  std::int64_t rows = 0, cols = 0;  // of x, for K the nuclear norm
  // Lion-K: the paper's continuous mask 1(m x <= 0); false: that of algorithm 3, 1(grad K(m) x <= 0).
  bool mask_by_momentum = true;
  bool reversed = false;  // a mutation: CWD decays exactly where it should not
};

std::string name_of(const System& system);  // "Lion-K (huber) + CWD"

// z is x, then m and v where the flow has them. `problem` must outlive it.
Inclusion inclusion_of(const System& system, const Problem& problem);

// z at x with m and v as if they had been 0 at time 0 and g constant from then to t. Adam's field needs t > 0.
Point state_at(const System& system, const Problem& problem, PointView x, double t);

// H of the paper for this system; for decoupled decay the one of Chen et al. (Lion-K, and SGDM as its K = |.|^2 / 2), f +
// lambda |x|^2 / 2 (SGD), or the candidate of the remark (Adam: not a Lyapunov function). Weights that are not 1 make another
// function of it, to see that a check notices.
struct LyapunovWeights {
  double momentum = 1;  // of the term of m alone
  double cross = 1;     // of the term of m and x
};
double lyapunov(const System& system, const Problem& problem, double t, PointView z, const LyapunovWeights& weights = {});

// dH/dt by the appendix's formula at a point of smoothness, or while sliding with these sides.
double lyapunov_rate(const System& system, const Problem& problem, double t, PointView z, PointView side);

// Adam + CWD: the appendix's upper bound of dH/dt, which is at most 0 for gamma <= 4 alpha.
double adam_rate_bound(const System& system, double t, PointView z);

// The parts of a system's state z, its switches, and grad K(m) with given sides.
//
// Switch i < d is the sign of m_i; for SGD of g_i; of the entry of grad K(m) where the mask follows that of the nuclear norm.
// Some K jump elsewhere too and have more switches: threshold at m_i = e, then at m_i = -e; topk at m_i = m_j and at m_i =
// -m_j, i < j; the nuclear norm of a square matrix where its determinant passes 0.

struct StateView {
  PointView x, m, v;  // empty where the flow has none
};

StateView parts(const System& system, PointView z);

// Of z, for a problem of d variables.
std::size_t state_size(const System& system, std::size_t d);
std::size_t switch_count(const System& system, std::size_t d);

// The mask of algorithm 3 with K the nuclear norm: its switches are the entries of the orthogonal factor of m.
bool mask_follows_polar(const System& system);

// g: the gradient at x.
void indicators(const System& system, PointView z, PointView g, std::span<double> q);

// K(m), and its subgradient with these sides.
double k_value(const System& system, PointView m);
void k_gradient(const System& system, PointView m, PointView side, std::span<double> u);

// How much of the decay acts on coordinate i: 0 without decay, 1 if it is decoupled, else the selector in [0, 1]. u: grad K(m)
// of Lion-K.
double selector(const System& system, PointView x, PointView side, PointView u, std::size_t i);

inline double sign(double a) { return a > 0 ? 1 : a < 0 ? -1 : 0; }
inline double positive_part(double a) { return a > 0 ? a : 0; }

// alpha_t = 1 / (1 - exp(-alpha t)); 1 for infinite t.
inline double bias_correction(double rate, double t) { return -1 / std::expm1(-rate * t); }

}  // namespace cautious::lab
