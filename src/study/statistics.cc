// Welford's sums, Student's t and noncentral t of Boost.Math, sign flips by enumeration or by drawing.
// Values and differences must be finite; the mean of no values is NaN.
#include "study/statistics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/students_t.hpp>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::study {
namespace {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kIntervalLevel = 0.05;
constexpr std::size_t kMostExactPairs = 20;
constexpr std::size_t kFlips = 100000;
constexpr std::uint64_t kFlipSeed = 1;

// Inside these, and below PairedTest::largest_shift(), the series of Boost.Math converge.
constexpr Range kLevels{0.0001, 0.5, false, false};
constexpr double kMostPower = 0.9999;

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

// Sign patterns of the rest that bring the sum to `far` or further from zero. A tree: no sum is rounded more than n times.
std::size_t count_far(double sum, std::span<const double> rest, double far) {
  if (rest.empty()) return std::abs(sum) >= far;
  return count_far(sum + rest[0], rest.subspan(1), far) + count_far(sum - rest[0], rest.subspan(1), far);
}

// The first sign is fixed: the opposite pattern is as far from zero.
double exact_flips(std::span<const double> differences, double far) {
  const auto patterns = std::ldexp(1.0, static_cast<int>(differences.size()) - 1);
  return static_cast<double>(count_far(differences[0], differences.subspan(1), far)) / patterns;
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

void check_test(double sd, double power, double level) {
  base::check_range("the standard deviation", sd, kNonnegative);
  base::check_range("the level of the test", level, kLevels);
  base::check_range("the power of the test", power, {level, kMostPower, true, false});
}

// The two-sided t-test of n pairs at a level. Its power grows with the shift: the true mean over its standard error.
class PairedTest {
 public:
  PairedTest(std::size_t n, double level) : freedom_(static_cast<double>(n - 1)), critical_(critical_t(n, level)) {}

  // Beyond it the power is above kMostPower for any n.
  double largest_shift() const { return 6 * (critical_ + 1); }

  double power(double shift) const {
    const boost::math::non_central_t t(freedom_, std::min(shift, largest_shift()));
    return boost::math::cdf(boost::math::complement(t, critical_)) + boost::math::cdf(t, -critical_);
  }

 private:
  double freedom_, critical_;
};

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

std::size_t pairs_needed(double difference, double sd, double power, double level, std::size_t most) {
  base::check_range("the size of the difference", std::abs(difference), kNonnegative);
  check_test(sd, power, level);
  const auto enough = [&](std::size_t n) {
    return PairedTest(n, level).power(std::abs(difference) / standard_error(n, sd)) >= power;
  };
  if (difference == 0 || most < 2 || !enough(most)) return most + 1;
  std::size_t low = 2, high = most;
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (enough(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return low;
}

double detectable_difference(std::size_t n, double sd, double power, double level) {
  if (n < 2) return kNaN;
  check_test(sd, power, level);
  const PairedTest test(n, level);
  double low = 0, high = test.largest_shift();
  while (high - low > 1e-12 * high) {
    const double middle = low + (high - low) / 2;
    (test.power(middle) >= power ? high : low) = middle;
  }
  return high * standard_error(n, sd);
}

}  // namespace cautious::study
