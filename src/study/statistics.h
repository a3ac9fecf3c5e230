// Statistics of matched runs: spread of one arm, differences of two arms over the same seeds, by themselves or in a layout of
// several arms, corrections for several tests, power.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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
  double permutation_p = 1;  // two-sided sign-flip test: exact up to 24 pairs, else 100000 flips of a fixed seed
};

// Both of the same length; otherwise an Error(Fault::usage).
Paired paired(std::span<const double> a, std::span<const double> b);

// Losses of several arms over the same seeds, each the sum of its seed's effect, its arm's and a residual.
struct Layout {
  std::size_t seeds = 0, arms = 0;
  double sd = 0;  // of the residuals; NaN without degrees of freedom

  std::size_t freedom() const { return seeds < 2 || arms < 2 ? 0 : (seeds - 1) * (arms - 1); }
  friend bool operator==(const Layout&, const Layout&) = default;
};

// One vector of losses per arm, all over the same seeds; of different lengths they are an Error(Fault::usage).
Layout layout_of(const std::vector<std::vector<double>>& losses);
// The layout that two of the arms are judged in: that of all of them, which knows the residuals better, without others that
// scatter more than the rest (F-tests at kNoisy); but if the difference of the two scatters more than the others do (an F-test
// at kApart), that of the two alone, which is their paired t-test.
Layout layout_for(std::vector<std::vector<double>> losses, std::size_t a, std::size_t b);
inline constexpr double kApart = 0.15, kNoisy = 0.0001;

// The mean difference of two arms of the layout.
struct Difference {
  double value = 0;
  Interval interval{0, 0};  // 95%, Student's t with the layout's degrees of freedom; NaN without any
  double p = 1;             // two-sided; NaN without any
};
// Over its own seeds, or over so many others.
Difference difference_in(const Layout& layout, double value, std::size_t seeds = 0);

// 95% of the true sd of the residuals, by the chi-square distribution; NaN without degrees of freedom.
Interval sd_interval(const Layout& layout);

// Holm's adjusted p of each test, in their order: those below a level are found with at most that chance of any false one. NaN
// is no test.
std::vector<double> holm(const std::vector<double>& p);

// Seeds needed to find a true difference of two arms with that power at `level`, in a layout of so many arms whose residuals
// have that sd, from the noncentral t distribution; at least 2; `most` + 1 if more than `most` would be needed.
std::size_t seeds_needed(double difference, std::size_t arms, double sd, double power = 0.8, double level = 0.05,
                         std::size_t most = 100000);

// The smallest true difference that the layout finds with that power; NaN without degrees of freedom.
double detectable_difference(const Layout& layout, double power = 0.8, double level = 0.05);

// What one study says of a difference, with its standard error.
struct Finding {
  double value, error;
};

// The mean of a difference over studies that differ in truth too, not only by the chance of their seeds: a random-effects
// model.
struct Combined {
  std::size_t studies = 0;
  double mean = 0;
  Interval interval{0, 0};  // 95%, Student's t with studies - 1 degrees of freedom; NaN for fewer than two
  double p = 1;             // two-sided; NaN for fewer than two
  double between = 0;       // standard deviation of the true differences; 0 where chance explains how the studies differ
};
// Errors must be positive.
Combined combined(std::span<const Finding> findings);

}  // namespace cautious::study
