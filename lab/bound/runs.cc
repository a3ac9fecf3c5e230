// The problems and their noise, and runs of Adam + CWD on them.
#include "lab/bound/runs.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/statistics/linear_regression.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>

#include <cautious/recipe.h>

#include "base/hash.h"

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

namespace {

constexpr double kTail = 0.025;

double quantile(std::size_t freedom) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(static_cast<double>(freedom)), kTail));
}

Optimizer optimizer_of(const BoundSetting& s) {
  Options quick;
  quick.norms = Norms::off;
  quick.threads = 1;
  const Decay decay = s.masked ? Decay{Cautious{}} : Decay{Decoupled{}};
  return Optimizer({.rule = Adam{s.beta1, s.beta2, s.eps}, .decay = decay, .weight_decay = s.weight_decay}, quick);
}

}  // namespace

BoundConstants known_constants(const BoundProblem& problem, const BoundNoise& noise, PointView start) {
  const double dimension = static_cast<double>(problem.dimension());
  return {.smoothness = problem.smoothness,
          .radius = std::numeric_limits<double>::quiet_NaN(),
          .gradient = problem.slope + noise.size,
          .deviation = std::sqrt(dimension * noise.variance()),
          .gap = problem.value(start),
          .dimension = dimension};
}

// Let B be so far out that there every g_i points away from the origin by `pull` at least. Cautious decay never raises |x_i|
// (eta lambda <= 1), and an update by C eta at most. So a coordinate that leaves [-B, B] is within C eta of it; from then on
// g_i has the sign of x_i, and after n steps, beta1^n (G + pull) < pull, so has m_i, whatever it was: the coordinate comes
// back.
double provable_radius(const BoundProblem& problem, const BoundNoise& noise, const BoundSetting& setting, PointView start) {
  const double room = 1 - problem.ripple - noise.size;
  if (!problem.coercive || room <= 0 || setting.eta * setting.weight_decay > 1) return std::numeric_limits<double>::quiet_NaN();
  const double trend = 1 - room / 2, pull = room / 2;
  const double border =
      as_vector(PointView(problem.minimiser)).lpNorm<Eigen::Infinity>() + trend / std::sqrt(1 - trend * trend);
  const double gradient = problem.slope + noise.size;
  const double turns = std::floor(std::log(pull / (gradient + pull)) / std::log(setting.beta1)) + 1;
  return std::max(as_vector(start).lpNorm<Eigen::Infinity>(), border + turns * setting.eta * largest_update(setting));
}

BoundRun::BoundRun(const BoundProblem& problem, const BoundNoise& noise, const BoundSetting& setting, PointView start,
                   std::uint64_t seed)
    : problem_(problem),
      noise_(noise),
      setting_(setting),
      random_(seed),
      optimizer_(optimizer_of(setting)),
      x_(start.begin(), start.end()),
      point_(x_),
      slope_(x_.size()),
      sample_(x_.size()) {
  const std::size_t tensor =
      optimizer_.add("x", {static_cast<std::int64_t>(x_.size())}, x_.data(), static_cast<const double*>(sample_.data()));
  for (const StateTensor& part : optimizer_.state(tensor)) {
    (part.name == "m" ? m_ : v_) = static_cast<const double*>(part.data);
  }
}

void BoundRun::step() {
  point_ = x_;
  problem_.gradient(point_, slope_);
  for (std::size_t i = 0; i < x_.size(); ++i) sample_[i] = slope_[i] + batch_noise(random_, noise_, setting_.batch);
  optimizer_.step({.lr = setting_.eta, .lr_max = setting_.eta});
}

double BoundRun::stationarity() const {
  double sum = 0;
  for (std::size_t i = 0; i < x_.size(); ++i) {
    sum += slope_[i] * slope_[i] + setting_.weight_decay * std::max(slope_[i] * point_[i], 0.0);
  }
  return sum;
}

Estimate estimate(std::span<const double> values) {
  const double mean = boost::math::statistics::mean(values.begin(), values.end());
  const double variance = boost::math::statistics::sample_variance(values.begin(), values.end());
  const double half = quantile(values.size() - 1) * std::sqrt(variance / static_cast<double>(values.size()));
  return {mean, mean - half, mean + half};
}

Estimate log_log_slope(std::span<const double> x, std::span<const double> y) {
  std::vector<double> log_x, log_y;
  for (const double value : x) log_x.push_back(std::log(value));
  for (const double value : y) log_y.push_back(std::log(value));
  const auto [level, slope] = boost::math::statistics::simple_ordinary_least_squares(log_x, log_y);
  const double middle = boost::math::statistics::mean(log_x);
  double residual = 0, width = 0;
  for (std::size_t i = 0; i < log_x.size(); ++i) {
    residual += std::pow(log_y[i] - level - slope * log_x[i], 2);
    width += std::pow(log_x[i] - middle, 2);
  }
  const std::size_t freedom = log_x.size() - 2;
  const double half = quantile(freedom) * std::sqrt(residual / static_cast<double>(freedom) / width);
  return {slope, slope - half, slope + half};
}

LeftSide left_side(const BoundProblem& problem, const BoundNoise& noise, const BoundSetting& setting, PointView start,
                   std::span<const std::size_t> steps, std::size_t seeds, std::uint64_t seed) {
  std::vector<std::vector<double>> means(steps.size());
  LeftSide result;
  result.radius = as_vector(start).lpNorm<Eigen::Infinity>();
  for (std::size_t run_index = 0; run_index < seeds; ++run_index) {
    BoundRun run(problem, noise, setting, start, seed * base::kGolden + run_index);
    double sum = 0;
    std::size_t t = 0;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      for (; t < steps[k]; ++t) {
        run.step();
        sum += run.stationarity();
        result.radius = std::max(result.radius, as_vector(run.next()).lpNorm<Eigen::Infinity>());
      }
      means[k].push_back(sum / static_cast<double>(t));
    }
  }
  for (const std::vector<double>& values : means) result.mean_stationarity.push_back(estimate(values));
  return result;
}

BoundConstants constants_of(const BoundProblem& problem, const BoundNoise& noise, const BoundSetting& setting, PointView start,
                            double measured_radius) {
  BoundConstants constants = known_constants(problem, noise, start);
  constants.radius = provable_radius(problem, noise, setting, start);
  if (std::isnan(constants.radius)) constants.radius = measured_radius;
  return constants;
}

}  // namespace cautious::lab
