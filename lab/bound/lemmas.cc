// The lemmas, checked after every step of many runs.
#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

#include <cautious/recipe.h>

#include "base/hash.h"
#include "lab/bound/bound.h"
#include "lab/bound/theory.h"
#include "lab/bound/tight.h"

namespace cautious::lab {
namespace {

constexpr std::size_t kLemmas = 7;

// Left sides of the lemmas after one step, summed over runs. `square` and `fourth` are per coordinate the powers of
// sum_k beta1^(t-k) (g_k - grad f(x_k)).
struct Sums {
  double update = 0;  // the largest
  double momentum = 0, direction = 0, mask = 0, corrected = 0;
  std::vector<double> square, fourth;
};

// Follows one run.
class Observer {
 public:
  Observer(const BoundSetting& setting, double gradient, std::size_t dimension)
      : setting_(setting), gradient_(gradient), noise_(dimension) {}

  void see(const BoundRun& run, std::size_t t, Sums& sums) {
    const double c1 = 1 - std::pow(setting_.beta1, t), c2 = 1 - std::pow(setting_.beta2, t);
    for (std::size_t i = 0; i < run.point().size(); ++i) {
      const double f = run.slope()[i], x = run.point()[i], m = run.momentum()[i];
      const double root = std::sqrt(run.square()[i] / c2) + setting_.eps;
      noise_[i] = setting_.beta1 * noise_[i] + run.sample()[i] - f;
      sums.square[i] += std::pow(noise_[i], 2);
      sums.fourth[i] += std::pow(noise_[i], 4);
      sums.update = std::max(sums.update, std::abs(m / c1 / root));
      sums.momentum += std::abs(f - m);
      sums.corrected += std::abs(f - m / c1);
      sums.direction += f * f / (gradient_ + setting_.eps) - f * m / root;
      sums.mask += std::max(f * x, 0.0) - (m * x >= 0 ? f * x : 0);
    }
  }

