#include "lab/bound/bound_run.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <boost/math/distributions/students_t.hpp>
#include <boost/math/statistics/linear_regression.hpp>
#include <boost/math/statistics/univariate_statistics.hpp>

#include <cautious/recipe.h>

#include "base/hash.h"

namespace cautious::lab {
namespace {

constexpr double kTail = 0.025;

double quantile(std::size_t freedom) {
  return boost::math::quantile(boost::math::complement(boost::math::students_t(static_cast<double>(freedom)), kTail));
}

Optimizer optimizer_of(const BoundSetting& s) {
  Options quick;
  quick.norms = Norms::off;
  quick.threads = 1;
  return Optimizer({.rule = Adam{s.beta1, s.beta2, s.eps}, .decay = Cautious{}, .weight_decay = s.weight_decay}, quick);
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
