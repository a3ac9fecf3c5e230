#include "lab/bound/bound_problem.h"

#include <bit>
#include <cmath>

namespace cautious::lab {
namespace {

// f = sum of part(x_i - c_i).
struct Part {
  double (*value)(double r);
  double (*slope)(double r);
};

BoundProblem separable(Point centre, Point start, Part part) {
  BoundProblem problem;
  problem.start = std::move(start);
  problem.minimiser = centre;
  problem.coercive = true;
  problem.value = [centre, part](PointView x) {
    double sum = 0;
    for (std::size_t i = 0; i < x.size(); ++i) sum += part.value(x[i] - centre[i]);
    return sum;
  };
  problem.gradient = [centre, part](PointView x, std::span<double> g) {
    for (std::size_t i = 0; i < x.size(); ++i) g[i] = part.slope(x[i] - centre[i]);
  };
  return problem;
}

// The second derivative (1 + r^2)^(-3/2) is in (0, 1], the first in (-1, 1).
BoundProblem bowl() {
  constexpr Part part{[](double r) { return std::sqrt(1 + r * r) - 1; }, [](double r) { return r / std::sqrt(1 + r * r); }};
  BoundProblem problem = separable({1, -1, 0.5, -2}, {-1, -3, 2, 1}, part);
  problem.name = "bowl";
  problem.formula = "sum of √(1 + r²) - 1, r = x - c";
  problem.smoothness = 1;
  problem.slope = 1;
  problem.noise = {.size = 0.8};
  return problem;
}

// With waves b (1 - cos(w r)): the second derivative is between -b w^2 and 1 + b w^2, the first within 1 + b w; b w = 0.6 makes
// local minima.
BoundProblem ripple() {
  constexpr double kWave = 8, kHeight = 0.6 / kWave;
  constexpr Part part{[](double r) { return std::sqrt(1 + r * r) - 1 + kHeight * (1 - std::cos(kWave * r)); },
                      [](double r) { return r / std::sqrt(1 + r * r) + kHeight * kWave * std::sin(kWave * r); }};
  BoundProblem problem = separable({1, -1, 0.5, -2}, {-1, -3, 2, 1}, part);
  problem.name = "ripple";
  problem.formula = "bowl + sum of 0.075 (1 - cos 8 r)";
  problem.smoothness = 1 + kHeight * kWave * kWave;
  problem.ripple = kHeight * kWave;
  problem.slope = 1 + problem.ripple;
  problem.noise = {.size = 0.25};
  return problem;
}

// psi(r) = r^2 / (1 + r^2) of r = <a, x> - 1 with |a| = 1: psi'' = (2 - 6 r^2) / (1 + r^2)^3 is largest in size at 0, and
// psi' = 2 r / (1 + r^2)^2 at r = 1 / sqrt(3), where it is 9 / (8 sqrt(3)). The minimisers are a hyperplane.
BoundProblem valley() {
  const Point a{0.7, -0.5, 0.1, 0.5};
  BoundProblem problem;
  problem.name = "valley";
  problem.formula = "r² / (1 + r²), r = <a, x> - 1, |a| = 1";
  problem.start = {-0.5, 1, 1.5, 1};
  problem.minimiser = a;
  problem.smoothness = 2;
  problem.slope = 0.7 * 9 / (8 * std::sqrt(3));
  problem.noise = {.size = 0.25};
  const auto residual = [a](PointView x) { return as_vector(PointView(a)).dot(as_vector(x)) - 1; };
  problem.value = [residual](PointView x) {
    const double r = residual(x);
    return r * r / (1 + r * r);
  };
  problem.gradient = [residual, a](PointView x, std::span<double> g) {
    const double r = residual(x), q = 1 + r * r;
    as_vector(g) = 2 * r / (q * q) * as_vector(PointView(a));
  };
  return problem;
}

// A bit of the conjunction of `rarity` random words is set with probability 2^-rarity. A constant `words` saves a division.
inline int hits_in(Random& random, std::size_t words, int rarity) {
  std::size_t word = random.below(words);
  for (int i = 1; i < rarity; ++i) word &= random.below(words);
  return std::popcount(word);
}

}  // namespace

const std::vector<BoundProblem>& bound_problems() {
  static const std::vector<BoundProblem> problems{bowl(), ripple(), valley()};
  return problems;
}

double batch_noise(Random& random, const BoundNoise& noise, std::size_t batch) {
  if (noise.size == 0) return 0;
  constexpr std::size_t kBits = 63, kWords = std::size_t{1} << kBits;
  const std::size_t rest = batch % kBits;
  int hits = 0;
  for (std::size_t k = 0; k < batch / kBits; ++k) hits += hits_in(random, kWords, noise.rarity);
  if (rest > 0) hits += hits_in(random, std::size_t{1} << rest, noise.rarity);
  const double p = noise.probability();
  return noise.size * (hits / static_cast<double>(batch) - p) / (1 - p);
}

}  // namespace cautious::lab