 private:
  BoundSetting setting_;
  double gradient_;
  Point noise_;
};

void raise(std::vector<LemmaCheck>& checks, const LemmaCheck& seen) {
  for (LemmaCheck& check : checks) {
    if (check.lemma != seen.lemma) continue;
    check.without_start = std::max(check.without_start, seen.without_start);
    check.without_drift = std::max(check.without_drift, seen.without_drift);
    check.without_noise = std::max(check.without_noise, seen.without_noise);
    if (seen.worst <= check.worst) continue;
    check.worst = seen.worst;
    check.where = seen.where;
  }
}

// 0 / 0, where there is nothing to compare, is 0.
double ratio(double left, double right) { return left <= 0 ? 0 : left / right; }

LemmaCheck with_terms(Lemma lemma, double left, double factor, const MomentumTerms& terms, const std::string& where) {
  const auto [start, drift, noise] = terms;
  return {.lemma = lemma,
          .worst = ratio(left, factor * terms.sum()),
          .where = where,
          .without_start = ratio(left, factor * (drift + noise)),
          .without_drift = ratio(left, factor * (start + noise)),
          .without_noise = ratio(left, factor * (start + drift))};
}

// Of every coordinate.
double martingale_ratio(const Sums& sums, double runs, double right) {
  double worst = 0;
  for (std::size_t i = 0; i < sums.square.size(); ++i) {
    const double mean = sums.square[i] / runs;
    const double error = std::sqrt(std::max(0.0, sums.fourth[i] / runs - mean * mean) / runs);
    worst = std::max(worst, ratio(mean - 4 * error, right));
  }
  return worst;
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

// R is that of these very runs, and so is G where nothing is random: the lemmas need no more.
std::vector<LemmaCheck> check_lemmas(const BoundProblem& problem, const BoundSetting& setting, std::size_t seeds,
                                     std::size_t steps, std::uint64_t seed) {
  BoundConstants constants = known_constants(problem, problem.noise, problem.start);
  const bool random = problem.noise.size > 0;
  constants.radius = 0;
  const auto follow = [&](std::size_t k, const auto& see) {
    BoundRun run(problem, problem.noise, setting, problem.start, seed * base::kGolden + k);
    for (std::size_t t = 1; t <= steps; ++t) {
      run.step();
      see(run, t);
    }
  };
  if (!random) {
    follow(0, [&](const BoundRun& run, std::size_t) {
      constants.gradient = std::max(constants.gradient, as_vector(run.slope()).lpNorm<Eigen::Infinity>());
    });
  }
  const Point none(problem.dimension());
  std::vector<Sums> seen(steps, Sums{.square = none, .fourth = none});
  for (std::size_t k = 0; k < seeds; ++k) {
    Observer observer(setting, constants.gradient, problem.dimension());
    follow(k, [&](const BoundRun& run, std::size_t t) {
      observer.see(run, t, seen[t - 1]);
      constants.radius = std::max(constants.radius, as_vector(run.point()).lpNorm<Eigen::Infinity>());
    });
  }
  std::vector<LemmaCheck> checks;
  for (std::size_t k = 0; k < kLemmas; ++k) {
    if (const auto lemma = static_cast<Lemma>(k); lemma != Lemma::indicator) checks.push_back({.lemma = lemma});
  }
  const auto runs = static_cast<double>(seeds);
  const double variance = constants.deviation * constants.deviation / static_cast<double>(setting.batch);
  double squares = 0;  // sum of beta1^(2 (t - k))
  for (std::size_t t = 1; t <= steps; ++t) {
    const Sums& sums = seen[t - 1];
    squares = 1 + setting.beta1 * setting.beta1 * squares;
    const std::string where =
        fmt::format("{}, t = {}, η {:.2g}, β₁ {:.2g}, ε {:.2g}", problem.name, t, setting.eta, setting.beta1, setting.eps);
    const MomentumTerms terms = momentum_terms(constants, setting, t);
    raise(checks, {.lemma = Lemma::update, .worst = sums.update / largest_update(setting), .where = where});
    raise(checks, {.lemma = Lemma::martingale, .worst = martingale_ratio(sums, runs, variance * squares), .where = where});
    raise(checks, with_terms(Lemma::momentum, sums.momentum / runs, 1, terms, where));
    raise(checks, with_terms(Lemma::direction, sums.direction / runs, direction_factor(constants, setting), terms, where));
    raise(checks, with_terms(Lemma::mask, sums.mask / runs, mask_factor(constants), terms, where));
    raise(checks, {.lemma = Lemma::corrected,
                   .worst = ratio(sums.corrected / runs, corrected_momentum_bound(constants, setting, t)),
                   .where = where});
  }
  return checks;
}

std::vector<LemmaCheck> check_lemmas(std::size_t seeds, std::size_t steps, std::uint64_t seed) {
  std::vector<LemmaCheck> checks;
  for (std::size_t k = 0; k < kLemmas; ++k) checks.push_back({.lemma = static_cast<Lemma>(k)});
  const auto add = [&](const std::vector<LemmaCheck>& more) {
    for (const LemmaCheck& check : more) raise(checks, check);
  };
  for (const BoundProblem& problem : bound_problems()) {
    for (const auto& [beta1, beta2] : {std::pair{0.0, 0.0}, {0.5, 0.5}, {0.9, 0.95}, {0.9, 0.999}}) {
      for (const double eta : {0.001, 0.1}) {
        for (const double eps : {1e-8, 1.0}) {
          const BoundSetting setting{.eta = eta, .beta1 = beta1, .beta2 = beta2, .eps = eps};
          add(check_lemmas(problem, setting, seeds, steps, seed++));
        }
      }
    }
  }
  for (const TightCase& tight : tight_lemma_cases()) {
    add(check_lemmas(tight.problem, tight.setting, tight.seeds, tight.steps, seed++));
  }
  raise(checks, check_indicator(seed));
  return checks;
}

double strict_indicator_ratio() {
  const double m = 0, g = -1, x = 1;
  return indicator_left(m, g, x) / (m * g < 0 ? std::abs(x) : 0);
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
