// Table 1: every system with CWD, with decoupled decay and without, on random problems from random starts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/system.h"

namespace cautious::lab {
namespace {

constexpr double kMismatch = 1e-3;  // of analytic and numerical dH/dt, relative
constexpr double kVanished = 1e-2;  // of |g| at the start
constexpr double kFades = 0.98;     // of |g| + |m| in the second quarter of the time

// Of one trajectory: the largest |g| + |m| in the last quarter of its time, over |g| at the start and over the largest in the
// second quarter.
struct Fading {
  double left = 0, trend = 0;
  bool vanishes() const { return left < kVanished || trend < kFades; }
};

struct SystemRow {
  System system;
  std::size_t trajectories = 0, slid = 0;
  double rise = 0;
  std::vector<double> mismatches, gradients, momenta;
  std::vector<Fading> fadings;
};

// Norms turn ever faster as m shrinks, which costs the solver; smooth K and the rest are soon at rest.
double time_for(const System& system) {
  if (system.flow != Flow::lion_k) return 30;
  const Convex k = system.k.k;
  return k == Convex::huber || k == Convex::relativistic || k == Convex::threshold ? 30 : 12;
}

std::vector<System> systems(FlowDecay decay) {
  std::vector<System> all;
  for (const Flow flow : {Flow::sgd, Flow::sgdm, Flow::adam}) all.push_back({.flow = flow, .decay = decay, .eps = 1e-2});
  for (std::size_t k = 0; k < names_of(Convex{}).size(); ++k) {
    all.push_back(
        {.flow = Flow::lion_k, .decay = decay, .k = {.k = static_cast<Convex>(k), .p = 1.5, .e = 0.2, .fraction = 0.4}});
  }
  return all;
}

// A start where K*(lambda x) is finite: |lambda x|_1 < 1 is inside the unit ball of every dual norm.
Point inside(Point x, double lambda) {
  double sum = 0;
  for (const double entry : x) sum += std::abs(entry);
  for (double& entry : x) entry *= 0.9 / std::max(lambda * sum, 1.0);
  return x;
}

Fading fading(const System& system, const Problem& problem, const Trajectory& trajectory) {
  const auto& points = trajectory.points;
  const auto size = [&](const FlowPoint& point) {
    const StateView state = parts(system, point.z);
    const double momentum = system.flow == Flow::sgd ? 0 : as_vector(state.m).norm();
    return as_vector(PointView(gradient(problem, state.x))).norm() + momentum;
  };
  double second = 0, last = 0;
  for (const FlowPoint& point : points) {
    const double part = point.t / points.back().t;
    if (part >= 0.25 && part < 0.5) second = std::max(second, size(point));
    if (part >= 0.75) last = std::max(last, size(point));
  }
  const double start = as_vector(PointView(gradient(problem, PointView(points.front().z).first(problem.size())))).norm();
  return {.left = last / start, .trend = second > 0 ? last / second : 0};
}

SystemRow run_system(const System& kind, const DynamicsOptions& options) {
  SystemRow row{.system = kind, .mismatches = {}, .gradients = {}, .momenta = {}, .fadings = {}};
  Random random(options.seed + 1);  // the same problems for all
  for (std::size_t n = 0; n < options.trials; ++n) {
    System system = random_system(random, kind);
    system.rows = 2, system.cols = n % 2 == 0 ? 2 : 3;
    const bool is_matrix = system.flow == Flow::lion_k && system.k.k == Convex::nuclear;
    const std::size_t d = is_matrix ? static_cast<std::size_t>(2 * system.cols) : 2 + random.below(5);
    const Problem problem = random_problem(random, n, d);
    const bool boxed = system.flow == Flow::lion_k && system.decay == FlowDecay::decoupled;
    FlowOptions flow_options = usual_options(time_for(system));
    flow_options.most_events = 8000;
    flow_options.most_steps = 16000;
    const Watched watched = watch(system, problem, boxed ? inside(problem.start, system.lambda) : problem.start, flow_options);
    ++row.trajectories;
    row.rise = std::max(row.rise, watched.rise);
    row.gradients.push_back(watched.gradient);
    row.momenta.push_back(watched.momentum);
    row.fadings.push_back(fading(system, problem, watched.trajectory));
    const auto& points = watched.trajectory.points;
    row.slid += std::any_of(points.begin(), points.end(), [](const FlowPoint& point) {
      return std::find(point.sliding.begin(), point.sliding.end(), true) != point.sliding.end();
    });
    const std::vector<double> mismatches = rate_mismatches(system, problem, watched.trajectory);
    row.mismatches.insert(row.mismatches.end(), mismatches.begin(), mismatches.end());
  }
  return row;
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

double high_quantile(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[(values.size() - 1) * 99 / 100];
}

double worst(const std::vector<double>& values) { return values.empty() ? 0 : *std::max_element(values.begin(), values.end()); }

bool falls(const SystemRow& row) { return row.rise <= kRises; }

std::vector<std::string> cells(const SystemRow& row) {
  return {name_of(row.system),
          std::to_string(row.trajectories),
          fmt::format("{:.1e}", row.rise),
          fmt::format("{:.0e}", median(row.mismatches)),
          fmt::format("{:.0e}", worst(row.mismatches)),
          fmt::format("{:.1e}", median(row.gradients)),
          row.system.flow == Flow::sgd ? "-" : fmt::format("{:.1e}", median(row.momenta)),
          std::to_string(row.slid),
          falls(row) ? "H falls" : "H rises"};
}

Claim table1_claim(const SystemRow& row) {
  return {fmt::format("{}, λ from {:g} to {:g}: H of Table 1 never rises, and dH/dt is the appendix's", name_of(row.system),
                      kLeastLambda, kMostLambda),
          "Table 1, appendix D",
          falls(row) && row.mismatches.empty() ? Outcome::undecided
                                               : outcome_of(falls(row) && high_quantile(row.mismatches) < kMismatch),
          fmt::format("largest rise {:.1e} of the fall on {} trajectories; analytic and numerical dH/dt differ by {:.0e} in "
                      "the median, {:.0e} at 99% of the points and {:.0e} at most, at {} points",
                      row.rise, row.trajectories, median(row.mismatches), high_quantile(row.mismatches), worst(row.mismatches),
                      row.mismatches.size())};
}

Claim vanishing_claim(const std::vector<SystemRow>& rows) {
  bool vanish = true;
  std::size_t trajectories = 0, small = 0;
  double left = 0, trend = 0, threshold = 0;
  for (const SystemRow& row : rows) {
    for (const Fading& fading : row.fadings) {
      if (row.system.flow == Flow::lion_k && row.system.k.k == Convex::threshold) {
        threshold = std::max(threshold, fading.left);
        continue;
      }
      ++trajectories;
      vanish = vanish && fading.vanishes();
      left = std::max(left, fading.left);
      small += fading.left < kVanished;
      if (fading.left >= kVanished) trend = std::max(trend, fading.trend);
    }
  }
  return {"Momentum and gradient vanish with CWD, except for K = threshold", "section 3.1", outcome_of(vanish),
          fmt::format("largest |g| + |m| in the last quarter of the time: below {:g} of |g| at the start on {} of {} "
                      "trajectories, at most {:.2g} of it; on the others at most {:.2g} of the largest in the second quarter, "
                      "where at most {:g} is required; threshold stops with |m| ≤ e: {:.2g} of |g| at the start",
                      kVanished, small, trajectories, left, trend, kFades, threshold)};
}

Claim comparison_claim(const std::vector<SystemRow>& rows) {
  double rise = 0;
  for (const SystemRow& row : rows) {
    if (row.system.flow != Flow::adam || row.system.decay == FlowDecay::none) rise = std::max(rise, row.rise);
  }
  return {
      "Without decay, and with decoupled decay except for AdamW, H falls too", "appendix D, Chen et al.",
      outcome_of(rise <= kRises),
      fmt::format("largest rise {:.1e} of the fall; Lion-K with decoupled decay by the H of Chen et al. for every K", rise)};
}

// H over time on one problem from one start, from 1 at the start to 0 for f at its least.
report::Figure h_figure(std::uint64_t seed) {
  report::LineChart chart = new_chart("H along one trajectory of each system with CWD", "time", "H, over H at the start",
                                      "H over time on one degenerate quadratic for every system of Table 1 with CWD.");
  Random random(seed + 2);
  const Problem problem = random_quadratic(random, 4, 3);
  std::size_t colour = 0, rising = 0;
  for (System system : systems(FlowDecay::cautious)) {
    const Convex k = system.k.k;
    if (system.flow == Flow::lion_k && (k == Convex::lp || k == Convex::relativistic || k == Convex::topk)) continue;
    system.rows = system.cols = 2;
    FlowOptions options = usual_options(6);
    options.most_events = 3000;
    const Watched watched = watch(system, problem, problem.start, options);
    rising += watched.rise > kRises;
    report::ChartSeries series = new_series(name_of(system), colour++);
    for (std::size_t n = 0; n < watched.h.size(); ++n) {
      series.x.push_back(watched.trajectory.points[n].t);
      series.y.push_back(watched.h[n] / watched.h.front());
    }
    chart.series.push_back(std::move(series));
  }
  return {"dynamics_h", chart,
          fmt::format("Same problem and start, λ = 0.5. H rises on {} of the {} lines; the problem's least f is 0.", rising,
                      chart.series.size())};
}

}  // namespace

Section table1_section(const DynamicsOptions& options, const Progress& progress) {
  Section section =
      new_section("Table 1: H along trajectories",
                  "Random quadratics (strongly convex, and degenerate with a plane of minimisers), quadratics with waves and "
                  "ellipsoids, 2 to 6 variables, random starts, λ and rates. The flows are solved as differential inclusions; "
                  "H is watched at every step, its analytic derivative compared with differences of H away from switches.",
                  options);
  report::Table table{.name = "dynamics_table1",
                      .title = "Every system on random problems",
                      .head = {"system", "trajectories", "largest rise over fall", "dH/dt differs: median", "most",
                               "|g| at the end", "|m| at the end", "slid", "verdict"},
                      .rows = {},
                      .note =
                          "|g| and |m|: medians, over |g| at the start. Systems with a norm K end at time 12, the others at "
                          "30, or where the solver's limit of events is reached: they switch ever faster as m shrinks."};
  std::vector<SystemRow> cautious, others;
  for (const FlowDecay decay : {FlowDecay::cautious, FlowDecay::none, FlowDecay::decoupled}) {
    for (const System& system : systems(decay)) {
      progress(static_cast<double>(table.rows.size()) / 33, name_of(system));
      SystemRow row = run_system(system, options);
      table.rows.push_back(cells(row));
      (decay == FlowDecay::cautious ? cautious : others).push_back(std::move(row));
    }
  }
  for (const SystemRow& row : cautious) section.claims.push_back(table1_claim(row));
  section.claims.push_back(vanishing_claim(cautious));
  section.claims.push_back(comparison_claim(others));
  section.figures.push_back(h_figure(options.seed));
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace cautious::lab
