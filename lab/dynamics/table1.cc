// Table 1: every system with CWD, with decoupled decay and without, on random problems from random starts.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/dynamics/convergence.h"
#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/momenta.h"
#include "lab/dynamics/system.h"

namespace cautious::lab {
namespace {

constexpr double kMismatch = 1e-3;  // of analytic and numerical dH/dt, relative

struct SystemRow {
  System system;
  std::size_t trajectories = 0, slid = 0;
  std::size_t large = 0, large_rising = 0;  // of the trajectories: those of large matrices, and on how many of them H rises
  double rise = 0;
  RateCheck rate;
  std::size_t mutated = 0;  // trajectories on which a mutated H rises, or H with a mutated mask
  double mutated_rise = 0;  // the most
  std::vector<double> gradients, momenta;
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

bool is_muon(const System& system) { return system.flow == Flow::lion_k && system.k.k == Convex::nuclear; }

// A start where K*(lambda x) is finite: |lambda x|_1 < 1 is inside the unit ball of every dual norm.
Point inside(Point x, double lambda) {
  double sum = 0;
  for (const double entry : x) sum += std::abs(entry);
  for (double& entry : x) entry *= 0.9 / std::max(lambda * sum, 1.0);
  return x;
}

FlowOptions options_for(const System& system) {
  FlowOptions options = usual_options(time_for(system));
  options.most_events = 8000;
  options.most_steps = 16000;
  return options;
}

// H with half of the term of m and x; without decay, where it has none, with twice that of m. H of SGD is f: there the mask is
// reversed.
double mutant_rise(const System& system, const Problem& problem, PointView start, const Trajectory& trajectory) {
  if (system.flow != Flow::sgd) {
    const bool decays = system.decay != FlowDecay::none;
    return mutated_rise(system, problem, trajectory, {.momentum = decays ? 1.0 : 2.0, .cross = decays ? 0.5 : 1.0});
  }
  if (system.decay != FlowDecay::cautious) return 0;
  System mutant = system;
  mutant.reversed = true;
  return watch(mutant, problem, start, options_for(mutant)).rise;
}

SystemRow run_system(const System& kind, const DynamicsOptions& options) {
  SystemRow row{.system = kind, .rate = {}, .gradients = {}, .momenta = {}, .fadings = {}};
  Random random(options.seed + 1);  // the same problems for all
  for (std::size_t n = 0; n < options.trials; ++n) {
    System system = random_system(random, kind);
    system.rows = 2, system.cols = n % 2 == 0 ? 2 : 3;
    const std::size_t d = is_muon(system) ? static_cast<std::size_t>(2 * system.cols) : 2 + random.below(5);
    const Problem problem = random_problem(random, n, d);
    const bool boxed = system.flow == Flow::lion_k && system.decay == FlowDecay::decoupled;
    const Point start = boxed ? inside(problem.start, system.lambda) : problem.start;
    const Watched watched = watch(system, problem, start, options_for(system));
    ++row.trajectories;
    row.rise = std::max(row.rise, watched.rise);
    row.gradients.push_back(watched.gradient);
    row.momenta.push_back(watched.momentum);
    if (system.decay == FlowDecay::cautious) {
      row.fadings.push_back(follow_on(system, problem, watched.trajectory, options_for(system)));
    }
    const auto& points = watched.trajectory.points;
    row.slid += std::any_of(points.begin(), points.end(), [](const FlowPoint& point) {
      return std::find(point.sliding.begin(), point.sliding.end(), true) != point.sliding.end();
    });
    row.rate.include(check_rate(system, problem, watched.trajectory));
    const double mutant = mutant_rise(system, problem, start, watched.trajectory);
    row.mutated += mutant > kRises;
    row.mutated_rise = std::max(row.mutated_rise, mutant);
  }
  return row;
}

// Muon on large matrices of about rank one, at the corner of what random_system() draws.
void add_large(SystemRow& row, const DynamicsOptions& options) {
  System system = row.system;
  system.lambda = kMostLambda, system.gamma = kLeastGamma;
  system.rows = system.cols = 64;
  Random random(options.seed + 3);
  for (std::size_t n = 0; n < 1 + options.trials / 4; ++n) {
    const LargeFlow flow = large_flow(system, near_rank_one(random, system.rows, 0.03), 0.5, 25);
    ++row.trajectories;
    ++row.large;
    row.large_rising += flow.rise > kRises;
    row.rise = std::max(row.rise, flow.rise);
  }
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
          fmt::format("{:.0e}", median(row.rate.mismatches)),
          fmt::format("{:.0e}", worst(row.rate.mismatches)),
          std::to_string(row.rate.mismatches.size()),
          std::to_string(row.rate.sliding + row.rate.unclean),
          fmt::format("{:.1e}", median(row.gradients)),
          row.system.flow == Flow::sgd ? "-" : fmt::format("{:.1e}", median(row.momenta)),
          std::to_string(row.slid),
          falls(row) ? "H falls" : "H rises"};
}

std::vector<Mutation> mutations_of(const SystemRow& row) {
  const std::string which =
      row.system.flow == Flow::sgd ? "mask reversed: decay where gx < 0" : "H with half of the term of m and x";
  return {{which,
           fmt::format("H rises on {} of {} trajectories, at most by {:.1e} of its fall", row.mutated, row.trajectories,
                       row.mutated_rise),
           row.mutated > 0},
          {"dH/dt with half of λ",
           fmt::format("differs from the numerical one by {:.0e} at 99% of the points", high_quantile(row.rate.mutated)),
           high_quantile(row.rate.mutated) >= kMismatch}};
}

Claim table1_claim(const SystemRow& row) {
  Claim claim{
      fmt::format("{}, λ from {:g} to {:g}: H of Table 1 never rises, and dH/dt is the appendix's", name_of(row.system),
                  kLeastLambda, kMostLambda),
      "Table 1, appendix D",
      falls(row) && row.rate.mismatches.empty() ? Outcome::undecided
                                                : outcome_of(falls(row) && high_quantile(row.rate.mismatches) < kMismatch),
      fmt::format("largest rise {:.1e} of the fall on {} trajectories; analytic and numerical dH/dt differ by {:.0e} in "
                  "the median, {:.0e} at 99% of the points and {:.0e} at most, at {} points; left out: {} where it "
                  "slides, {} with a switch or rounding too near",
                  row.rise, row.trajectories, median(row.rate.mismatches), high_quantile(row.rate.mismatches),
                  worst(row.rate.mismatches), row.rate.mismatches.size(), row.rate.sliding, row.rate.unclean)};
  if (row.large > 0) {
    claim.evidence += fmt::format(
        "; H rises on {} of the {} of 64 x 64 matrices of about rank one, on none of 2 x 2 and 2 x 3, "
        "where λ/γ < 8 makes it a theorem that it cannot",
        row.large_rising, row.large);
    claim.by_hand =
        "m = [3 1; 7 3] has O = [1 -1; 1 1]/√2; with x tiny and only the second entry's mask on dH/dt = (λ - 12γ)/√2. The "
        "least λ/γ falls with the size, to 2/(√64 - 1) = 0.29 for 64 x 64, which is within the range of λ here";
  }
  if (claim.outcome == Outcome::holds) claim.mutations = mutations_of(row);
  return claim;
}

// With SGDM and decoupled decay in place of CWD the gradient tends to that of a regularised problem.
Mutation control_mutation(const DynamicsOptions& options) {
  const FadeControl found = fade_control(options.seed + 4, 3 * options.trials, 12);
  return {"SGDM with decoupled decay in place of CWD",
          fmt::format("of {} trajectories {} vanish in truth, {} are called so, {} of them wrongly; {} stay, {} are undecided",
                      found.count.trajectories, found.truly, found.count.vanished, found.wrongly, found.count.stays,
                      found.count.undecided),
          found.count.stays > 0 && found.wrongly == 0};
}

Claim vanishing_claim(const std::vector<SystemRow>& rows, const DynamicsOptions& options) {
  FadeCount count;
  double threshold = 0;
  for (const SystemRow& row : rows) {
    for (const Fading& fading : row.fadings) {
      if (row.system.flow == Flow::lion_k && row.system.k.k == Convex::threshold) {
        threshold = std::max(threshold, fading.left);
      } else {
        count.add(fading);
      }
    }
  }
  return {"Momentum and gradient vanish with CWD, except for K = threshold",
          "section 3.1",
          count.stays > 0       ? Outcome::fails
          : count.undecided > 0 ? Outcome::undecided
                                : Outcome::holds,
          fmt::format("largest |g| + |m| in the last quarter of the time, over |g| at the start: below {:g} on {} of {} "
                      "trajectories, {} of them followed on for it; {} no longer fall and {} are undecided{}; threshold stops "
                      "with |m| ≤ e: {:.2g} of |g| at the start",
                      kVanished, count.vanished, count.trajectories, count.longer, count.stays, count.undecided,
                      count.left > 0 ? fmt::format(", at most {:.2g}", count.left) : "", threshold),
          "",
          {control_mutation(options)}};
}

Claim comparison_claim(const std::vector<SystemRow>& rows) {
  double rise = 0;
  std::size_t noticed = 0, mutants = 0;
  for (const SystemRow& row : rows) {
    if (row.system.flow == Flow::adam && row.system.decay == FlowDecay::decoupled) continue;
    rise = std::max(rise, row.rise);
    if (row.system.flow == Flow::sgd) continue;
    ++mutants;
    noticed += row.mutated > 0;
  }
  return {"Without decay, and with decoupled decay except for AdamW, H falls too",
          "appendix D, Chen et al.",
          outcome_of(rise <= kRises),
          fmt::format("largest rise {:.1e} of the fall; Lion-K with decoupled decay by the H of Chen et al. for every K", rise),
          "",
          {{"H with half of the term of m and x, without decay with twice that of m",
            fmt::format("rises on some trajectory for {} of the {} systems with momentum", noticed, mutants), noticed > 0}}};
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
                      .head = {"system", "trajectories", "largest rise over fall", "dH/dt differs: median", "most", "points",
                               "left out", "|g| at the end", "|m| at the end", "slid", "verdict"},
                      .rows = {},
                      .note =
                          "Left out: points where it slides, or with a switch or rounding too near. |g| and |m|: medians, "
                          "over |g| at the start. Systems with a norm K end at time 12, the others at 30, or where the "
                          "solver's limit of events is reached: they switch ever faster as m shrinks."};
  std::vector<SystemRow> cautious, others;
  for (const FlowDecay decay : {FlowDecay::cautious, FlowDecay::none, FlowDecay::decoupled}) {
    for (const System& system : systems(decay)) {
      progress(static_cast<double>(table.rows.size()) / 33, name_of(system));
      SystemRow row = run_system(system, options);
      if (decay == FlowDecay::cautious && is_muon(system)) add_large(row, options);
      table.rows.push_back(cells(row));
      (decay == FlowDecay::cautious ? cautious : others).push_back(std::move(row));
    }
  }
  for (const SystemRow& row : cautious) section.claims.push_back(table1_claim(row));
  section.claims.push_back(vanishing_claim(cautious, options));
  section.claims.push_back(comparison_claim(others));
  section.figures.push_back(h_figure(options.seed));
  section.tables.push_back(std::move(table));
  return section;
}

}  // namespace cautious::lab
