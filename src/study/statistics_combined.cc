// Studies together: the variance between them is the one that leaves their differences as large as chance makes them (Paule and
// Mandel 1982), and the mean is judged on as many studies as there are (Hartung and Knapp 2001).
#include <cmath>
#include <cstdint>
#include <limits>

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/toms748_solve.hpp>

#include "base/text.h"
#include "study/statistics.h"

namespace cautious::study {
namespace {

constexpr double kNoMean = std::numeric_limits<double>::quiet_NaN();
constexpr double kCombinedLevel = 0.05;
constexpr int kVarianceBits = 50;
constexpr std::uintmax_t kMostSteps = 200;

struct Weighted {
  double weight = 0, mean = 0, squares = 0;  // sum of the weights, mean, weighted squares around it
};

Weighted weighted(std::span<const Finding> findings, double between) {
  Weighted result;
  for (const Finding& finding : findings) {
    const double weight = 1 / (finding.error * finding.error + between);
    result.weight += weight;
    const double from_old = finding.value - result.mean;
    result.mean += from_old * weight / result.weight;
    result.squares += weight * from_old * (finding.value - result.mean);
  }
  return result;
}

// The squares fall as the variance grows, and are below this number at that of the differences themselves.
double variance_between(std::span<const Finding> findings) {
  const auto freedom = static_cast<double>(findings.size() - 1);
  const auto excess = [&](double between) { return weighted(findings, between).squares - freedom; };
  const double at_zero = excess(0);
  if (at_zero <= 0) return 0;
  double squares = 0;
  const double mean = weighted(findings, 0).mean;
  for (const Finding& finding : findings) squares += std::pow(finding.value - mean, 2);
  const double most = squares / freedom, at_most = excess(most);
  if (at_most >= 0) return most;
  std::uintmax_t steps = kMostSteps;
  const auto [low, high] = boost::math::tools::toms748_solve(excess, 0.0, most, at_zero, at_most,
                                                             boost::math::tools::eps_tolerance<double>(kVarianceBits), steps);
  return (low + high) / 2;
}

}  // namespace

Combined combined(std::span<const Finding> findings) {
  for (const Finding& finding : findings) {
    base::check_range("a study's difference", finding.value, kFinite);
    base::check_range("the standard error of a study", finding.error, kPositive);
  }
  Combined result{.studies = findings.size(), .mean = kNoMean, .interval = {kNoMean, kNoMean}, .p = kNoMean};
  if (findings.empty()) return result;
  if (findings.size() == 1) {
    result.mean = findings[0].value;
    return result;
  }
  const double variance = variance_between(findings);
  const Weighted all = weighted(findings, variance);
  const double error = 1 / std::sqrt(all.weight);
  const boost::math::students_t t(static_cast<double>(findings.size() - 1));
  const double half = boost::math::quantile(boost::math::complement(t, kCombinedLevel / 2)) * error;
  result.mean = all.mean;
  result.between = std::sqrt(variance);
  result.interval = {all.mean - half, all.mean + half};
  result.p = 2 * boost::math::cdf(boost::math::complement(t, std::abs(all.mean) / error));
  return result;
}

}  // namespace cautious::study
