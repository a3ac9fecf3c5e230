#include "lab/toy/least_in_box.h"

#include <algorithm>
#include <cmath>

#include "lab/random.h"

namespace cautious::lab {
namespace {

constexpr int kRandomStarts = 16, kSteps = 2000;
constexpr std::uint64_t kSeed = 7;

void clamp(Point& x, double half_side) {
  for (double& value : x) value = std::clamp(value, -half_side, half_side);
}

// Steps that halve until f falls (Armijo's rule on the projected step) and double again; stops where none does.
double descend(const Problem& problem, Point x, double half_side) {
  clamp(x, half_side);
  double f = problem.value(x), step = 0.1;
  Point g(x.size()), next(x.size());
  for (int i = 0; i < kSteps; ++i) {
    problem.gradient(x, g);
    for (;; step /= 2) {
      if (step < 1e-16) return f;
      double decrease = 0;
      for (std::size_t k = 0; k < x.size(); ++k) {
        next[k] = std::clamp(x[k] - step * g[k], -half_side, half_side);
        decrease += g[k] * (x[k] - next[k]);
      }
      if (decrease <= 1e-16 * (1 + std::abs(f))) return f;
      const double found = problem.value(next);
      if (found <= f - 1e-4 * decrease) {
        x = next;
        f = found;
        step *= 2;
        break;
      }
    }
  }
  return f;
}

}  // namespace

double least_in_box(const Problem& problem, double half_side, const std::vector<Point>& guesses) {
  std::vector<Point> starts = guesses;
  starts.emplace_back(problem.size(), 0.0);
  Random random(kSeed);
  const double reach = std::min(half_side, 10.0);
  for (int i = 0; i < kRandomStarts; ++i) {
    Point x(problem.size());
    for (double& value : x) value = random.uniform(-reach, reach);
    starts.push_back(std::move(x));
  }
  double least = INFINITY;
  for (const Point& start : starts) {
    const double found = descend(problem, start, half_side);
    if (found < least) least = found;
  }
  return least;
}

}  // namespace cautious::lab
