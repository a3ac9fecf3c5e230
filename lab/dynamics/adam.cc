// The remarks on Adam: the candidate H of plain AdamW, and the condition gamma <= 4 alpha.
#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/system.h"

namespace cautious::lab {
namespace {

// From here on alpha_t and gamma_t are 1 in double precision: the remark has no bias correction.
constexpr double kLate = 50;

struct AdamwRun {
  System system;
  Problem problem;
  Watched watched;
  double rise = 0;  // over the range of H
  double rate = 0;  // largest dH/dt
};

AdamwRun adamw_run(Random& random) {
  AdamwRun run{.system = {.flow = Flow::adam, .decay = FlowDecay::decoupled, .eps = 0},
               .problem = random_quadratic(random, 2, 2),
               .watched = {}};
  run.system.lambda = random.uniform(0.2, 1.5);
  FlowOptions options = usual_options(kLate + 8);
  options.t_begin = kLate;
  run.watched = watch(run.system, run.problem, run.problem.start, options);
  const auto& h = run.watched.h;
  const auto [least, most] = std::minmax_element(h.begin(), h.end());
  run.rise = largest_rise(h) / (*most - *least);
  for (const FlowPoint& point : run.watched.trajectory.points) {
    run.rate = std::max(run.rate, lyapunov_rate(run.system, run.problem, point.t, point.z, point.side));
  }
  return run;
}

report::ChartSeries h_series(std::string name, std::size_t colour, const Watched& watched) {
  report::ChartSeries series = new_series(std::move(name), colour);
  for (std::size_t n = 0; n < watched.h.size(); ++n) {
    series.x.push_back(watched.trajectory.points[n].t - kLate);
    series.y.push_back(watched.h[n]);
  }
  return series;
}

// H of AdamW at x = 1 with m = -lambda sqrt(v): f(1) - lambda^2 sqrt(v) / 2 has no lower bound as v grows. That of Adam + CWD
// has.
double far_down(double v, FlowDecay decay = FlowDecay::decoupled) {
  const System system{.flow = Flow::adam, .decay = decay, .lambda = 1, .eps = 0};
  Problem problem;
  problem.start = {1};
  problem.value = [](PointView x) { return x[0] * x[0] / 2; };
  return lyapunov(system, problem, kLate, Point{1, -std::sqrt(v), v});
}

// Along trajectories of Adam + CWD with gamma = ratio alpha.
struct GammaRow {
  double ratio = 0;
  double rise = 0;                  // of H, over its fall; the worst
  double growth = 0;                // largest dH/dt over alpha |alpha_t m^2 / h|_1, late
  std::vector<std::size_t> rising;  // trajectories, one count per seed
};

double weight(const System& system, double t, PointView z) {
  const auto [x, m, v] = parts(system, z);
  double sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const double h = std::sqrt(bias_correction(system.gamma, t) * positive_part(v[i])) + system.eps;
    sum += bias_correction(system.alpha, t) * m[i] * m[i] / h;
  }
  return sum;
}

// dH/dt and its bound over alpha |alpha_t m^2 / h|_1 at a minimiser with m against x.
std::pair<double, double> growth_at_rest(double ratio) {
  const System system{.flow = Flow::adam, .gamma = ratio, .eps = 1e-12};
  Problem problem;
  problem.start = {1};
  problem.gradient = [](PointView x, std::span<double> g) { g[0] = x[0] - 1; };
  const Point z = {1, -1, 1};
  const double scale = system.alpha * weight(system, kLate, z);
  return {lyapunov_rate(system, problem, kLate, z, Point{-1}) / scale, adam_rate_bound(system, kLate, z) / scale};
}

void add_gamma(GammaRow& row, std::uint64_t seed, std::size_t trajectories) {
  Random random(seed);
  row.rising.push_back(0);
  for (std::size_t n = 0; n < trajectories; ++n) {
    const std::size_t d = 1 + n % 3;
    const Problem problem = n % 2 == 0 ? random_quadratic(random, d, d) : random_waves(random, d);
    const System system{.flow = Flow::adam, .lambda = random.uniform(0.05, 0.5), .gamma = row.ratio, .eps = 1e-4};
    FlowOptions options = usual_options(6);
    options.may_slide = false;
    const Watched watched = watch(system, problem, problem.start, options);
    row.rise = std::max(row.rise, watched.rise);
    row.rising.back() += watched.rise > kRises;
    for (const FlowPoint& point : watched.trajectory.points) {
      const double sum = weight(system, point.t, point.z);
      if (point.t < 1 || sum < 1e-6) continue;
      row.growth = std::max(row.growth, lyapunov_rate(system, problem, point.t, point.z, point.side) / (system.alpha * sum));
    }
  }
}

}  // namespace

