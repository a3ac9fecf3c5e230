// The lemmas, checked after every step of many runs.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <cautious/recipe.h>

#include "base/hash.h"
#include "lab/bound/bound.h"
#include "lab/bound/theory.h"

namespace cautious::lab {
namespace {

constexpr std::size_t kLemmas = 7;

// Left sides of the lemmas at one step of one run.
struct Sides {
  double update = 0, martingale = 0, momentum = 0, direction = 0, mask = 0, corrected = 0;
};

// Follows one run; `noise` is sum_k beta1^(t-k) (g_k - grad f(x_k)) in the first coordinate.
class Observer {
 public:
  Observer(const BoundSetting& setting, double gradient) : setting_(setting), gradient_(gradient) {}

  Sides see(const BoundRun& run, std::size_t t) {
    const double c1 = 1 - std::pow(setting_.beta1, t), c2 = 1 - std::pow(setting_.beta2, t);
    noise_ = setting_.beta1 * noise_ + run.sample()[0] - run.slope()[0];
    Sides sides;
    sides.martingale = noise_ * noise_;
    for (std::size_t i = 0; i < run.point().size(); ++i) {
      const double f = run.slope()[i], x = run.point()[i], m = run.momentum()[i];
      const double root = std::sqrt(run.square()[i] / c2) + setting_.eps;
      sides.update = std::max(sides.update, std::abs(m / c1 / root));
      sides.momentum += std::abs(f - m);
      sides.corrected += std::abs(f - m / c1);
      sides.direction += f * f / (gradient_ + setting_.eps) - f * m / root;
      sides.mask += std::max(f * x, 0.0) - (m * x >= 0 ? f * x : 0);
    }
    return sides;
  }

