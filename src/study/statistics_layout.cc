// Layouts of seeds and arms: residuals, tests, Holm's correction and power, with the distributions of Boost.Math.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/fisher_f.hpp>
#include <boost/math/distributions/non_central_t.hpp>
#include <boost/math/distributions/normal.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <boost/math/tools/toms748_solve.hpp>

#include <cautious/error.h>

#include "base/text.h"
#include "study/statistics.h"

namespace cautious::study {
namespace {

constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
constexpr double kLayoutLevel = 0.05;  // of intervals

// Inside these, and below LayoutTest::largest_shift(), the series of Boost.Math converge.
constexpr Range kTestLevels{0.0001, 0.5, false, false};
constexpr double kHighestPower = 0.9999;

// Of the differences of two arms, halved: an estimate of the residuals' variance with n - 1 degrees of freedom. Measured from
// the first difference, so that equal ones have none.
double variance_of_pair(const std::vector<double>& a, const std::vector<double>& b) {
  const auto n = static_cast<double>(a.size());
  const auto from_first = [&](std::size_t i) { return (a[i] - b[i]) - (a[0] - b[0]); };
  double mean = 0, squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) mean += from_first(i) / n;
  for (std::size_t i = 0; i < a.size(); ++i) squares += std::pow(from_first(i) - mean, 2);
  return squares / (n - 1) / 2;
}

void check_lengths(const std::vector<std::vector<double>>& losses) {
  for (const std::vector<double>& arm : losses) {
    if (arm.size() == losses.front().size()) continue;
    throw Error(Fault::usage, fmt::format("an arm of {} losses beside one of {}; valid: one of each arm for every seed",
                                          arm.size(), losses.front().size()));
  }
}

double standard_error_in(const Layout& layout) { return layout.sd * std::sqrt(2 / static_cast<double>(layout.seeds)); }

void check_power(double sd, double power, double level) {
  base::check_range("the standard deviation", sd, kNonnegative);
  base::check_range("the level of the test", level, kTestLevels);
  base::check_range("the power of the test", power, {level, kHighestPower, true, false});
}

// In double precision alone: many times as fast, and exact to more digits than a power needs.
using Fast = boost::math::policies::policy<boost::math::policies::promote_double<false>>;
using NoncentralT = boost::math::non_central_t_distribution<double, Fast>;

// A two-sided t-test at a level. Its power grows with the shift: the true difference over its standard error.
class LayoutTest {
 public:
  LayoutTest(std::size_t freedom, double level)
      : freedom_(static_cast<double>(freedom)),
        critical_(boost::math::quantile(boost::math::complement(boost::math::students_t(freedom_), level / 2))) {}

  // Beyond it the power is above kHighestPower for any freedom.
  double largest_shift() const { return 6 * (critical_ + 1); }
  double critical() const { return critical_; }

  double power(double shift) const {
    const NoncentralT t(freedom_, std::min(shift, largest_shift()));
    return boost::math::cdf(boost::math::complement(t, critical_)) + boost::math::cdf(t, -critical_);
  }

 private:
  double freedom_, critical_;
};

}  // namespace

// The residuals' variance is the mean over all pairs of arms of half the variance of their differences.
Layout layout_of(const std::vector<std::vector<double>>& losses) {
  Layout layout{.seeds = losses.empty() ? 0 : losses.front().size(), .arms = losses.size(), .sd = kNoNumber};
  check_lengths(losses);
  if (layout.freedom() == 0) return layout;
  double sum = 0, pairs = 0;
  for (std::size_t a = 0; a < losses.size(); ++a) {
    for (std::size_t b = a + 1; b < losses.size(); ++b, ++pairs) sum += variance_of_pair(losses[a], losses[b]);
  }
  layout.sd = std::sqrt(sum / pairs);
  return layout;
}

// A sum of squares of the layout's contrasts, and how many they are.
struct Squares {
  explicit Squares(const Layout& layout)
      : sum(layout.sd * layout.sd * static_cast<double>(layout.freedom())), freedom(static_cast<double>(layout.freedom())) {}
  Squares(double s, double f) : sum(s), freedom(f) {}
  double sum, freedom;
};
Squares operator-(const Squares& all, const Squares& part) {
  return {std::max(0.0, all.sum - part.sum), all.freedom - part.freedom};
}

// P of the F-test that the first scatter no more than the second: contrasts that are orthogonal to each other.
double no_more(const Squares& these, const Squares& those) {
  if (those.freedom == 0 || these.sum * those.freedom <= those.sum * these.freedom) return 1;
  if (those.sum == 0) return 0;
  const boost::math::fisher_f ratio(these.freedom, those.freedom);
  return boost::math::cdf(boost::math::complement(ratio, these.sum / these.freedom / (those.sum / those.freedom)));
}

