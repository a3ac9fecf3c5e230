// The parts of a system's state z, its switches, and grad K(m) with given sides.
//
// Switch i < d is the sign of m_i; for SGD of g_i; of the entry of grad K(m) where the mask follows that of the nuclear norm.
// Some K jump elsewhere too and have more switches: threshold at m_i = e, then at m_i = -e; topk at m_i = m_j and at m_i =
// -m_j, i < j; the nuclear norm of a square matrix where its determinant passes 0.
#pragma once

#include <cmath>

#include "lab/dynamics/system.h"

namespace cautious::lab {

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
