// Welford's sums, Student's t of Boost.Math, sign flips by enumeration or by drawing.
// Values and differences must be finite; the mean of no values is NaN.
#include "study/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <boost/math/distributions/students_t.hpp>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::study {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kIntervalLevel = 0.05;
constexpr std::size_t kMostExactPairs = 24;
constexpr std::size_t kFlips = 100000;
constexpr std::uint64_t kFlipSeed = 1;

void check_finite(std::span<const double> values, std::string_view what) {
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (kFinite.contains(values[i])) continue;
    throw Error(Fault::data, fmt::format("{} {} of {} is {}; valid: finite numbers up to {}", what, i + 1, values.size(),
                                         values[i], kLargest));
  }
}

// Exceeded by |t| with a probability of `level`.
double critical_t(std::size_t n, double level) {
  const boost::math::students_t t(static_cast<double>(n - 1));
  return boost::math::quantile(boost::math::complement(t, level / 2));
}

struct Moments {
  double mean = kNaN;
  double sd = kNaN;
};

// The power of two keeps squares from overflow and underflow and costs no rounding. Equal values have an sd of exactly 0.
Moments moments_of(std::span<const double> values) {
  if (values.empty()) return {};
  double largest = 0;
  for (const double value : values) largest = std::max(largest, std::abs(value));
  const int exponent = largest > 0 ? std::ilogb(largest) : 0;
  double count = 0, mean = 0, squares = 0;
  for (const double value : values) {
    const double from_old = std::ldexp(value, -exponent) - mean;
    mean += from_old / ++count;
    squares += from_old * (std::ldexp(value, -exponent) - mean);
  }
  const double sd = count > 1 ? std::ldexp(std::sqrt(squares / (count - 1)), exponent) : kNaN;
  return {std::ldexp(mean, exponent), sd};
}

double standard_error(std::size_t n, double sd) { return sd / std::sqrt(static_cast<double>(n)); }

Interval interval_of(std::size_t n, const Moments& moments) {
  if (n < 2) return {kNaN, kNaN};
  const double half = critical_t(n, kIntervalLevel) * standard_error(n, moments.sd);
  return {moments.mean - half, moments.mean + half};
}

double t_test(std::size_t n, const Moments& differences) {
  if (n < 2) return kNaN;
  if (differences.sd == 0) return differences.mean == 0 ? 1 : 0;
  const double t = std::abs(differences.mean) / standard_error(n, differences.sd);
  return 2 * boost::math::cdf(boost::math::complement(boost::math::students_t(static_cast<double>(n - 1)), t));
}

// The sums of every pattern of signs, sorted. No sum is rounded more often than there are values.
std::vector<double> signed_sums(std::span<const double> values) {
  std::vector<double> sums{0};
  for (const double value : values) {
    const std::size_t size = sums.size();
    for (std::size_t i = 0; i < size; ++i) {
      sums.push_back(sums[i] - value);
      sums[i] += value;
    }
  }
  std::ranges::sort(sums);
  return sums;
}

// Every sum of the first half meets those of the second that bring it to `far` or further from zero.
double exact_flips(std::span<const double> differences, double far) {
  if (far <= 0) return 1;
  const std::size_t half = differences.size() / 2;
  const std::vector<double> first = signed_sums(differences.first(half)), second = signed_sums(differences.subspan(half));
  std::size_t count = 0;
  for (const double sum : first) {
    count += static_cast<std::size_t>(second.end() - std::ranges::lower_bound(second, far - sum));
    count += static_cast<std::size_t>(std::ranges::upper_bound(second, -far - sum) - second.begin());
  }
  return static_cast<double>(count) / static_cast<double>(first.size() * second.size());
}

// The observed signs count as one of the draws: never 0, and the test keeps its level.
double drawn_flips(std::span<const double> differences, double far) {
  std::mt19937_64 engine(kFlipSeed);
  std::size_t count = 1;
  for (std::size_t flip = 0; flip < kFlips; ++flip) {
    double sum = 0;
    std::uint64_t bits = 0;
    for (std::size_t i = 0; i < differences.size(); ++i, bits >>= 1) {
      if (i % 64 == 0) bits = engine();
      sum += (bits & 1) != 0 ? differences[i] : -differences[i];
    }
    count += std::abs(sum) >= far;
  }
  return static_cast<double>(count) / (kFlips + 1);
}

// `rounding`: sums that close are equal, as they would be for values without the rounding of decimals.
double sign_flip_test(std::span<const double> differences, double rounding) {
  if (differences.empty()) return 1;
  double sum = 0;
  for (const double difference : differences) sum += difference;
  const double far = std::abs(sum) - rounding;
  return differences.size() <= kMostExactPairs ? exact_flips(differences, far) : drawn_flips(differences, far);
}

}  // namespace

Spread spread_of(std::span<const double> values) {
  check_finite(values, "value");
  const Moments moments = moments_of(values);
  return {values.size(), moments.mean, moments.sd, interval_of(values.size(), moments)};
}

Paired paired(std::span<const double> a, std::span<const double> b) {
  if (a.size() != b.size()) {
    throw Error(Fault::usage,
                fmt::format("{} values paired with {}; valid: one of each arm for every seed", a.size(), b.size()));
  }
  check_finite(a, "first arm's value");
  check_finite(b, "second arm's value");
  const std::size_t n = a.size();
  std::vector<double> differences(n);
  double size = 0;
  for (std::size_t i = 0; i < n; ++i) {
    differences[i] = a[i] - b[i];
    size += std::abs(a[i]) + std::abs(b[i]);
  }
  const double rounding = 4 * static_cast<double>(n) * std::numeric_limits<double>::epsilon() * size;
  const Moments moments = moments_of(differences);
  return {n, moments.mean, moments.sd, interval_of(n, moments), t_test(n, moments), sign_flip_test(differences, rounding)};
}

}  // namespace cautious::study
