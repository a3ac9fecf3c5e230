// Statistics of matched runs against published examples, closed forms of Student's t and counted sign flips.
#include "study/statistics.h"

#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "usage_message.h"

namespace cautious::study {
namespace statistics_test {

constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinity = std::numeric_limits<double>::infinity();

Paired against_zero(const std::vector<double>& differences) {
  return paired(differences, std::vector<double>(differences.size(), 0.0));
}

template <class Call>
std::string data_message(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    EXPECT_EQ(error.fault(), Fault::data);
    return error.what();
  }
  return "";
}

// Counts sign patterns by their sums, one difference after the other.
double sign_flip_p(const std::vector<int>& differences) {
  std::map<int, double> patterns{{0, 1.0}};
  int observed = 0;
  for (const int difference : differences) {
    std::map<int, double> next;
    for (const auto& [sum, count] : patterns) {
      next[sum + difference] += count;
      next[sum - difference] += count;
    }
    patterns.swap(next);
    observed += difference;
  }
  double far = 0, all = 0;
  for (const auto& [sum, count] : patterns) {
    all += count;
    if (std::abs(sum) >= std::abs(observed)) far += count;
  }
  return far / all;
}

std::vector<double> as_doubles(const std::vector<int>& values) { return {values.begin(), values.end()}; }

// Differences of a wide range with ties, the first n of a fixed list.
std::vector<int> some_differences(std::size_t n) {
  std::vector<int> result;
  for (std::size_t i = 0; i < n; ++i) result.push_back(static_cast<int>(i * i * 7 % 41) - 15);
  return result;
}

// Student's sleep data (1908): hours gained under two drugs by the same ten patients.
const std::vector<double> kFirstDrug{0.7, -1.6, -0.2, -1.2, -0.1, 3.4, 3.7, 0.8, 0.0, 2.0};
const std::vector<double> kSecondDrug{1.9, 0.8, 1.1, 0.1, -0.1, 4.4, 5.5, 1.6, 4.6, 3.4};

// Darwin's maize (1876): crossed minus self-fertilized, in eighths of an inch.
const std::vector<int> kMaize{49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48};

TEST(Spread, OfStudentsFirstDrug) {
  const Spread spread = spread_of(kFirstDrug);
  EXPECT_EQ(spread.n, 10u);
  EXPECT_NEAR(spread.mean, 0.75, 1e-15);
  EXPECT_NEAR(spread.sd, 1.789010, 5e-7);
  EXPECT_NEAR(spread.interval.low, 0.75 - 2.262157 * 1.789010 / std::sqrt(10), 2e-6);
  EXPECT_NEAR(spread.interval.high, 0.75 + 2.262157 * 1.789010 / std::sqrt(10), 2e-6);
}

// n numbers of mean 0 and standard error 1: half of them up, half down, zero in the middle of an odd n.
TEST(Spread, IntervalsAreThoseOfPrintedTables) {
  const std::map<std::size_t, double> table{{2, 12.706}, {3, 4.303},  {4, 3.182},  {5, 2.776},   {6, 2.571},
                                            {7, 2.447},  {10, 2.262}, {31, 2.042}, {61, 2.0003}, {121, 1.9799}};
  for (const auto& [n, quantile] : table) {
    const double even = static_cast<double>(n - n % 2);
    const double size = std::sqrt(static_cast<double>(n * (n - 1)) / even);
    std::vector<double> values(n, 0.0);
    for (std::size_t i = 0; i + 1 < n; i += 2) values[i] = size, values[i + 1] = -size;
    const Spread spread = spread_of(values);
    EXPECT_NEAR(spread.interval.high, quantile, 6e-4) << n;
    EXPECT_NEAR(spread.interval.low, -quantile, 6e-4) << n;
  }
}

TEST(Spread, OfNoneAndOne) {
  const Spread none = spread_of({});
  EXPECT_EQ(none.n, 0u);
  const std::vector<double> single{3.5};
  const Spread one = spread_of(single);
  EXPECT_EQ(one.n, 1u);
  EXPECT_TRUE(std::isnan(none.mean));
  EXPECT_EQ(one.mean, 3.5);
  for (const Spread& spread : {none, one}) {
    EXPECT_TRUE(std::isnan(spread.sd));
    EXPECT_TRUE(std::isnan(spread.interval.low));
    EXPECT_TRUE(std::isnan(spread.interval.high));
  }
}

TEST(Spread, EqualValuesHaveNone) {
  const Spread spread = spread_of(std::vector<double>(7, 0.1));
  EXPECT_EQ(spread.mean, 0.1);
  EXPECT_EQ(spread.sd, 0.0);
  EXPECT_EQ(spread.interval.low, 0.1);
  EXPECT_EQ(spread.interval.high, 0.1);
}

// NIST's NumAcc4: seven equal digits before those that differ; certified mean 10000000.2, sd 0.1.
TEST(Spread, OfSmallDifferencesInLargeNumbers) {
  std::vector<double> values{10000000.2};
  for (int i = 0; i < 500; ++i) values.insert(values.end(), {10000000.1, 10000000.3});
  const Spread spread = spread_of(values);
  EXPECT_NEAR(spread.mean, 10000000.2, 1e-8);
  EXPECT_NEAR(spread.sd, 0.1, 2e-9);
}

TEST(Spread, SquaresNeitherOverflowNorVanish) {
  for (const double unit : {1e299, 1e-299}) {
    const Spread spread = spread_of(std::vector<double>{unit, 2 * unit, 3 * unit});
    EXPECT_NEAR(spread.mean / unit, 2, 1e-14);
    EXPECT_NEAR(spread.sd / unit, 1, 1e-14);
  }
}

TEST(Spread, RefusesWhatIsNoNumber) {
  const auto of = [](double value) { return data_message([&] { spread_of(std::vector<double>{1, value, 3}); }); };
  EXPECT_EQ(of(kNaN), "value 2 of 3 is nan; valid: finite numbers up to 1e+300");
  EXPECT_EQ(of(kInfinity), "value 2 of 3 is inf; valid: finite numbers up to 1e+300");
  EXPECT_EQ(of(-kInfinity), "value 2 of 3 is -inf; valid: finite numbers up to 1e+300");
  EXPECT_EQ(of(2), "");
}

TEST(Paired, StudentsSleep) {
  const Paired result = paired(kFirstDrug, kSecondDrug);
  EXPECT_EQ(result.n, 10u);
  EXPECT_NEAR(result.difference, -1.58, 1e-14);
  EXPECT_NEAR(result.sd, 1.229995, 5e-7);
  EXPECT_NEAR(result.interval.low, -2.4598858, 5e-8);
  EXPECT_NEAR(result.interval.high, -0.7001142, 5e-8);
  EXPECT_NEAR(result.t_p, 0.002833, 5e-7);
  EXPECT_EQ(result.permutation_p, 4.0 / 1024);  // nine of one sign and a zero
}

// Fisher, The Design of Experiments (1935): t is 2.148, and 863 of 32768 sums reach 314, 28 of them exactly.
TEST(Paired, DarwinsMaize) {
  const Paired result = against_zero(as_doubles(kMaize));
  EXPECT_NEAR(result.difference, 314.0 / 15, 1e-13);
  EXPECT_NEAR(result.difference / (result.sd / std::sqrt(15)), 2.148, 5e-4);
  EXPECT_NEAR(result.t_p, 0.0497, 5e-5);
  EXPECT_EQ(result.permutation_p, 2 * 863.0 / 32768);
}

// Closed forms of the two tails for 1, 2, 3 and 4 degrees of freedom.
TEST(Paired, TTestMatchesClosedForms) {
  for (const double shift : {0.0, 0.01, 0.3, 1.0, 2.5, 40.0}) {
    for (std::size_t n = 2; n <= 5; ++n) {
      std::vector<double> values;
      for (std::size_t i = 0; i < n; ++i) values.push_back(shift + static_cast<double>(i) - static_cast<double>(n - 1) / 2);
      const Paired result = against_zero(values);
      const double k = static_cast<double>(n);
      const double t = shift / std::sqrt(k * (k + 1) / 12 / k);  // the variance of 1..n is n (n + 1) / 12
      const double angle = std::atan2(std::sqrt(k - 1), t), cosine = std::cos(angle), sine = std::sin(angle);
      const double p = n == 2   ? 2 * angle / std::numbers::pi
                       : n == 3 ? 1 - cosine
                       : n == 4 ? 2 * (angle - cosine * sine) / std::numbers::pi
                                : 1 - cosine * (1 + sine * sine / 2);
      EXPECT_NEAR(result.t_p, p, 1e-13) << n << " " << shift;
    }
  }
}

TEST(Paired, ExactSignFlipsUpTo24) {
  for (std::size_t n = 1; n <= 24; ++n) {
    const std::vector<int> differences = some_differences(n);
    EXPECT_EQ(against_zero(as_doubles(differences)).permutation_p, sign_flip_p(differences)) << n;
  }
}

TEST(Paired, DrawnSignFlipsFrom25) {
  for (const std::size_t n : {25u, 26u, 63u, 64u, 65u, 130u}) {
    const std::vector<int> differences = some_differences(n);
    const double p = sign_flip_p(differences);
    const double drawn = against_zero(as_doubles(differences)).permutation_p;
    EXPECT_NEAR(drawn, p, 4 * std::sqrt(p * (1 - p) / 100000)) << n;
    EXPECT_NEAR(drawn * 100001, std::round(drawn * 100001), 1e-6) << n;
    EXPECT_EQ(drawn, against_zero(as_doubles(differences)).permutation_p) << n;
  }
  EXPECT_EQ(against_zero(std::vector<double>(60, 1.0)).permutation_p, 1.0 / 100001);
}

// Losses are decimals: their differences tie in thousandths, not in binary.
TEST(Paired, TiesOfDecimalsAreTies) {
  for (const std::size_t n : {6u, 11u, 17u, 20u}) {
    const std::vector<int> differences = some_differences(n);
    std::vector<double> a, b;
    for (std::size_t i = 0; i < n; ++i) {
      b.push_back((3281.0 + static_cast<double>(i * 13 % 7)) / 1000);
      a.push_back((3281.0 + static_cast<double>(i * 13 % 7) + differences[i]) / 1000);
    }
    EXPECT_EQ(paired(a, b).permutation_p, sign_flip_p(differences)) << n;
  }
}

TEST(Paired, SwappedArmsMirror) {
  const Paired one = paired(kFirstDrug, kSecondDrug), other = paired(kSecondDrug, kFirstDrug);
  EXPECT_EQ(one.difference, -other.difference);
  EXPECT_EQ(one.sd, other.sd);
  EXPECT_EQ(one.interval.low, -other.interval.high);
  EXPECT_EQ(one.t_p, other.t_p);
  EXPECT_EQ(one.permutation_p, other.permutation_p);
}

TEST(Paired, NoneAndOne) {
  const Paired none = paired({}, {}), one = against_zero({-2.5});
  EXPECT_EQ(none.n, 0u);
  EXPECT_EQ(one.n, 1u);
  EXPECT_TRUE(std::isnan(none.difference));
  EXPECT_EQ(one.difference, -2.5);
  for (const Paired& result : {none, one}) {
    EXPECT_TRUE(std::isnan(result.sd));
    EXPECT_TRUE(std::isnan(result.interval.low));
    EXPECT_TRUE(std::isnan(result.interval.high));
    EXPECT_TRUE(std::isnan(result.t_p));
    EXPECT_EQ(result.permutation_p, 1.0);
  }
}

TEST(Paired, EqualDifferences) {
  const Paired zero = paired(kFirstDrug, kFirstDrug);
  EXPECT_EQ(zero.difference, 0.0);
  EXPECT_EQ(zero.sd, 0.0);
  EXPECT_EQ(zero.t_p, 1.0);
  EXPECT_EQ(zero.permutation_p, 1.0);
  const Paired half = against_zero(std::vector<double>(5, 0.5));
  EXPECT_EQ(half.interval.low, 0.5);
  EXPECT_EQ(half.interval.high, 0.5);
  EXPECT_EQ(half.t_p, 0.0);
  EXPECT_EQ(half.permutation_p, 2.0 / 32);
}

TEST(Paired, RefusesUnevenArmsAndWhatIsNoNumber) {
  const std::vector<double> three{1, 2, 3}, two{1, 2}, broken{1, 2, kNaN};
  EXPECT_EQ(message([&] { paired(three, two); }), "3 values paired with 2; valid: one of each arm for every seed");
  EXPECT_EQ(data_message([&] { paired(broken, three); }),
            "first arm's value 3 of 3 is nan; valid: finite numbers up to 1e+300");
  EXPECT_EQ(data_message([&] { paired(three, broken); }),
            "second arm's value 3 of 3 is nan; valid: finite numbers up to 1e+300");
}

}  // namespace statistics_test
}  // namespace cautious::study
