// Where the appendix assumes sgn(grad K(m)) = sgn(m) entrywise: it fails for the nuclear norm (Muon), and entries of grad K(m)
// are 0 for threshold and topk. How often, and what it does to H.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>

#include <cautious/polar.h>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/system.h"

namespace cautious::lab {
namespace {

// Random Gaussian n x n matrices m with u = grad K(m).
struct Signs {
  double differ = 0;                                       // part of the entries with u m < 0
  double ratio = std::numeric_limits<double>::infinity();  // least |m|_* over the sum of |u m| there
};

Signs signs_of(Random& random, std::int64_t n, std::size_t matrices) {
  const auto size = static_cast<std::size_t>(n * n);
  Signs signs;
  Point m(size), u;
  for (std::size_t number = 0; number < matrices; ++number) {
    std::generate(m.begin(), m.end(), [&] { return random.normal(); });
    u = m;
    polar(u, n, n, {.schedule = NewtonSchulz::exact}, 1);
    double against = 0, norm = 0;
    for (std::size_t i = 0; i < size; ++i) {
      norm += u[i] * m[i];
      if (u[i] * m[i] < 0) against -= u[i] * m[i], signs.differ += 1;
    }
    if (against > 0) signs.ratio = std::min(signs.ratio, norm / against);
  }
  signs.differ /= static_cast<double>(size * matrices);
  return signs;
}

// Along flows: entries whose signs differ, H, and the largest dH/dt over K(m).
struct FlowSigns {
  std::size_t trajectories = 0, rising = 0;
  double rise = 0, growth = -std::numeric_limits<double>::infinity();
  double differ = 0;
};

struct Strength {
  double low, high;  // of lambda
  bool from_zero = false;
};

FlowSigns flow_signs(Convex k, bool by_momentum, Strength lambda, std::uint64_t seed, std::size_t count) {
  Random random(seed);
  FlowSigns found{.trajectories = count};
  double seen = 0, differ = 0;
  for (std::size_t n = 0; n < count; ++n) {
    System system{.flow = Flow::lion_k,
                  .lambda = random.uniform(lambda.low, lambda.high),
                  .alpha = 1,
                  .gamma = random.uniform(0.5, 1.5),
                  .k = {.k = k, .e = 0.2, .fraction = 0.5},
                  .rows = 2,
                  .cols = n % 2 == 0 ? 2 : 3,
                  .mask_by_momentum = by_momentum};
    const auto d = static_cast<std::size_t>(system.rows * system.cols);
    const Problem problem = random_problem(random, n, d);
    FlowOptions options = usual_options(lambda.from_zero ? 2 : 4);
    options.may_slide = false;
    options.most_steps = 6000;
    const Watched watched = watch(system, problem, lambda.from_zero ? Point(d, 0) : problem.start, options);
    found.rise = std::max(found.rise, watched.rise);
    found.rising += watched.rise > kRises;
    Point u(d);
    for (const FlowPoint& point : watched.trajectory.points) {
      const PointView m = parts(system, point.z).m;
      const double size = k_value(system, m);
      if (size < 1e-6) continue;
      found.growth = std::max(found.growth, lyapunov_rate(system, problem, point.t, point.z, point.side) / size);
      k_gradient(system, m, point.side, u);
      for (std::size_t i = 0; i < d; ++i) differ += sign(u[i]) != sign(m[i]);
      seen += static_cast<double>(d);
    }
  }
  found.differ = seen > 0 ? differ / seen : 0;
  return found;
}

// A state with dH/dt > 0: x is tiny, of the sign that has the mask act exactly where u m < 0. Then
// dH/dt = -gamma |m|_* + lambda (sum of |u m| there).
double pointwise_rate(Random& random, double lambda) {
  const System system{
      .flow = Flow::lion_k, .lambda = lambda, .alpha = 1, .gamma = 1, .k = {.k = Convex::nuclear}, .rows = 3, .cols = 3};
  const Problem problem = random_quadratic(random, 9, 9);
  Point z(18), u(9), side(9);
  double most = -std::numeric_limits<double>::infinity();
  for (int trial = 0; trial < 200; ++trial) {
    std::generate(z.begin() + 9, z.end(), [&] { return random.normal(); });
    const PointView m = PointView(z).subspan(9);
    k_gradient(system, m, {}, u);
    for (std::size_t i = 0; i < 9; ++i) {
      side[i] = sign(m[i]);
      z[i] = 1e-6 * (u[i] * m[i] < 0 ? -side[i] : side[i]);
    }
    most = std::max(most, lyapunov_rate(system, problem, 1, z, side) / k_value(system, m));
  }
  return most;
}

std::string on(const FlowSigns& found) {
  return fmt::format("H rises on {} of {} trajectories, at most by {:.1e} of its fall", found.rising, found.trajectories,
                     found.rise);
}

}  // namespace

Section muon_section(const DynamicsOptions& options, const Progress& progress) {
  Section section = new_section("Muon and the assumption sgn(∇K(m)) = sgn(m)",
                                "The appendix assumes it for every entry and says that it holds for every example of K by Chen "
                                "et al. For the nuclear norm (Muon) it does not, and threshold and topk have entries with "
                                "∇K(m) = 0. Measured on random Gaussian matrices and along flows of 2 x 2 and 2 x 3 matrices, "
                                "with the mask by m of the continuous system and with the mask by ∇K(m) of algorithms 3 and 5.",
                                options);
  Random random(options.seed + 21);
  report::Table sizes{.name = "dynamics_muon_signs",
                      .title = "Entries of Muon's direction against the momentum, random Gaussian matrices",
                      .head = {"matrix", "matrices", "entries of opposite sign", "least λ/γ for dH/dt > 0"},
                      .rows = {},
                      .note =
                          "For large square matrices the fraction tends to arccos(8/3π)/π = 17.7%. Last column: the least "
                          "|m|_* over the sum of |∇K(m) m| over those entries; beyond it some x near 0 has dH/dt > 0."};
  double differ_at_64 = 0, least_ratio = std::numeric_limits<double>::infinity();
  for (const std::int64_t n : {2, 3, 4, 8, 16, 32, 64}) {
    progress(0.2 * std::log2(static_cast<double>(n)) / 6, "Muon signs");
    const std::size_t matrices = static_cast<std::size_t>(std::max<std::int64_t>(4, 4000 / (n * n)));
    const Signs signs = signs_of(random, n, matrices);
    sizes.rows.push_back({fmt::format("{0} x {0}", n), std::to_string(matrices), fmt::format("{:.1f}%", 100 * signs.differ),
                          fmt::format("{:.1f}", signs.ratio)});
    differ_at_64 = signs.differ;  // the last
    least_ratio = std::min(least_ratio, signs.ratio);
  }
  section.tables.push_back(sizes);

  report::Table flows{.name = "dynamics_muon_flows",
                      .title = "Lion-K + CWD with K outside the assumption",
                      .head = {"K", "mask by", "λ", "entries of opposite sign", "with rising H", "largest rise over fall",
                               "largest dH/dt over K(m)"},
                      .rows = {},
                      .note = "Entries of opposite sign include those with ∇K(m) = 0."};
  constexpr Strength kWeak{0.2, 1}, kStrong{5, 20}, kFromZero{20, 100, true};
  const auto run = [&](Convex k, bool by_momentum, Strength lambda) {
    progress(0.2 + 0.8 * static_cast<double>(flows.rows.size()) / 10, "Muon flows");
    const FlowSigns found = flow_signs(k, by_momentum, lambda, options.seed + 22, (lambda.from_zero ? 4 : 1) * options.trials);
    flows.rows.push_back({std::string(cautious::name_of(k)), by_momentum ? "m" : "∇K(m)",
                          fmt::format("{:g} to {:g}{}", lambda.low, lambda.high, lambda.from_zero ? ", from x = 0" : ""),
                          fmt::format("{:.1f}%", 100 * found.differ), fmt::format("{} of {}", found.rising, found.trajectories),
                          fmt::format("{:.1e}", found.rise), fmt::format("{:.2g}", found.growth)});
    return found;
  };
  const FlowSigns weak = run(Convex::nuclear, true, kWeak), weak_u = run(Convex::nuclear, false, kWeak);
  const FlowSigns strong = run(Convex::nuclear, true, kStrong), strong_u = run(Convex::nuclear, false, kStrong);
  const FlowSigns zero = run(Convex::nuclear, true, kFromZero);
  const FlowSigns top = run(Convex::topk, true, kWeak), top_u = run(Convex::topk, false, kWeak);
  const FlowSigns threshold = run(Convex::threshold, true, kWeak), threshold_u = run(Convex::threshold, false, kWeak);
  section.tables.push_back(flows);

  section.claims.push_back(
      {"sgn(∇K(m)) = sgn(m) holds for every entry", "appendix D, assumption on K", outcome_of(differ_at_64 == 0),
       fmt::format("for Muon it fails for {:.1f}% of the entries of random 64 x 64 matrices and {:.1f}% along 2 x 2 and 2 x 3 "
                   "flows; for topk and threshold ∇K(m) = 0 in {:.0f}% and {:.0f}% of the entries along flows",
                   100 * differ_at_64, 100 * weak.differ, 100 * top.differ, 100 * threshold.differ)});
  const double rate = pointwise_rate(random, 100);
  section.claims.push_back(
      {"For Muon + CWD dH/dt ≤ 0 at every state", "Table 1, K the nuclear norm", outcome_of(rate <= 0),
       fmt::format(
           "with λ = 100 γ the 3 x 3 state found worst has dH/dt = {:+.2g} γ K(m); the least λ/γ found for dH/dt > 0 is {:.1f}",
           rate, least_ratio)});
  section.claims.push_back({"H of Muon + CWD falls along trajectories", "Table 1, K the nuclear norm",
                            outcome_of(weak.rising + strong.rising + zero.rising == 0),
                            fmt::format("mask by m: λ ≤ 1: {}; λ from 5 to 20: {}; λ from 20 to 100 and x = 0 at the start: {}",
                                        on(weak), on(strong), on(zero))});
  section.claims.push_back({"H is not meant for Muon's own mask by ∇K(m) (algorithm 5)", "", Outcome::noted,
                            fmt::format("λ ≤ 1: {}; λ from 5 to 20: {}", on(weak_u), on(strong_u))});
  section.claims.push_back(
      {"With K = topk and threshold H falls although ∇K(m) has zero entries", "appendix D",
       outcome_of(top.rising + threshold.rising == 0),
       fmt::format("topk: {}; threshold: {}; ⟨∇K(m), m⟩ ≥ 0 per entry is what the proof needs", on(top), on(threshold))});
  section.claims.push_back({"With the mask by ∇K(m), entries with ∇K(m) = 0 always decay, which H is not meant for", "",
                            Outcome::noted, fmt::format("topk: {}; threshold: {}", on(top_u), on(threshold_u))});
  return section;
}

}  // namespace cautious::lab
