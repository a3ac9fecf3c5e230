// Two arms at equal amounts of decay, from all points of their grids: one smooth curve of the loss over the logarithm of the
// decay budget, and a constant between the arms. The fit is linear in the losses, so each seed has its own constant, and the
// seeds are independent.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/text.h"
#include "study/verdict.h"

namespace cautious::study {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::quiet_NaN();
constexpr std::size_t kLeastPoints = 3;  // of an arm with decay
constexpr std::size_t kCubicFrom = 7;    // points of both arms; fewer make a parabola

// An arm at a weight decay that is not 0, with every seed.
struct AmountCell {
  double log_lambda = 0, log_budget = 0;
  std::vector<double> losses;
};

// Mean budget of the judged runs; NaN if one has none.
double mean_budget(const Results& results, const std::string& arm, const Overrides& point) {
  double sum = 0, count = 0;
  for (const FinishedRun& run : results.runs) {
    if (run.run.tuning || run.run.arm != arm || run.run.point != point || run.status != RunStatus::done) continue;
    sum += run.decay_budget;
    ++count;
  }
  return sum / count;
}

// Empty unless the grid is one of weight decays alone.
std::vector<AmountCell> amounts_of(const Results& results, const std::string& arm) {
  std::vector<AmountCell> cells;
  for (const Overrides& point : points_of(results, arm)) {
    if (point.size() != 1 || !point.front().first.ends_with("weight_decay")) return {};
    const double lambda = base::parsed<double>(point.front().second).value_or(0), budget = mean_budget(results, arm, point);
    std::vector<double> losses = losses_of(results, arm, point);
    const bool complete = std::ranges::none_of(losses, [](double loss) { return std::isnan(loss); });
    if (lambda > 0 && budget > 0 && complete) cells.push_back({std::log(lambda), std::log(budget), std::move(losses)});
  }
  return cells;
}

// For each row of a design, what its value adds to the last coefficient of a least-squares fit: modified Gram-Schmidt.
std::vector<double> last_weights(std::vector<std::vector<double>> columns) {
  const auto dot = [](const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
  };
  std::vector<double>& last = columns.back();
  for (std::size_t i = 0; i < columns.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      const double part = dot(columns[i], columns[j]) / dot(columns[j], columns[j]);
      for (std::size_t row = 0; row < columns[i].size(); ++row) columns[i][row] -= part * columns[j][row];
    }
  }
  const double square = dot(last, last);
  for (double& value : last) value /= square;
  return last;
}

// Powers of z, moved and scaled to about -1 .. 1.
std::vector<std::vector<double>> powers(const std::vector<double>& z, std::size_t degree) {
  const auto [low, high] = std::ranges::minmax(z);
  std::vector<std::vector<double>> columns(degree + 1);
  for (const double value : z) {
    const double scaled = (2 * value - low - high) / (high - low);
    for (std::size_t power = 0; power <= degree; ++power) columns[power].push_back(std::pow(scaled, power));
  }
  return columns;
}

bool ranges_overlap(const std::vector<AmountCell>& a, const std::vector<AmountCell>& b) {
  const auto [a_low, a_high] = std::ranges::minmax(a, {}, &AmountCell::log_budget);
  const auto [b_low, b_high] = std::ranges::minmax(b, {}, &AmountCell::log_budget);
  const double common = std::min(a_high.log_budget, b_high.log_budget) - std::max(a_low.log_budget, b_low.log_budget);
  const double shorter = std::min(a_high.log_budget - a_low.log_budget, b_high.log_budget - b_low.log_budget);
  return shorter > 0 && common >= shorter / 2;
}

// a minus b at equal budgets, one of each seed.
std::vector<double> constants_of(const std::vector<AmountCell>& a, const std::vector<AmountCell>& b) {
  std::vector<AmountCell> all = a;
  all.insert(all.end(), b.begin(), b.end());
  std::vector<double> z, is_a;
  for (const AmountCell& cell : all) {
    z.push_back(cell.log_budget);
    is_a.push_back(z.size() <= a.size() ? 1 : 0);
  }
  std::vector<std::vector<double>> columns = powers(z, all.size() >= kCubicFrom ? 3 : 2);
  columns.push_back(is_a);
  const std::vector<double> weights = last_weights(std::move(columns));
  std::vector<double> constants(a.front().losses.size(), 0.0);
  for (std::size_t i = 0; i < all.size(); ++i) {
    for (std::size_t seed = 0; seed < constants.size(); ++seed) constants[seed] += weights[i] * all[i].losses[seed];
  }
  return constants;
}