// Without the arms, but for the first two, that scatter more than the rest: the noisiest first.
void drop_noisy(std::vector<std::vector<double>>& losses) {
  while (losses.size() > 2 && losses.front().size() > 1) {
    const Squares all(layout_of(losses));
    double least = 1;
    std::vector<std::vector<double>> kept;
    for (std::size_t arm = 2; arm < losses.size(); ++arm) {
      std::vector<std::vector<double>> others = losses;
      others.erase(others.begin() + static_cast<std::ptrdiff_t>(arm));
      const Squares rest(layout_of(others));
      if (rest.sum == 0) continue;  // arms that are alike to the last digit are a tie, not the rule
      if (const double p = no_more(all - rest, rest); p < least) least = p, kept = std::move(others);
    }
    if (least >= kNoisy) return;
    losses = std::move(kept);
  }
}

Layout layout_for(std::vector<std::vector<double>> losses, std::size_t a, std::size_t b) {
  check_lengths(losses);
  std::swap(losses.at(a), losses.at(0));
  std::swap(losses.at(b == 0 ? a : b), losses.at(1));
  drop_noisy(losses);
  const Layout all = layout_of(losses), pair = layout_of({losses[0], losses[1]});
  return no_more(Squares(pair), Squares(all) - Squares(pair)) < kApart ? pair : all;
}

Difference difference_in(const Layout& layout, double value, std::size_t seeds) {
  if (layout.freedom() == 0) return {value, {kNoNumber, kNoNumber}, kNoNumber};
  const boost::math::students_t t(static_cast<double>(layout.freedom()));
  const double error = layout.sd * std::sqrt(2 / static_cast<double>(seeds > 0 ? seeds : layout.seeds));
  const double half = boost::math::quantile(boost::math::complement(t, kLayoutLevel / 2)) * error;
  const double none = value == 0 ? 1 : 0;
  const double p = error == 0 ? none : 2 * boost::math::cdf(boost::math::complement(t, std::abs(value) / error));
  return {value, {value - half, value + half}, p};
}

Interval sd_interval(const Layout& layout) {
  if (layout.freedom() == 0) return {kNoNumber, kNoNumber};
  const auto freedom = static_cast<double>(layout.freedom());
  const boost::math::chi_squared square(freedom);
  const double most = boost::math::quantile(boost::math::complement(square, kLayoutLevel / 2)),
               least = boost::math::quantile(square, kLayoutLevel / 2);
  return {layout.sd * std::sqrt(freedom / most), layout.sd * std::sqrt(freedom / least)};
}

std::vector<double> holm(const std::vector<double>& p) {
  std::vector<std::size_t> order;
  for (std::size_t i = 0; i < p.size(); ++i) {
    if (!std::isnan(p[i])) order.push_back(i);
  }
  std::ranges::stable_sort(order, {}, [&](std::size_t i) { return p[i]; });
  std::vector<double> adjusted(p.size(), kNoNumber);
  double highest = 0;
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    highest = std::max(highest, static_cast<double>(order.size() - rank) * p[order[rank]]);
    adjusted[order[rank]] = std::min(1.0, highest);
  }
  return adjusted;
}

std::size_t seeds_needed(double difference, std::size_t arms, double sd, double power, double level, std::size_t most) {
  base::check_range("the size of the difference", std::abs(difference), kNonnegative);
  check_power(sd, power, level);
  const auto enough = [&](std::size_t n) {
    const Layout layout{.seeds = n, .arms = arms, .sd = sd};
    return LayoutTest(layout.freedom(), level).power(std::abs(difference) / standard_error_in(layout)) >= power;
  };
  if (difference == 0 || most < 2 || arms < 2) return most + 1;
  // A known sd (the normal distribution) would need about as many: from there in growing strides, then by halves.
  const boost::math::normal normal;
  const double shift = boost::math::quantile(boost::math::complement(normal, level / 2)) + boost::math::quantile(normal, power);
  const double known = std::clamp(2 * std::pow(shift * sd / difference, 2), 2.0, static_cast<double>(most));
  auto low = static_cast<std::size_t>(known), high = low;  // the answer is among low .. high once low - 1 is too few
  if (enough(low)) {
    for (std::size_t stride = 1; low > 2 && enough(low - 1); stride *= 2) high = low - 1, low -= std::min(stride, low - 2);
  } else {
    for (std::size_t stride = 1; high <= most && !enough(high); stride *= 2) low = high + 1, high += stride;
  }
  while (low < high) {
    const std::size_t middle = low + (high - low) / 2;
    if (enough(middle)) {
      high = middle;
    } else {
      low = middle + 1;
    }
  }
  return std::min(low, most + 1);
}

double detectable_difference(const Layout& layout, double power, double level) {
  if (layout.freedom() == 0) return kNoNumber;
  check_power(layout.sd, power, level);
  const LayoutTest test(layout.freedom(), level);
  std::uintmax_t steps = 100;
  const auto root =
      boost::math::tools::bracket_and_solve_root([&](double shift) { return test.power(shift) - power; }, test.critical() + 1,
                                                 1.5, true, boost::math::tools::eps_tolerance<double>(40), steps);
  return root.second * standard_error_in(layout);
}

}  // namespace cautious::study
