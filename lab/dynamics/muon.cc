// Where the appendix assumes sgn(grad K(m)) = sgn(m) entrywise: it fails for the nuclear norm (Muon), and entries of grad K(m)
// are 0 for threshold and topk. How often, and what it does to H.
#include <algorithm>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/momenta.h"
#include "lab/dynamics/system.h"

namespace cautious::lab {
namespace {

// Along flows: entries whose signs differ, H, and the largest dH/dt over K(m).
struct FlowSigns {
  std::size_t trajectories = 0, rising = 0;
  std::size_t mutated = 0;  // on which H with half of its term of m and x rises; not counted for the nuclear norm
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
    if (k != Convex::nuclear) found.mutated += mutated_rise(system, problem, watched.trajectory, {.cross = 0.5}) > kRises;
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

// The same for several seeds.
struct Flows {
  std::vector<FlowSigns> runs;

  const FlowSigns& own() const { return runs.front(); }
  std::vector<std::size_t> rising() const {
    std::vector<std::size_t> counts;
    for (const FlowSigns& run : runs) counts.push_back(run.rising);
    return counts;
  }
  double rise() const { return std::ranges::max_element(runs, {}, &FlowSigns::rise)->rise; }
  bool is_any_rising() const {
    return std::ranges::any_of(runs, [](const FlowSigns& run) { return run.rising > 0; });
  }
};

std::string on(const Flows& found, const DynamicsOptions& options) {
  return fmt::format("H rises on {}, at most by {:.1e} of its fall",
                     over_seeds(found.rising(), found.own().trajectories, options), found.rise());
}

Mutation without_half(const Flows& top, const Flows& threshold) {
  return {"H with half of the term of m and x",
          fmt::format("rises on {} of {} trajectories for topk, {} of {} for threshold", top.own().mutated,
                      top.own().trajectories, threshold.own().mutated, threshold.own().trajectories),
          top.own().mutated > 0 && threshold.own().mutated > 0};
}

report::Table signs_table(Random& random, const Progress& progress, Signs& gaussian, Signs& flat) {
  report::Table table{
      .name = "dynamics_muon_signs",
      .title = "Entries of Muon's direction against the momentum, random matrices",
      .head = {"matrix", "matrices", "Gaussian: entries of opposite sign", "rank one + 3%: entries of opposite sign"},
      .rows = {},
      .note = "For large Gaussian square matrices the fraction tends to arccos(8/3π)/π = 17.7%; low rank is the worse case."};
  for (const std::int64_t n : {2, 3, 4, 8, 16, 32, 64}) {
    progress(0.1 * std::log2(static_cast<double>(n)) / 6, "Muon signs");
    const auto count = static_cast<std::size_t>(std::max<std::int64_t>(4, 4000 / (n * n)));
    std::vector<Matrix> full, low;
    for (std::size_t k = 0; k < count; ++k) {
      full.emplace_back(n, n);
      for (double& entry : full.back().reshaped()) entry = random.normal();
      low.push_back(near_rank_one(random, n, 0.03));
    }
    gaussian = signs_of(full), flat = signs_of(low);  // those of the last size are kept
    table.rows.push_back({fmt::format("{0} x {0}", n), std::to_string(count), fmt::format("{:.1f}%", 100 * gaussian.differ),
                          fmt::format("{:.1f}%", 100 * flat.differ)});
  }
  return table;
}

}  // namespace

Section muon_section(const DynamicsOptions& options, const Progress& progress) {
  Section section = new_section("Muon and the assumption sgn(∇K(m)) = sgn(m)",
                                "The appendix assumes it for every entry and says that it holds for every example of K by Chen "
                                "et al. For the nuclear norm (Muon) it does not, and threshold and topk have entries with "
                                "∇K(m) = 0 though m is not 0. Measured on random matrices and along flows of 2 x 2 and 2 x 3 "
                                "matrices, with the mask by m of the continuous system and with the mask by ∇K(m) of "
                                "algorithms 3 and 5. Counts are ranges over four seeds.",
                                options);
  Random random(options.seed + 21);
  Signs gaussian, flat;
  section.tables.push_back(signs_table(random, progress, gaussian, flat));

  report::Table flows{.name = "dynamics_muon_flows",
                      .title = "Lion-K + CWD with K outside the assumption",
                      .head = {"K", "mask by", "λ", "entries of opposite sign", "with rising H", "largest rise over fall",
                               "largest dH/dt over K(m)"},
                      .rows = {},
                      .note = "Entries of opposite sign include those with ∇K(m) = 0. Counts are ranges over four seeds."};
  constexpr Strength kWeak{0.2, 1}, kStrong{5, 20}, kFromZero{20, 100, true};
  const auto run = [&](Convex k, bool by_momentum, Strength lambda) {
    progress(0.1 + 0.9 * static_cast<double>(flows.rows.size()) / 9, "Muon flows");
    Flows found;
    for (std::uint64_t seed = options.seed; seed < options.seed + kSeeds; ++seed) {
      found.runs.push_back(flow_signs(k, by_momentum, lambda, seed + 22, (lambda.from_zero ? 4 : 1) * options.trials));
    }
    flows.rows.push_back({std::string(cautious::name_of(k)), by_momentum ? "m" : "∇K(m)",
                          fmt::format("{:g} to {:g}{}", lambda.low, lambda.high, lambda.from_zero ? ", from x = 0" : ""),
                          fmt::format("{:.1f}%", 100 * found.own().differ), range_of(found.rising(), found.own().trajectories),
                          fmt::format("{:.1e}", found.rise()), fmt::format("{:.2g}", found.own().growth)});
    return found;
  };
  const Flows weak = run(Convex::nuclear, true, kWeak), weak_u = run(Convex::nuclear, false, kWeak);
  const Flows strong = run(Convex::nuclear, true, kStrong), strong_u = run(Convex::nuclear, false, kStrong);
  const Flows zero = run(Convex::nuclear, true, kFromZero);
  const Flows top = run(Convex::topk, true, kWeak), top_u = run(Convex::topk, false, kWeak);
  const Flows threshold = run(Convex::threshold, true, kWeak), threshold_u = run(Convex::threshold, false, kWeak);
  section.tables.push_back(flows);

  section.claims.push_back(
      {"sgn(∇K(m)) = sgn(m) holds for every entry", "appendix D, assumption on K", outcome_of(gaussian.differ == 0),
       fmt::format(
           "for Muon it fails for {:.1f}% of the entries of random 64 x 64 matrices, for {:.1f}% where they are of rank "
           "one but for 3%, and for {:.1f}% along 2 x 2 and 2 x 3 flows; for topk and threshold ∇K(m) = 0 in {:.0f}% "
           "and {:.0f}% of the entries along flows",
           100 * gaussian.differ, 100 * flat.differ, 100 * weak.own().differ, 100 * top.own().differ,
           100 * threshold.own().differ),
       "Muon: m = [3 1; 7 3] is O P with O = [1 -1; 1 1]/√2 orthogonal and P = [10 4; 4 2]/√2 positive definite, so ∇K(m) = O: "
       "its entry -1/√2 stands where m has 1. Threshold: K = Σ max(|z| - e, 0) has ∇K(m) = 0 wherever |m| < e"});
  section.claims.push_back({"H of Muon + CWD falls along trajectories of small matrices", "Table 1, K the nuclear norm",
                            outcome_of(!weak.is_any_rising() && !strong.is_any_rising() && !zero.is_any_rising()),
                            fmt::format("mask by m: λ ≤ 1: {}; λ from 5 to 20: {}; λ from 20 to 100 and x = 0 at the start: {}",
                                        on(weak, options), on(strong, options), on(zero, options))});
  section.claims.push_back({"H is not meant for Muon's own mask by ∇K(m) (algorithm 5)", "", Outcome::noted,
                            fmt::format("λ ≤ 1: {}; λ from 5 to 20: {}", on(weak_u, options), on(strong_u, options))});
  section.claims.push_back({"With K = topk and threshold H falls although ∇K(m) has zero entries",
                            "appendix D",
                            outcome_of(!top.is_any_rising() && !threshold.is_any_rising()),
                            fmt::format("topk: {}; threshold: {}; ⟨∇K(m), m⟩ ≥ 0 per entry is what the proof needs",
                                        on(top, options), on(threshold, options)),
                            "",
                            {without_half(top, threshold)}});
  section.claims.push_back({"With the mask by ∇K(m), entries with ∇K(m) = 0 always decay, which H is not meant for", "",
                            Outcome::noted,
                            fmt::format("topk: {}; threshold: {}", on(top_u, options), on(threshold_u, options))});
  return section;
}

}  // namespace cautious::lab
