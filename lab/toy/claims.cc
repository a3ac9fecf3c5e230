// What the paper says of each arm, and the same check on an arm with something broken.
#include <cmath>

#include <fmt/format.h>

#include "lab/toy/toy.h"

namespace cautious::lab {
namespace {

// The figures show Adam's three arms; for others and elsewhere it is the section's claim.
std::string source_of(const ToyStudy& study, const ToyRun& run, const char* section) {
  const std::string& name = study.problem.name;
  if (!std::holds_alternative<Adam>(run.arm.recipe.rule) || !study.problem.file.empty()) return section;
  return name == "circle" || name == "parabola" ? "Figure 3" : name == "surface" ? "Figure 2" : section;
}

// What has not come to rest, or where no stationary point was found, decides nothing unless the arm is there already.
Outcome decided(const ToyRun& run, bool holds) {
  if (holds) return Outcome::holds;
  return run.at_rest && run.to_minimisers ? Outcome::fails : Outcome::undecided;
}

bool on_minimisers(const ToyRun& run) { return run.minimum && run.to_minimisers && *run.to_minimisers <= kOn; }

std::string off_minimisers(const ToyRun& run) {
  if (!run.to_minimisers) return "no stationary point was found near it, or not one with a clear tangent";
  const char* what = run.minimum ? "minimiser" : "stationary point, a saddle or maximum";
  if (*run.to_minimisers > kOn) return fmt::format("{:.2g} from the nearest {}", *run.to_minimisers, what);
  if (!run.minimum) return fmt::format("at a {}", what);
  return fmt::format("on the minimisers (distance {:.1e})", *run.to_minimisers);
}

// The rank of the nearest minimiser among the minimisers.
std::string standing(const ToyRun& run) {
  if (run.to_front && *run.to_front <= kOn) return ", on their Pareto front";
  if (run.to_local_front && *run.to_local_front <= kOn) {
    return fmt::format(", beaten by no minimiser nearby: on the paper's local front, {:.2g} from the global one",
                       *run.to_front);
  }
  if (run.to_front && std::isfinite(*run.to_front)) return fmt::format(", {:.2g} from their Pareto front", *run.to_front);
  if (!run.pareto || !run.minimum) return "";
  return *run.pareto == Pareto::optimal  ? ", locally Pareto-optimal (the linear program has no direction)"
         : *run.pareto == Pareto::beaten ? ", not Pareto-optimal (a minimiser nearby has smaller magnitudes)"
                                         : ", perhaps Pareto-optimal (first order does not decide)";
}

bool on_local_front(const ToyRun& run) {
  return run.pareto == Pareto::optimal || (run.to_local_front && *run.to_local_front <= kOn);
}

bool undecided(const ToyRun& run) { return !on_local_front(run) && run.pareto == Pareto::undecided; }

// The check that a claim makes of a run, repeated on the runs of its controls.
template <class Passes, class Says>
std::vector<Mutation> mutations_of(const std::vector<ToyControl>& controls, const Passes& passes, const Says& says) {
  std::vector<Mutation> mutations;
  for (const ToyControl& control : controls) {
    mutations.push_back({control.change, says(control.run), !passes(control.run)});
  }
  return mutations;
}

std::string where_it_ends(const ToyRun& run) {
  return fmt::format("f = {:.2g}, {}{}", run.f, off_minimisers(run), standing(run));
}

Claim without_decay(const ToyStudy& study, const ToyRun& run, const std::vector<ToyControl>& controls) {
  return {.text = run.arm.name + " stops at a minimiser",
          .source = source_of(study, run, "section 3.2"),
          .outcome = decided(run, on_minimisers(run)),
          .evidence = where_it_ends(run),
          .mutations = mutations_of(controls, on_minimisers, where_it_ends)};
}

// If the box holds a minimiser, every arm that stops there would pass.
bool box_excludes(const ToyStudy& study) { return study.least_in_box > study.lowest + kOn; }

Claim in_the_box(const ToyStudy& study, const ToyRun& run, const std::vector<ToyControl>& controls) {
  const auto passes = [&](const ToyRun& one) {
    const double slope = as_vector(PointView(gradient(study.problem, one.end()))).norm();
    return one.to_box <= kOn && one.f <= study.least_in_box + kOn * (1 + slope);
  };
  const auto says = [&](const ToyRun& one) {
    const auto where = one.to_box <= kOn ? fmt::format("it ends in the box, within {:g},", kOn)
                                         : fmt::format("it ends {:.2g} outside the box", one.to_box);
    return fmt::format("{} with f = {:.3g}, the least found there is {:.3g}; {}", where, one.f, study.least_in_box,
                       off_minimisers(one));
  };
  Claim claim{.text = fmt::format("{} minimises f within the box |x| ≤ 1/λ = {:.3g}", run.arm.name, study.box),
              .source = source_of(study, run, "section 2.2"),
              .outcome = passes(run)   ? Outcome::holds
                         : run.at_rest ? Outcome::fails
                                       : Outcome::undecided,
              .evidence = says(run),
              .mutations = mutations_of(controls, passes, says)};
  if (claim.outcome == Outcome::holds && !box_excludes(study)) {
    claim.outcome = Outcome::noted;
    claim.evidence += "; the box holds a minimiser, so every arm that stops there would pass";
  }
  return claim;
}

Claim on_the_front(const ToyStudy& study, const ToyRun& run, const std::vector<ToyControl>& controls) {
  const auto slid =
      run.arrival && run.slide > kNear
          ? fmt::format("; it reached the front in step {} and then slid {:.2g} along it", *run.arrival, run.slide)
          : std::string();
  const auto passes = [](const ToyRun& one) { return on_minimisers(one) && on_local_front(one); };
  Claim claim{.text = run.arm.name + " slides within the minimisers to their local Pareto front",
              .source = source_of(study, run, "section 3.2"),
              .outcome = undecided(run) ? Outcome::undecided : decided(run, passes(run)),
              .evidence = where_it_ends(run) + slid,
              .mutations = mutations_of(controls, passes, where_it_ends)};
  if (claim.outcome == Outcome::holds && !claim.mutations.empty() && !claim.mutations.front().noticed) {
    claim.outcome = Outcome::noted;
    claim.evidence += "; without decay it ends on the front too, so this start decides nothing";
  }
  return claim;
}

Claim as_found(const ToyRun& run) {
  return {fmt::format("Where {} ends", run.arm.name), "", Outcome::noted, where_it_ends(run)};
}

Claim claim_of(const ToyStudy& study, const ToyRun& run, const std::vector<ToyControl>& controls) {
  switch (question_of(run.arm, study.options)) {
    case ToyQuestion::minimiser:
      return without_decay(study, run, controls);
    case ToyQuestion::box:
      return in_the_box(study, run, controls);
    case ToyQuestion::front:
      return on_the_front(study, run, controls);
    case ToyQuestion::none:
      break;
  }
  return as_found(run);
}

}  // namespace

std::vector<Claim> toy_claims(const ToyStudy& study) {
  std::vector<Claim> claims;
  for (std::size_t i = 0; i < study.runs.size(); ++i) {
    const ToyRun& run = study.runs[i];
    claims.push_back(claim_of(study, run, study.controls[i]));
    Claim& claim = claims.back();
    if ((claim.outcome == Outcome::fails || claim.outcome == Outcome::undecided) && !run.at_rest) {
      claim.evidence += "; it has not converged yet: give it more --steps";
    }
    if (claim.outcome != Outcome::holds) claim.mutations.clear();
  }
  return claims;
}

Claim far_arc_claim() {
  const Point start{4.6, 4.2};
  const ToyStudy study = run_toy(problem("circle"), {.start = start});
  const ToyRun& run = study.runs[2];
  return {.text = "Adam + CWD converges to the Pareto front of the minimisers",
          .source = "Figure 3, caption",
          .outcome = outcome_of(*run.to_front <= kOn),
          .evidence =
              fmt::format("to the local front, as section 3 says: from ({}, {}) it ends at ({:.3f}, {:.3f}), {:.1e} from the "
                          "local front and {:.2f} from the Pareto front",
                          start[0], start[1], run.end()[0], run.end()[1], *run.to_local_front, *run.to_front),
          .by_hand =
              "on the far arc of the circle about (3, 3), a step lowers one coordinate and raises the other, so no neighbour "
              "beats (3.7, 3.7); but (2.3, 2.3) on the near arc does"};
}

}  // namespace cautious::lab