// Where a parabola over log lambda through the mean losses is lowest, without one seed; NaN outside the grid.
double log_best(const std::vector<AmountCell>& cells, std::size_t without) {
  std::vector<double> z, means;
  for (const AmountCell& cell : cells) {
    double sum = 0;
    for (std::size_t seed = 0; seed < cell.losses.size(); ++seed) sum += seed == without ? 0 : cell.losses[seed];
    z.push_back(cell.log_lambda);
    means.push_back(sum / static_cast<double>(cell.losses.size() - (without < cell.losses.size())));
  }
  const auto coefficient = [&](std::size_t of) {  // of a power, which is put last
    std::vector<std::vector<double>> columns = powers(z, 2);
    std::swap(columns[of], columns.back());
    const std::vector<double> weights = last_weights(std::move(columns));
    double sum = 0;
    for (std::size_t i = 0; i < means.size(); ++i) sum += weights[i] * means[i];
    return sum;
  };
  const double square = coefficient(2), lowest = -coefficient(1) / (2 * square);
  const auto [low, high] = std::ranges::minmax(z);
  return square > 0 && std::abs(lowest) <= 1 ? (low + high + lowest * (high - low)) / 2 : kNotKnown;
}

// Jackknife over the seeds.
Spread log_ratio_of(const std::vector<AmountCell>& a, const std::vector<AmountCell>& b) {
  const std::size_t n = a.front().losses.size();
  const double whole = log_best(a, n) - log_best(b, n);
  std::vector<double> values;
  for (std::size_t seed = 0; seed < n; ++seed) {
    const double without = log_best(a, seed) - log_best(b, seed);
    if (!std::isfinite(whole) || !std::isfinite(without))
      return {.n = 0, .mean = kNotKnown, .sd = kNotKnown, .interval = {kNotKnown, kNotKnown}};
    values.push_back(static_cast<double>(n) * whole - static_cast<double>(n - 1) * without);
  }
  return spread_of(values);
}

std::string amounts_text(const EqualAmounts& found, const Measure& measure) {
  std::string text =
      fmt::format("At equal amounts of decay, from every point of both grids, {} - {} is {} +/- {} (95%, {} seeds, p {})",
                  found.contrast.a, found.contrast.b, measure.signed_number(found.difference.mean),
                  measure.with_unit(measure.number(found.difference.interval.high - found.difference.mean)), found.difference.n,
                  found.p < 0.001 ? "< 0.001" : fmt::format("= {:.2g}", found.p));
  if (std::isfinite(found.ratio)) {
    text += fmt::format("; the best weight_decay of {} is {:.2g} ({:.2g} to {:.2g}) times that of {}", found.contrast.a,
                        found.ratio, found.ratio_interval.low, found.ratio_interval.high, found.contrast.b);
  }
  return text + " (exploratory)";
}

}  // namespace

std::vector<EqualAmounts> equal_amounts(const Results& results) {
  std::vector<EqualAmounts> all;
  for (const Contrast& contrast : results.plan.contrasts) {
    if (contrast.best || results.plan.seeds.size() < 2) continue;
    const std::vector<AmountCell> a = amounts_of(results, contrast.a), b = amounts_of(results, contrast.b);
    if (a.size() < kLeastPoints || b.size() < kLeastPoints || !ranges_overlap(a, b)) continue;
    EqualAmounts found{.contrast = contrast};
    const std::vector<double> constants = constants_of(a, b);
    found.difference = spread_of(constants);
    found.p = paired(constants, std::vector<double>(constants.size(), 0.0)).t_p;
    const Spread ratio = log_ratio_of(a, b);
    found.ratio = std::exp(ratio.mean);
    found.ratio_interval = {std::exp(ratio.interval.low), std::exp(ratio.interval.high)};
    found.sentence = amounts_text(found, measure_of(results.runs));
    all.push_back(std::move(found));
  }
  return all;
}

}  // namespace cautious::study
