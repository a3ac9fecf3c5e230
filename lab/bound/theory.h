// Theorem 1 and its lemmas (appendix E) as formulas: the right side of each inequality.
//
// One step of the proof is not valid as written. Before the sum over t, the descent inequality is multiplied by
// (1 - beta1^t) (G + eps) / eta, so its left side has weights w_t = 1 - beta1^t that grow with t, and
//   sum_t w_t (F_t - F_{t+1}) = w_1 F_1 + sum_{t >= 2} (w_t - w_{t-1}) F_t - w_T F_{T+1},   F_t = E f(x_t) - f*,
// which is at most the mean of the F_t with weights (1 - beta1) beta1^(t-1), not F_1. K1 is proved for that mean (or for
// sup F_t) in place of f(x_1) - f*.
//
// The theorem is true all the same, with the paper's K1 ... K4. Use the corrected momentum m_hat_t = sum_k a_k g_k, a_k =
// (1 - beta1) beta1^(t-k) / (1 - beta1^t), whose signs are those of m_t. As sum a_k = 1,
//   E |grad f(x_t) - m_hat_t|_1 <= beta1 eta L d (C + lambda R) / (1 - beta1) + spread_t d s,   s = min(sigma / sqrt(n), G),
// with spread_t^2 = sum a_k^2 = (1 - beta1) (1 + beta1^t) / ((1 + beta1) (1 - beta1^t)) and without the term beta1^t G d. The
// proof's other steps then give E[f(x_{t+1}) - f(x_t)] with no factor 1 / (1 - beta1^t), the sum telescopes, and what is left
// is K1 / (eta T) + K3 eta + (G + eps) (G / eps + lambda R) d s mean spread_t. Now spread_1 = 1 and spread_t <= 1 / sqrt(1 +
// beta1) from t = 2 on, which is K4 but for the first step; that one's excess is within K2 / T, as s <= G and 1 - 1 / sqrt(1 +
// beta1) <= beta1 / (1 - beta1). G + eps >= 1 is enough, G >= 1 / (1 - beta1) is not needed; and as the variance is a sum over
// coordinates, d s may be sqrt(d) sigma / sqrt(n). sharper_bound() is this one.
//
// K2 is not needed at all. In the first step xi = g_1 - grad f(x_1) has mean 0, so for any weight w in [0, W] that depends on
// it, |E[w xi_i]| <= W max(E xi_i^+, E xi_i^-) = W E|xi_i| / 2. With w = 1 / (|g_i| + eps) - 1 / (G + eps) and W = 1 / eps for
// the update, and by Markov's inequality on one side for the mask, the error counts half: spread_1 becomes 1/2, which is
// within 1 / sqrt(1 + beta1) too. None of this uses the function H of the continuous systems.
#pragma once

#include <cstddef>

namespace cautious::lab {

struct BoundSetting {
  double eta = 0.01;
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;  // lambda
  std::size_t batch = 1;      // n
  bool masked = true;         // false: plain decay, which Theorem 1 is not about
};

struct BoundConstants {
  double smoothness = 0;  // L
  double radius = 0;      // R
  double gradient = 0;    // G: |g_t|_inf at most
  double deviation = 0;   // sigma: E|g_t - grad f(x_t)|_2^2 is at most sigma^2 / n
  double gap = 0;         // f(x_1) - f*
  double dimension = 0;   // d
};

struct BoundFactors {
  double k1 = 0, k2 = 0, k3 = 0, k4 = 0;
  double lag = 0;  // what is in K3 because momentum lags behind
};

// C of lemma 1, which bounds |u|_inf if beta1 <= beta2.
double largest_update(const BoundSetting& setting);

// The least upper bound of |u| after t steps over all gradients, for eps -> 0 (Cauchy and Schwarz with equality:
// g_k = (beta1 / beta2)^(t-k)). Needs beta2 > 0.
double attainable_update(const BoundSetting& setting, std::size_t t);

// With G raised to 1 / (1 - beta1), as the proof does.
double raised_gradient(const BoundConstants& constants, const BoundSetting& setting);
BoundFactors bound_factors(const BoundConstants& constants, const BoundSetting& setting);

// K1 / (eta T), K2 / T, K3 eta and K4 sigma / sqrt(n).
struct BoundTerms {
  double k1 = 0, k2 = 0, k3 = 0, k4 = 0;
  double scale = 1;  // G + eps, a factor of K1
  double lag = 0;    // of k3
  double sum() const { return k1 + k2 + k3 + k4; }
};
BoundTerms bound_terms(const BoundConstants& constants, const BoundSetting& setting, std::size_t steps);
double sharper_bound(const BoundConstants& constants, const BoundSetting& setting, std::size_t steps);

// What holds of the left side without any theorem: d (G^2 + lambda G R), with G a bound of |grad f|_inf.
double trivial_bound(const BoundConstants& constants, const BoundSetting& setting);

// The right side of the lemma on E |grad f(x_t) - m_t|_1: what momentum started from 0 lacks, how far grad f has moved, noise.
struct MomentumTerms {
  double start = 0, drift = 0, noise = 0;
  double sum() const { return start + drift + noise; }
};
MomentumTerms momentum_terms(const BoundConstants& constants, const BoundSetting& setting, std::size_t t);

// The right sides of the lemmas on the inner products, without their first term, which belongs to the left, are the same times
// these factors.
double direction_factor(const BoundConstants& constants, const BoundSetting& setting);
double mask_factor(const BoundConstants& constants);

// Of E |grad f(x_t) - m_hat_t|_1, as above with sqrt(d) sigma / sqrt(n).
double corrected_momentum_bound(const BoundConstants& constants, const BoundSetting& setting, std::size_t t);

}  // namespace cautious::lab