 private:
  BoundSetting setting_;
  double gradient_;
  double noise_ = 0;
};

void raise(std::vector<LemmaCheck>& checks, Lemma lemma, double ratio, const std::string& where) {
  for (LemmaCheck& check : checks) {
    if (check.lemma != lemma || ratio <= check.worst) continue;
    check.worst = ratio;
    check.where = where;
  }
}

double mean_of(const std::vector<Sides>& sides, double Sides::*member) {
  double sum = 0;
  for (const Sides& each : sides) sum += each.*member;
  return sum / static_cast<double>(sides.size());
}

// Every sign and zero, with sizes over many orders of magnitude.
LemmaCheck check_indicator(std::uint64_t seed) {
  Random random(seed);
  LemmaCheck check{.lemma = Lemma::indicator, .where = "m g ≤ 0"};
  for (int k = 0; k < 100'000; ++k) {
    const auto draw = [&] { return static_cast<double>(random.below(3)) - 1; };
    const auto size = [&] { return std::pow(10, random.uniform(-12, 12)); };
    const double m = draw() * size(), g = draw() * size(), x = draw() * size();
    const double left = indicator_left(m, g, x), right = indicator_right(m, g, x);
    if (left > 0) check.worst = std::max(check.worst, left / right);
  }
  return check;
}

}  // namespace

std::string_view statement_of(Lemma lemma) {
  constexpr std::array<std::string_view, kLemmas> texts{
      "|u|∞ ≤ C = √((1 - β₁) / (1 - β₂))",
      "The second moment of weighted noise is ≤ σ² / n times the sum of squared weights",
      "E|∇f - m|₁ ≤ its bound, for every t",
      "E[-<∇f, m / (√v_hat + ε)>] ≤ its bound, for every t",
      "|(1(m x ≥ 0) - 1(g x ≥ 0)) x| ≤ 1(m g ≤ 0) |x|",
      "E[-<∇f, 1(m x ≥ 0) x>] ≤ its bound, for every t",
      "E|∇f - m_hat|₁ ≤ its bound, for every t"};
  return texts[static_cast<std::size_t>(lemma)];
}

std::string_view source_of(Lemma lemma) {
  constexpr std::array<std::string_view, kLemmas> texts{"bounded update",  "fact (martingale)",
                                                        "momentum error",  "inner product with the update",
                                                        "indicator",       "inner product with the decay",
                                                        "ours, with m_hat"};
  return texts[static_cast<std::size_t>(lemma)];
}

std::vector<LemmaCheck> check_lemmas(const BoundProblem& problem, const BoundSetting& setting, std::size_t seeds,
                                     std::size_t steps, std::uint64_t seed) {
  std::vector<std::vector<Sides>> seen(steps);
  BoundConstants constants = known_constants(problem, problem.noise, problem.start);
  double radius = 0;
  for (std::size_t k = 0; k < seeds; ++k) {
    BoundRun run(problem, problem.noise, setting, problem.start, seed * base::kGolden + k);
    Observer observer(setting, constants.gradient);
    for (std::size_t t = 1; t <= steps; ++t) {
      run.step();
      seen[t - 1].push_back(observer.see(run, t));
      radius = std::max(radius, as_vector(run.point()).lpNorm<Eigen::Infinity>());
    }
  }
  constants.radius = radius;  // of these very runs: the lemmas need no more
  std::vector<LemmaCheck> checks;
  for (std::size_t k = 0; k < kLemmas; ++k) {
    if (const auto lemma = static_cast<Lemma>(k); lemma != Lemma::indicator) checks.push_back({.lemma = lemma});
  }
  double squares = 0;  // sum of beta1^(2 (t - k))
  for (std::size_t t = 1; t <= steps; ++t) {
    const std::vector<Sides>& sides = seen[t - 1];
    squares = 1 + setting.beta1 * setting.beta1 * squares;
    const std::string where =
        fmt::format("{}, t = {}, η {:.2g}, β₁ {:.2g}, ε {:.2g}", problem.name, t, setting.eta, setting.beta1, setting.eps);
    const double variance = constants.deviation * constants.deviation / static_cast<double>(setting.batch);
    for (const Sides& each : sides) raise(checks, Lemma::update, each.update / largest_update(setting), where);
    raise(checks, Lemma::martingale, mean_of(sides, &Sides::martingale) / (variance * squares), where);
    raise(checks, Lemma::momentum, mean_of(sides, &Sides::momentum) / momentum_error_bound(constants, setting, t), where);
    raise(checks, Lemma::direction, mean_of(sides, &Sides::direction) / direction_bound(constants, setting, t), where);
    raise(checks, Lemma::mask, mean_of(sides, &Sides::mask) / mask_bound(constants, setting, t), where);
    raise(checks, Lemma::corrected, mean_of(sides, &Sides::corrected) / corrected_momentum_bound(constants, setting, t), where);
  }
  return checks;
}

std::vector<LemmaCheck> check_lemmas(std::size_t seeds, std::size_t steps, std::uint64_t seed) {
  std::vector<LemmaCheck> checks;
  for (std::size_t k = 0; k < kLemmas; ++k) checks.push_back({.lemma = static_cast<Lemma>(k)});
  for (const BoundProblem& problem : bound_problems()) {
    for (const auto& [beta1, beta2] : {std::pair{0.0, 0.0}, {0.5, 0.5}, {0.9, 0.95}, {0.9, 0.999}}) {
      for (const double eta : {0.001, 0.1}) {
        for (const double eps : {1e-8, 1.0}) {
          const BoundSetting setting{.eta = eta, .beta1 = beta1, .beta2 = beta2, .eps = eps};
          for (const LemmaCheck& check : check_lemmas(problem, setting, seeds, steps, seed++)) {
            raise(checks, check.lemma, check.worst, check.where);
          }
        }
      }
    }
  }
  const LemmaCheck indicator = check_indicator(seed);
  raise(checks, Lemma::indicator, indicator.worst, indicator.where);
  return checks;
}

double indicator_left(double m, double g, double x) { return (m * x >= 0) == (g * x >= 0) ? 0 : std::abs(x); }
double indicator_right(double m, double g, double x) { return m * g <= 0 ? std::abs(x) : 0; }

double adversarial_update(double beta1, double beta2, std::size_t t) {
  Options quick;
  quick.norms = Norms::off;
  quick.threads = 1;
  Optimizer optimizer({.rule = Adam{beta1, beta2, 1e-30}, .decay = None{}}, quick);
  double x = 0, g = 0, before = 0;
  optimizer.add("x", {1}, &x, static_cast<const double*>(&g));
  for (std::size_t k = 1; k <= t; ++k) {
    g = std::pow(beta1 / beta2, static_cast<double>(t - k));
    before = x;
    optimizer.step({.lr = 1, .lr_max = 1});
  }
  return std::abs(x - before);
}

}  // namespace cautious::lab
