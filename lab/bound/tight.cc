// Nearly tight cases: constructed for the lemmas, searched for the noise terms.
#include "lab/bound/tight.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace cautious::lab {
namespace {

BoundProblem line(std::string name, double a, double b, double start, BoundNoise noise) {
  BoundProblem problem;
  problem.name = std::move(name);
  problem.formula = "a x + b x² / 2";
  problem.start = {start};
  problem.minimiser = {b == 0 ? start : -a / b};
  problem.smoothness = std::abs(b);
  problem.slope = std::abs(a + b * start);
  problem.noise = noise;
  problem.value = [a, b](PointView x) { return a * x[0] + b * x[0] * x[0] / 2; };
  problem.gradient = [a, b](PointView x, std::span<double> g) { g[0] = a + b * x[0]; };
  return problem;
}

}  // namespace

std::vector<TightCase> tight_lemma_cases() {
  constexpr double kDecay = 50;  // lambda R: what decay moves dwarfs any update, at most 1
  const auto moving = [](double eta, double eps) {
    return BoundSetting{.eta = eta, .beta1 = 0.9, .beta2 = 0.9, .eps = eps, .weight_decay = kDecay};
  };
  constexpr double kSize = 0.5;
  const BoundSetting plain{.eta = 1e-3, .beta1 = 0, .beta2 = 0, .eps = 0.5375};
  return {{line("ramp", 1, -0.1, 1, {}), moving(8e-6, 20), 1, 110},
          {line("crossing", 0.952, 1, -1, {}), moving(1.6e-5, 1), 1, 128},
          {line("coin", 0.999 * kSize, 0, 1, {.size = kSize}), plain, 1024, 16},
          {line("skew", -0.6764, 0, 1, {.size = 0.945, .rarity = 2}), plain, 1024, 16}};
}

// The best of search_two_values() for noise with probability 1/8, lambda R = 1.55 and slope 0.077, in a bowl whose slope is at
// most 0.1.
TightCase tight_noise_case() {
  BoundProblem problem;
  problem.name = "flat bowl";
  problem.formula = "(√(1 + r²) - 1) / 10, r = x - 1.9";
  problem.start = {3.1};
  problem.minimiser = {1.9};
  problem.smoothness = 0.1;
  problem.slope = 0.1;
  problem.noise = {.size = 0.92, .rarity = 3};
  problem.value = [](PointView x) { return 0.1 * (std::hypot(1, x[0] - 1.9) - 1); };
  problem.gradient = [](PointView x, std::span<double> g) { g[0] = 0.1 * (x[0] - 1.9) / std::hypot(1, x[0] - 1.9); };
  return {std::move(problem), {.eta = 2e-3, .beta1 = 0, .beta2 = 0, .eps = 0.107, .weight_decay = 0.5}, 8, 16384};
}

std::vector<TightCase> tight_theorem_cases() {
  BoundProblem slow = bound_problems().front();
  slow.name = "slow bowl";
  slow.noise = {};
  const BoundSetting sign{.eta = 2, .beta1 = 0, .beta2 = 0, .eps = 1e-8, .weight_decay = 0};
  const BoundSetting descent{.eta = 1e-3, .beta1 = 0, .beta2 = 0, .eps = 30, .weight_decay = 0};
  return {tight_noise_case(), {std::move(slow), descent, 2, 1 << 18}, {line("zigzag", 0, 1, 1, {}), sign, 2, 1024}};
}

// g is 1 with probability p, and -h otherwise: the scale does not matter where G + eps >= 1, and G is 1.
NoiseSearch search_two_values(std::size_t draws, std::uint64_t seed) {
  Random random(seed);
  NoiseSearch found;
  for (std::size_t k = 0; k < draws; ++k) {
    const double p = random.uniform(), eps = std::pow(10, random.uniform(-3, 1));
    const double h = random.below(2) == 0 ? random.uniform(-1, 1) : std::pow(10, random.uniform(-3, 0));
    const double f = p - (1 - p) * h, sigma = std::sqrt(p * (1 - p)) * (1 + h);
    const double update = p / (1 + eps) - (1 - p) * h / (std::abs(h) + eps);
    const double lost = (f * f / (1 + eps) - f * update) * eps;
    found.update = std::max(found.update, lost / sigma);
    found.first = std::max(found.first, lost / (p * (1 - p) * (1 + h)));
    if (h > 0) found.mask = std::max(found.mask, std::abs(f) * (f > 0 ? 1 - p : p) / sigma);
    // x > 0 is at rest if decay, on with probability p, undoes the update; lambda x = decay.
    const double decay = -update / p;
    if (h > 0 && f > 0 && decay >= 0) {
      found.stationary = std::max(found.stationary, (f * f + decay * f) / ((1 + eps) * (1 / eps + decay) * sigma));
    }
  }
  return found;
}

}  // namespace cautious::lab
