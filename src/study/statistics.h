// Statistics of matched runs: spread of one arm, paired differences of two arms over the same seeds, power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace cautious::study {

struct Interval {
  double low, high;
};

struct Spread {
  std::size_t n = 0;
  double mean = 0;
  double sd = 0;            // with n - 1; NaN for n < 2
  Interval interval{0, 0};  // 95% of the mean, Student's t; NaN for n < 2
};

Spread spread_of(std::span<const double> values);

// Differences a[i] - b[i] of the same seed.
struct Paired {
  std::size_t n = 0;
  double difference = 0;     // mean
  double sd = 0;             // of the differences; NaN for n < 2
  Interval interval{0, 0};   // 95%, Student's t; NaN for n < 2
  double t_p = 1;            // two-sided paired t-test; NaN for n < 2
  double permutation_p = 1;  // two-sided sign-flip test: exact up to 20 pairs, else 100000 flips of a fixed seed
};

// Both of the same length; otherwise an Error(Fault::usage).
Paired paired(std::span<const double> a, std::span<const double> b);

// Pairs needed to find a true mean difference with that power in a two-sided paired t-test at `level`, from the noncentral t
// distribution; at least 2; `most` + 1 if more than `most` would be needed.
std::size_t pairs_needed(double difference, double sd, double power = 0.8, double level = 0.05, std::size_t most = 100000);

// The smallest true difference that n pairs find with that power.
double detectable_difference(std::size_t n, double sd, double power = 0.8, double level = 0.05);

}  // namespace cautious::study