Section adamw_section(const DynamicsOptions& options, const Progress& progress) {
  Section section =
      new_section("Plain AdamW has no such H",
                  "The appendix tries H = f + |m²/2√v| + ⟨m, λx⟩ for AdamW with α = γ = 1, ε = 0 and no bias correction. "
                  "Random quadratics of two variables, random λ and starts; drawn is the trajectory on which H rises most.",
                  options);
  const std::size_t count = 5 * options.trials;
  AdamwRun worst;
  std::vector<std::size_t> rising;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    progress(static_cast<double>(seed) / static_cast<double>(kSeeds), "AdamW");
    Random random(options.seed + seed + 11);
    rising.push_back(0);
    for (std::size_t n = 0; n < count; ++n) {
      AdamwRun run = adamw_run(random);
      rising.back() += run.rise > 0.01;
      if (seed == 0 && (n == 0 || run.rise > worst.rise)) worst = std::move(run);
    }
  }
  System cautious = worst.system;
  cautious.decay = FlowDecay::cautious;
  FlowOptions late = usual_options(kLate + 8);
  late.t_begin = kLate;
  late.may_slide = false;
  const Watched comparison = watch(cautious, worst.problem, worst.problem.start, late);

  section.claims.push_back(
      {"The candidate H of plain AdamW is not monotone",
       "appendix D, first remark",
       worst.rise > kRises ? Outcome::holds : Outcome::undecided,
       fmt::format(
           "it rises by more than 1% of its range on {}; at seed {} at most by {:.2g} of its range, on a trajectory where "
           "dH/dt reaches {:.2g}",
           over_seeds(rising, count, options), options.seed, worst.rise, worst.rate),
       "",
       {{"the mask in the decay, and λ|(mx)⁺|₁ in H",
         fmt::format("on the same problem H rises by {:.1e} of its fall", comparison.rise), comparison.rise <= kRises}}});
  section.claims.push_back(
      {"The candidate H of plain AdamW is not bounded below",
       "appendix D, first remark",
       outcome_of(far_down(1e12) < -1e5),
       fmt::format("with f = x²/2, λ = 1, x = 1 and m = -√v it is {:.2g}, {:.2g} and {:.2g} for v = 10⁴, 10⁸ and 10¹²",
                   far_down(1e4), far_down(1e8), far_down(1e12)),
       "",
       {{"λ|(mx)⁺|₁ in H in place of λ<m, x>", fmt::format("{:.2g} at v = 10¹²", far_down(1e12, FlowDecay::cautious)),
         far_down(1e12, FlowDecay::cautious) > 0}}});
  report::LineChart chart = new_chart("The candidate H of AdamW and the H of Adam + CWD", "time", "H",
                                      "H over time on one random quadratic from one start, for AdamW and for Adam + CWD.");
  chart.series = {h_series("AdamW", 1, worst.watched), h_series("Adam + CWD", 0, comparison)};
  section.figures.push_back(
      {"dynamics_adamw_h", chart,
       fmt::format("Same quadratic, start and λ = {:.2g}. The candidate of AdamW rises by {:.2g} of its range. With λ|(mx)⁺| "
                   "in place of ⟨m, λx⟩ and the mask in the decay, H of Adam + CWD rises by {:.1e} of its fall.",
                   worst.system.lambda, worst.rise, comparison.rise)});
  return section;
}

