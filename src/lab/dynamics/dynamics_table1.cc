// Table 1: every system with CWD, with decoupled decay and without, on random problems from random starts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/dynamics/dynamics_sections.h"
#include "lab/dynamics/dynamics_watch.h"
#include "lab/dynamics/random_problem.h"

namespace cautious::lab {
namespace {

constexpr double kRises = 1e-6;     // of the fall of H: above what the solver's tolerance explains
constexpr double kMismatch = 1e-3;  // of analytic and numerical dH/dt, relative
constexpr double kVanished = 0.05;  // of the gradient at the start: the median trajectory's |g| and |m| at its end

struct SystemRow {
  System system;
  std::size_t trajectories = 0, slid = 0;
  double rise = 0;
  std::vector<double> mismatches, gradients, momenta;
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

SystemRow run_system(const System& kind, const DynamicsOptions& options) {
  SystemRow row{.system = kind, .mismatches = {}, .gradients = {}, .momenta = {}};
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
  return {
      fmt::format("{}: H of Table 1 never rises, and dH/dt is the appendix's", name_of(row.system)), "Table 1, appendix D",
      outcome(falls(row) && median(row.mismatches) < kMismatch),
      fmt::format("largest rise {:.1e} of the fall on {} trajectories; analytic and numerical dH/dt differ by {:.0e} in the "
                  "median and {:.0e} at most, at {} points",
                  row.rise, row.trajectories, median(row.mismatches), worst(row.mismatches), row.mismatches.size())};
}

Claim vanishing_claim(const std::vector<SystemRow>& rows) {
  double gradient = 0, momentum = 0, left = 0;
  for (const SystemRow& row : rows) {
    if (row.system.flow == Flow::lion_k && row.system.k.k == Convex::threshold) {
      left = median(row.gradients);
      continue;
    }
    gradient = std::max(gradient, median(row.gradients));
    momentum = std::max(momentum, median(row.momenta));
  }
  return {"Momentum and gradient vanish with CWD", "section 3.1", outcome(gradient < kVanished && momentum < kVanished),
          fmt::format(
              "median |g| and |m| at the end are at most {:.1e} and {:.1e} of |g| at the start for every system but threshold, "
              "which rests with |m| ≤ e: {:.1e}",
              gradient, momentum, left)};
}

Claim comparison_claim(const std::vector<SystemRow>& rows) {
  double rise = 0;
  for (const SystemRow& row : rows) {
    if (row.system.flow != Flow::adam || row.system.decay == FlowDecay::none) rise = std::max(rise, row.rise);
  }
  return {
      "Without decay and with decoupled decay, AdamW apart, H falls too", "appendix D, Chen et al.", outcome(rise <= kRises),
      fmt::format("largest rise {:.1e} of the fall; Lion-K with decoupled decay by the H of Chen et al. for every K", rise)};
}

// H over time on one problem from one start, from 1 at the start to 0 for f at its least.
Figure h_figure(std::uint64_t seed) {
  LineChart chart = new_chart("H along one trajectory of each system with CWD", "time", "H, over H at the start",
                              "H over time on one degenerate quadratic for every system of Table 1 with CWD; all lines fall.");
  Random random(seed + 2);
  const Problem problem = random_quadratic(random, 4, 3);
  std::size_t colour = 0;
  for (System system : systems(FlowDecay::cautious)) {
    const Convex k = system.k.k;
    if (system.flow == Flow::lion_k && (k == Convex::lp || k == Convex::relativistic || k == Convex::topk)) continue;
    system.rows = system.cols = 2;
    FlowOptions options = usual_options(6);
    options.most_events = 3000;
    const Watched watched = watch(system, problem, problem.start, options);
    ChartSeries series = new_series(name_of(system), colour++);
    for (std::size_t n = 0; n < watched.h.size(); ++n) {
      series.x.push_back(watched.trajectory.points[n].t);
      series.y.push_back(watched.h[n] / watched.h.front());
    }
    chart.series.push_back(std::move(series));
  }
  return {"dynamics_h", chart, "Same problem and start, λ = 0.5. Every H falls; the problem's least f is 0."};
}

}  // namespace

Section table1_section(const DynamicsOptions& options, const Progress& progress) {
  Section section = new_section(
      "Table 1: H falls along every trajectory",
      "Random quadratics (strongly convex, and degenerate with a plane of minimisers), quadratics with waves and ellipsoids, 2 "
      "to 6 "
      "variables, random starts, λ and rates. The flows are solved as differential inclusions; H is watched at every step, its "
      "analytic derivative compared with differences of H away from switches.");
  Table table{
      .name = "dynamics_table1",
      .title = "Every system on random problems",
      .head = {"system", "trajectories", "largest rise over fall", "dH/dt differs: median", "most", "|g| at the end",
               "|m| at the end", "slid", "verdict"},
      .rows = {},
      .note =
          "|g| and |m|: medians, over |g| at the start. Systems with a norm K end at time 12, the others at 30, or where the "
          "solver's limit of events is reached: they turn ever faster as m shrinks."};
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
