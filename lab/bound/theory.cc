// The formulas of theory.h.
#include "lab/bound/theory.h"

#include <algorithm>
#include <cmath>

namespace cautious::lab {
namespace {

double power(double base, std::size_t exponent) { return std::pow(base, static_cast<double>(exponent)); }

// Of the mean over a batch.
double deviation_of(const BoundConstants& c, const BoundSetting& s) {
  return c.deviation / std::sqrt(static_cast<double>(s.batch));
}

// Of grad f from one step to the next, per unit of eta and summed over the steps that the momentum remembers.
double drift(const BoundConstants& c, const BoundSetting& s) {
  return s.beta1 * c.smoothness * c.dimension * (largest_update(s) + s.weight_decay * c.radius) / (1 - s.beta1);
}

double curvature(const BoundConstants& c, const BoundSetting& s) {
  const double update = largest_update(s), decay = s.weight_decay * c.radius;
  return c.smoothness * c.dimension * (update * update + decay * decay);
}

double spread(const BoundSetting& s, std::size_t t) {
  const double forgotten = power(s.beta1, t);
  return std::sqrt((1 - s.beta1) * (1 + forgotten) / ((1 + s.beta1) * (1 - forgotten)));
}

double sensitivity(const BoundConstants& c, const BoundSetting& s) { return c.gradient / s.eps + s.weight_decay * c.radius; }

}  // namespace

double largest_update(const BoundSetting& setting) { return std::sqrt((1 - setting.beta1) / (1 - setting.beta2)); }

double attainable_update(const BoundSetting& setting, std::size_t t) {
  const double ratio = setting.beta1 * setting.beta1 / setting.beta2;
  double sum = 0;
  for (std::size_t k = t; k-- > 0;) sum = 1 + ratio * sum;
  const double first = (1 - setting.beta1) / (1 - power(setting.beta1, t));
  const double second = (1 - setting.beta2) / (1 - power(setting.beta2, t));
  return first * std::sqrt(sum / second);
}

double raised_gradient(const BoundConstants& c, const BoundSetting& s) { return std::max(c.gradient, 1 / (1 - s.beta1)); }

BoundFactors bound_factors(const BoundConstants& constants, const BoundSetting& s) {
  BoundConstants c = constants;
  c.gradient = raised_gradient(constants, s);
  const double scale = c.gradient + s.eps;
  return {.k1 = scale * c.gap,
          .k2 = s.beta1 * c.gradient * c.dimension * scale / (1 - s.beta1) * sensitivity(c, s),
          .k3 = scale * (drift(c, s) * sensitivity(c, s) + curvature(c, s)),
          .k4 = c.dimension * scale / std::sqrt(1 + s.beta1) * sensitivity(c, s),
          .lag = scale * drift(c, s) * sensitivity(c, s)};
}

BoundTerms bound_terms(const BoundConstants& c, const BoundSetting& s, std::size_t steps) {
  const BoundFactors k = bound_factors(c, s);
  const double count = static_cast<double>(steps);
  return {.k1 = k.k1 / (s.eta * count),
          .k2 = k.k2 / count,
          .k3 = k.k3 * s.eta,
          .k4 = k.k4 * deviation_of(c, s),
          .scale = raised_gradient(c, s) + s.eps,
          .lag = k.lag * s.eta};
}

double sharper_bound(const BoundConstants& constants, const BoundSetting& s, std::size_t steps) {
  BoundConstants c = constants;
  c.gradient = std::max(c.gradient, 1 - s.eps);
  double error = -std::sqrt(c.dimension) * deviation_of(c, s) / 2;  // in the first step the noise counts half
  for (std::size_t t = 1; t <= steps; ++t) error += corrected_momentum_bound(c, s, t);
  const double count = static_cast<double>(steps);
  return (c.gradient + s.eps) * (c.gap / (s.eta * count) + sensitivity(c, s) * error / count + s.eta * curvature(c, s));
}

double trivial_bound(const BoundConstants& c, const BoundSetting& s) {
  return c.dimension * c.gradient * (c.gradient + s.weight_decay * c.radius);
}

MomentumTerms momentum_terms(const BoundConstants& c, const BoundSetting& s, std::size_t t) {
  return {.start = power(s.beta1, t) * c.gradient * c.dimension,
          .drift = s.eta * drift(c, s),
          .noise = c.dimension * deviation_of(c, s) / std::sqrt(1 + s.beta1)};
}

double direction_factor(const BoundConstants& c, const BoundSetting& s) { return c.gradient / s.eps; }
double mask_factor(const BoundConstants& c) { return c.radius; }

double corrected_momentum_bound(const BoundConstants& c, const BoundSetting& s, std::size_t t) {
  return s.eta * drift(c, s) + spread(s, t) * std::sqrt(c.dimension) * deviation_of(c, s);
}

}  // namespace cautious::lab