Section gamma_section(const DynamicsOptions& options, const Progress& progress) {
  Section section =
      new_section("Adam beyond γ = 4α",
                  "The appendix assumes γ ≤ 4α. Trajectories of Adam + CWD (ε = 10⁻⁴) on the same random problems for several "
                  "γ/α. By the appendix dH/dt ≤ (γ/4 - α) |α_t m²/h|₁ once the bias correction has gone.",
                  options);
  const std::vector<double> ratios = {1, 2, 4, 4.2, 4.5, 5, 6, 8, 16, 50};
  std::vector<GammaRow> rows;
  for (const double ratio : ratios) {
    progress(static_cast<double>(rows.size()) / static_cast<double>(ratios.size()), "gamma / alpha");
    rows.push_back({.ratio = ratio, .growth = -std::numeric_limits<double>::infinity(), .rising = {}});
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) add_gamma(rows.back(), options.seed + seed + 12, options.trials);
  }
  report::Table table{.name = "dynamics_gamma",
                      .title = "Adam + CWD for several γ/α",
                      .head = {"γ/α", "with rising H", "largest rise over fall", "largest growth", "bound γ/4α - 1"},
                      .rows = {},
                      .note = "Growth: dH/dt over α |α_t m²/h|₁, for t ≥ 1. Counts are ranges over four seeds."};
  report::LineChart chart =
      new_chart("How fast H of Adam + CWD grows at most", "γ/α", "dH/dt over α |α_t m²/h|₁",
                "Largest relative growth rate of H found, and the paper's bound, against gamma over alpha.");
  chart.x_scale = report::Scale::log;
  report::ChartSeries found = new_series("found", 0), bound = new_series("bound", 1);
  found.markers = true;
  double within = 0;
  std::string first = "none";  // ratio with a rising H
  for (const GammaRow& row : rows) {
    table.rows.push_back({fmt::format("{:g}", row.ratio), range_of(row.rising, options.trials), fmt::format("{:.1e}", row.rise),
                          std::isfinite(row.growth) ? fmt::format("{:.3g}", row.growth) : "-",
                          fmt::format("{:.3g}", row.ratio / 4 - 1)});
    if (std::isfinite(row.growth)) found.x.push_back(row.ratio), found.y.push_back(row.growth);
    bound.x.push_back(row.ratio), bound.y.push_back(row.ratio / 4 - 1);
    if (row.ratio <= 4) within = std::max(within, row.rise);
    if (row.rise > kRises && first == "none") first = fmt::format("{:g}", row.ratio);
  }
  chart.series = {found, bound};
  const GammaRow& beyond = rows[3];
  section.claims.push_back(
      {"For γ ≤ 4α H of Adam + CWD never rises",
       "appendix D",
       outcome_of(within <= kRises),
       fmt::format("γ/α = 1, 2, 4: largest rise {:.1e} of the fall on {} trajectories each", within, kSeeds * options.trials),
       "",
       {{fmt::format("γ = {:g} α", beyond.ratio),
         fmt::format("H rises on {}, at most by {:.1e} of its fall", over_seeds(beyond.rising, options.trials, options),
                     beyond.rise),
         beyond.rise > kRises}}});
  const auto [low, low_bound] = growth_at_rest(3.9);
  const auto [high, high_bound] = growth_at_rest(4.1);
  section.claims.push_back(
      {"γ ≤ 4α is needed for dH/dt ≤ 0 at every state", "", Outcome::noted,
       fmt::format("where g = 0, mx < 0 and ε is tiny the bound is attained: dH/dt over α |α_t m²/h|₁ is {:+.3f} (bound "
                   "{:+.3f}) for γ/α = 3.9 and {:+.3f} (bound {:+.3f}) for 4.1; the least tried γ/α with H rising on a "
                   "trajectory: {}; at γ/α = 50 H rises on {}, at most by {:.2g} of its fall",
                   low, low_bound, high, high_bound, first, over_seeds(rows.back().rising, options.trials, options),
                   rows.back().rise)});
  section.figures.push_back({"dynamics_gamma_growth", chart,
                             fmt::format("Above zero H grows for a while. The least γ/α with a rising H: {}.", first)});
  section.tables.push_back(table);
  return section;
}

}  // namespace cautious::lab
