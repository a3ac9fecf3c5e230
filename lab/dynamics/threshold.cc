// From which lambda/gamma on can H of Muon + CWD rise? At states, by search and by construction; along flows of large matrices.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/momenta.h"
#include "lab/linear.h"

namespace cautious::lab {
namespace {

constexpr double kNoise = 0.03;  // beside rank one
constexpr double kLargeLambda = 1, kLargeGamma = 0.7;

struct Size {
  std::int64_t n;
  std::size_t starts;  // of the search
};
constexpr Size kSizes[] = {{2, 4}, {3, 12}, {4, 12}, {8, 120}, {16, 24}, {32, 6}, {64, 0}};

struct Found {
  std::int64_t n = 0;
  RankOne m;
  double threshold = 0;
};

bool is_power_of_4(std::int64_t n) {
  while (n > 1 && n % 4 == 0) n /= 4;
  return n == 1;
}

std::vector<Found> search(Random& random, const Progress& progress) {
  std::vector<Found> found;
  for (const auto& [n, starts] : kSizes) {
    progress(0.3 * static_cast<double>(found.size()) / std::size(kSizes), "Muon's momentum");
    const RankOne climbed = starts > 0 ? climb_from_random(random, n, starts) : flat_momentum(n);
    found.push_back({n, climbed, threshold_of(opposition(climbed))});
  }
  return found;
}

// Of a random orthogonal matrix, with p of entries of equal size.
double random_threshold(Random& random, std::int64_t n) {
  Eigen::MatrixXd a(n, n);
  for (double& entry : a.reshaped()) entry = random.normal();
  return threshold_of(opposition({.o = orthogonal_factor(a), .p = Eigen::VectorXd::Ones(n).normalized()}));
}

// The least of a sample of Gaussian matrices.
double sampled_threshold(Random& random, std::int64_t n) {
  std::vector<Matrix> matrices(static_cast<std::size_t>(std::max<std::int64_t>(4, 4000 / (n * n))), Matrix(n, n));
  for (Matrix& matrix : matrices) {
    for (double& entry : matrix.reshaped()) entry = random.normal();
  }
  return signs_of(matrices).ratio;
}

struct Shown {
  report::Table table;
  report::Figure figure;
};

Shown show(const std::vector<Found>& found, Random& random) {
  report::Table table{.name = "dynamics_muon_threshold",
                      .title = "Muon + CWD: the λ/γ from which on some state has dH/dt > 0",
                      .head = {"matrix", "found by search", "by construction", "not below 2/(√n - 1)",
                               "random O, p of equal entries", "least of a Gaussian sample"},
                      .rows = {},
                      .note =
                          "Momenta m = O p p' of rank one, which are the worst. Search: uphill from random starts. "
                          "Construction: O a rotation by 30° (2 x 2); Kronecker powers of Hadamard's 4 x 4 matrix, which "
                          "attain the bound. Random O: about π/√n."};
  report::LineChart chart = new_chart("From which λ/γ on H of Muon + CWD can rise", "rows of the matrix", "λ/γ",
                                      "The threshold found, its lower bound, and what a sample of Gaussian matrices suggests, "
                                      "against the size of the matrix, on logarithmic scales.");
  chart.x_scale = chart.y_scale = report::Scale::log;
  report::ChartSeries best = new_series("least found", 0), bound = new_series("2/(√n - 1)", 1),
                      sample = new_series("least of a Gaussian sample", 2);
  best.markers = bound.markers = sample.markers = true;
  const auto add = [&](report::ChartSeries& series, std::int64_t n, double value) {
    series.x.push_back(static_cast<double>(n));
    series.y.push_back(value);
    return fmt::format("{:.3f}", value);
  };
  const auto add_row = [&](std::int64_t n, double searched) {
    const double built = n == 2             ? threshold_of(opposition(turned_momentum()))
                         : is_power_of_4(n) ? threshold_of(opposition(flat_momentum(n)))
                                            : INFINITY;
    if (std::min(searched, built) < INFINITY) add(best, n, std::min(searched, built));
    table.rows.push_back({fmt::format("{0} x {0}", n), searched < INFINITY ? fmt::format("{:.3f}", searched) : "-",
                          built < INFINITY ? fmt::format("{:.3f}", built) : "-", add(bound, n, least_threshold(n)),
                          n >= 64 ? fmt::format("{:.3f}", random_threshold(random, n)) : "-",
                          n <= 64 ? add(sample, n, sampled_threshold(random, n)) : "-"});
  };
  for (const Found& one : found) add_row(one.n, one.n == 64 ? INFINITY : one.threshold);
  for (const std::int64_t n : {256, 512}) add_row(n, INFINITY);
  chart.series = {best, bound, sample};
  return {
      table,
      {"dynamics_muon_falls", chart,
       "The larger the matrix, the smaller the λ/γ that lets H rise. A sample of Gaussian matrices suggests the contrary."}};
}

// At 1% below and above the threshold of the state, by the dH/dt of lyapunov.cc, which knows nothing of S.
struct Bracket {
  double below = 0, above = 0;
};
Bracket bracket(const Found& one, double factor = 1) {
  return {worst_rate(one.m, 0.99 * factor * one.threshold, 1), worst_rate(one.m, 1.01 * factor * one.threshold, 1)};
}

Claim state_claim(const std::vector<Found>& found) {
  std::string least;
  for (const Found& one : found)
    least += fmt::format("{}{:.3g} for {} x {}", least.empty() ? "" : ", ", one.threshold, one.n, one.n);
  const Bracket two = bracket(found.front());
  return {
      "For Muon + CWD dH/dt ≤ 0 at every state", "Table 1, K the nuclear norm", outcome_of(two.above <= 0),
      fmt::format("the least λ/γ found with dH/dt > 0 falls with the size: {}; at 2 x 2 dH/dt is {:+.3f} γ|m|_* 1% below it "
                  "and {:+.3f} 1% above",
                  least, two.below, two.above),
      "m = [3 1; 7 3] has O = [1 -1; 1 1]/√2 and |m|_* = 12/√2. Take x tiny, with the sign of m but for the second entry, "
      "whose mask alone is then on: dH/dt = -γ 12/√2 + λ/√2 > 0 for λ > 12γ. The best 2 x 2 is m = [√3 1; 3 √3]/4 (O turns "
      "by 30°), where |m|_* = 1 and the entry against is 1/8: λ > 8γ"};
}

// Ours, but it can fail: a state with dH/dt > 0 below the bound would refute it.
Claim bound_claim(const std::vector<Found>& found) {
  bool holds = true, noticed = false;
  double nearest = INFINITY;
  for (const Found& one : found) {
    const Bracket here = bracket(one), half = bracket(one, 0.5);
    holds = holds && one.threshold >= least_threshold(one.n) * (1 - 1e-12) && here.below < 0 && here.above > 0;
    noticed = noticed || !(half.above > 0);
    nearest = std::min(nearest, one.threshold / least_threshold(one.n) - 1);
  }
  const std::string text =
      "For λ/γ ≤ 2/(√n - 1), n the smaller side, H of Muon + CWD never rises; for n a power of 4 not beyond";
  return {holds ? text : "Not in this run: " + text,
          "",
          Outcome::noted,
          fmt::format("searched for 2 x 2 to 32 x 32 and built for 64 x 64: no state below the bound, the nearest {:.1e} above "
                      "it; dH/dt changes sign at the threshold of each, by the formula of the appendix",
                      nearest),
          "",
          {{"half of each threshold", noticed ? "dH/dt is below 0 there" : "dH/dt is above 0 there as well", noticed}}};
}

struct LargeRow {
  std::int64_t n;
  std::vector<LargeFlow> flows;  // one per seed
  std::vector<std::size_t> rising() const {
    std::vector<std::size_t> counts;
    for (const LargeFlow& flow : flows) counts.push_back(flow.rise > kRises);
    return counts;
  }
};

System large_muon(std::int64_t n) {
  return {
      .flow = Flow::lion_k, .lambda = kLargeLambda, .gamma = kLargeGamma, .k = {.k = Convex::nuclear}, .rows = n, .cols = n};
}

LargeRow large_row(std::int64_t n, const DynamicsOptions& options) {
  LargeRow row{.n = n, .flows = {}};
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    Random random(options.seed + seed + 23);
    row.flows.push_back(large_flow(large_muon(n), near_rank_one(random, n, kNoise), 0.5, n > 64 ? 10 : 25));
  }
  return row;
}

Claim large_claim(const std::vector<LargeRow>& rows, const DynamicsOptions& options) {
  std::size_t rising = 0, flows = 0;
  for (const LargeRow& row : rows) {
    flows += row.flows.size();
    for (const std::size_t count : row.rising()) rising += count;
  }
  const auto at_64 = std::ranges::find(rows, 64, &LargeRow::n);
  Random random(options.seed + 23);
  const LargeFlow finer = large_flow(large_muon(64), near_rank_one(random, 64, kNoise), 0.5, 50);
  return {
      "H of Muon + CWD falls along trajectories of large matrices", "Table 1, K the nuclear norm", outcome_of(rising == 0),
      fmt::format("f = |X - C|²/2, C of rank one but for 3%, from X = 0, λ = {:g}, γ = {:g}: H rises on {} of {} flows of 8 x "
                  "8 to 128 x 128; 64 x 64: by {:.1e} of its fall and {:.1e} of H until t = {:.2f}, with half the steps' "
                  "length {:.1e}; there H rises at once if λ/γ > |C|_*/N(C) = {:.2f}",
                  kLargeLambda, kLargeGamma, rising, flows, at_64->flows[0].rise, at_64->flows[0].of_h, at_64->flows[0].until,
                  finer.of_h, at_64->flows[0].first)};
}

report::Table large_table(const std::vector<LargeRow>& rows, const DynamicsOptions& options) {
  report::Table table{
      .name = "dynamics_muon_large",
      .title = fmt::format("Muon + CWD on large matrices of about rank one, λ = {:g}, γ = {:g}", kLargeLambda, kLargeGamma),
      .head = {"matrix", "with rising H", "largest rise over fall", "over H at the start", "entries of opposite sign",
               "λ/γ from which H rises at once"},
      .rows = {},
      .note = "f = |X - C|²/2 from X = 0, steps of Runge and Kutta to time 0.5. λ/γ is 1.43."};
  for (const LargeRow& row : rows) {
    const auto most = [&](double LargeFlow::*of) { return (*std::ranges::max_element(row.flows, {}, of)).*of; };
    const auto least = [&](double LargeFlow::*of) { return (*std::ranges::min_element(row.flows, {}, of)).*of; };
    const auto counts = row.rising();
    const std::size_t rising = static_cast<std::size_t>(std::ranges::count(counts, 1u));
    table.rows.push_back(
        {fmt::format("{0} x {0}", row.n),
         fmt::format("{} of {} (seeds {} to {})", rising, counts.size(), options.seed, options.seed + counts.size() - 1),
         fmt::format("{:.1e}", most(&LargeFlow::rise)), fmt::format("{:.1e}", most(&LargeFlow::of_h)),
         fmt::format("{:.0f}% to {:.0f}%", 100 * least(&LargeFlow::against), 100 * most(&LargeFlow::against)),
         fmt::format("{:.2f} to {:.2f}", least(&LargeFlow::first), most(&LargeFlow::first))});
  }
  return table;
}

}  // namespace

Section threshold_section(const DynamicsOptions& options, const Progress& progress) {
  Section section = new_section(
      "Muon: from which λ/γ on H can rise",
      "O is the orthogonal factor of m, N(m) the sum of |O m| over the entries with O m < 0. For tiny x with the worst signs "
      "dH/dt = -γ|m|_* + λN(m): the threshold is the least |m|_*/N(m), which momenta of rank one attain. The least value of a "
      "sample of Gaussian m says little about it: it grows with the size, while the threshold falls.",
      options);
  Random random(options.seed + 24);
  const std::vector<Found> found = search(random, progress);
  Shown shown = show(found, random);
  section.tables.push_back(std::move(shown.table));
  section.figures.push_back(std::move(shown.figure));
  std::vector<LargeRow> rows;
  for (const std::int64_t n : {8, 16, 32, 64, 128}) {
    progress(0.4 + 0.1 * static_cast<double>(rows.size()), "large flows of Muon");
    rows.push_back(large_row(n, options));
  }
  section.tables.push_back(large_table(rows, options));
  section.claims = {state_claim(found), large_claim(rows, options), bound_claim(found)};
  return section;
}

}  // namespace cautious::lab
