// What is said beside Theorem 1: that its left side has to do with a Pareto front, and that its third assumption can be
// justified.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include "lab/bound/bound.h"
#include "lab/bound/tight.h"

namespace cautious::lab {
namespace {

// Of x: the sum of (grad f x)^+, and what bounds it, R |grad f|_1.
struct Conflict {
  double term = 0, bound = 0;
};

Conflict conflict_at(const BoundProblem& problem, PointView x) {
  Point g(x.size());
  problem.gradient(x, g);
  Conflict found;
  for (std::size_t i = 0; i < x.size(); ++i) found.term += std::max(0.0, g[i] * x[i]);
  found.bound = as_vector(x).lpNorm<Eigen::Infinity>() * as_vector(PointView(g)).lpNorm<1>();
  return found;
}

// The valley's minimisers are the x with <a, x> = 1. One of them is beaten if a_i x_i < 0 for some i: move x_i toward 0, and
// the sum back to 1 with another that counts for it.
Claim pareto_claim() {
  const BoundProblem& valley = bound_problems()[2];
  const Point& a = valley.minimiser;
  const BoundSetting no_decay{.eta = 0.01, .eps = 1, .weight_decay = 0};
  BoundRun run(valley, {}, no_decay, valley.start, 0);
  double largest = 0;
  for (int t = 0; t < 20'000; ++t) {
    run.step();
    const Conflict here = conflict_at(valley, run.point());
    if (here.bound > 0) largest = std::max(largest, here.term / here.bound);
  }
  const Point x(run.point().begin(), run.point().end());
  Point better = x;
  std::size_t wrong = 0, right = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (a[i] * x[i] < a[wrong] * x[wrong]) wrong = i;
    if (a[i] * x[i] > a[right] * x[right]) right = i;
  }
  const double moved = 0.9 * std::min(std::abs(a[wrong] * x[wrong]), std::abs(a[right] * x[right]));
  better[wrong] -= std::copysign(moved / std::abs(a[wrong]), x[wrong]);
  better[right] -= std::copysign(moved / std::abs(a[right]), x[right]);
  const bool beaten = valley.value(better) <= valley.value(x) + 1e-12 && std::abs(better[wrong]) < std::abs(x[wrong]) &&
                      std::abs(better[right]) < std::abs(x[right]);
  return {
      .text =
          "A small |(∇f x)⁺|₁ means that f and the magnitudes can hardly be lowered together: convergence toward a Pareto "
          "front",
      .source = "first remark after Theorem 1",
      .outcome = outcome_of(!beaten),
      .evidence = fmt::format("the term is 0 at every stationary point, and everywhere at most R |∇f|₁ (largest ratio on "
                              "this run {:.2g}). Valley, Adam without any decay: it ends with |(∇f x)⁺|₁ = {:.1e}, and the "
                              "minimiser with x{} = {:.2f} for {:.2f} and x{} = {:.2f} for {:.2f}, all else equal, beats it",
                              largest, conflict_at(valley, x).term, wrong + 1, better[wrong], x[wrong], right + 1,
                              better[right], x[right]),
      .by_hand = "f = (x₁ + x₂ - 2)² at (3, -1): ∇f = 0, so the term is 0. But (2, 0) is a minimiser too, and smaller in both"};
}

constexpr std::array kTimes{100, 1'000, 10'000, 100'000};

// The largest |x| so far, at each of kTimes.
std::vector<double> reach(double weight_decay, double eta, std::uint64_t seed) {
  TightCase tight = tight_noise_case();
  tight.setting.weight_decay = weight_decay;
  tight.setting.eta = eta;
  BoundRun run(tight.problem, tight.problem.noise, tight.setting, tight.problem.start, seed);
  std::vector<double> found;
  double largest = 0;
  int t = 0;
  for (const int time : kTimes) {
    for (; t < time; ++t) {
      run.step();
      largest = std::max(largest, std::abs(run.next()[0]));
    }
    found.push_back(largest);
  }
  return found;
}

struct Reach {
  std::string name;
  double weight_decay, eta;
};

Claim bounded_claim(report::Table& table) {
  bool grows = true;
  std::string evidence;
  for (const Reach& one :
       {Reach{"λ = 0", 0, 0.1}, Reach{"λ = 0", 0, 0.01}, Reach{"CWD, λ = 0.5", 0.5, 0.1}, Reach{"CWD, λ = 0.5", 0.5, 0.01}}) {
    const std::vector<double> found = reach(one.weight_decay, one.eta, 0);
    grows = grows && found.back() > found[1];
    std::vector<std::string> row{one.name, fmt::format("{}", one.eta)};
    for (const double value : found) row.push_back(fmt::format("{:.4g}", value));
    table.rows.push_back(row);
    evidence += fmt::format("{}{}, η = {}: largest |x| {:.3g} after {} steps, {:.3g} after {}", evidence.empty() ? "" : "; ",
                            one.name, one.eta, found[1], kTimes[1], found.back(), kTimes.back());
  }
  return {.text =
              "If f is coercive, a Robbins-Siegmund argument with a small η shows that the states stay in a compact sublevel "
              "set, which justifies the assumption |x|∞ ≤ R",
          .source = "appendix E, below assumption 3",
          .outcome = outcome_of(!grows),
          .evidence = "a coercive bowl, bounded skewed noise, no momentum; " + evidence,
          .by_hand =
              "The argument needs E[V_t+1] ≤ V_t - U_t + Z_t with a finite sum of the Z_t. With a constant rate the noise "
              "adds Z_t = c η² in every step: the sum is infinite for every η > 0. And a slope of 0.1 with noise 0.92 "
              "(probability 1/8) or -0.13 (7/8) gives g = -0.03 in seven of eight steps: a sign-like update goes uphill, "
              "without limit if λ = 0"};
}

}  // namespace

Section remarks_section(const Progress& progress) {
  progress(0.97, "remarks on Theorem 1");
  Section section{.title = "What Theorem 1 does not say",
                  .text =
                      "Theorem 1 bounds |∇f|² + λ |(∇f x)⁺|₁, assumes |x|∞ ≤ R, and does not use the Lyapunov function H. Its "
                      "second term vanishes with the gradient: the theorem says how fast ∇f falls, and nothing about which "
                      "stationary point is reached. For that see the toy problems. R does exist where noise is weaker than the "
                      "slope far out: provable for the bowl and the ripple, and used above.",
                  .command = {},
                  .claims = {},
                  .figures = {},
                  .tables = {},
                  .files = {}};
  report::Table table{.name = "bound_reach",
                      .title = "The largest |x| so far: a coercive f, bounded noise, and no bound in sight",
                      .head = {"decay", "η"},
                      .rows = {},
                      .note =
                          "The flat bowl (√(1 + r²) - 1) / 10 with noise 0.92 at probability 1/8, β₁ = β₂ = 0, ε = 0.107. "
                          "Without decay |x| grows like t; with CWD the decay is on in one step of eight, and any |x| is "
                          "exceeded in time, however small η."};
  for (const int time : kTimes) table.head.push_back(fmt::format("t = {}", time));
  section.claims = {pareto_claim(), bounded_claim(table)};
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace cautious::lab
