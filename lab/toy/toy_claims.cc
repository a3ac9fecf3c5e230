#include "lab/toy/toy_claims.h"

#include <cmath>

#include <fmt/format.h>

namespace cautious::lab {
namespace {

// The figures show Adam's three arms; for others and elsewhere it is the section's claim.
std::string source_of(const ToyStudy& study, const ToyRun& run, const char* section) {
  const std::string& name = study.problem.name;
  if (!std::holds_alternative<Adam>(run.arm.recipe.rule) || !study.problem.file.empty()) return section;
  return name == "circle" || name == "parabola" ? "Figure 3" : name == "surface" ? "Figure 2" : section;
}

// What has not come to rest, or where no stationary point was found, decides nothing unless the arm is there already.
Outcome outcome_of(const ToyRun& run, bool holds) {
  if (holds) return Outcome::holds;
  return run.at_rest && run.to_minimisers ? Outcome::fails : Outcome::undecided;
}

bool on_minimisers(const ToyRun& run) { return run.minimum && run.to_minimisers && *run.to_minimisers <= kOn; }

std::string off_minimisers(const ToyRun& run) {
  if (!run.to_minimisers) return "no stationary point was found near it, or not one with a clear tangent";
  const char* what = run.minimum ? "minimiser" : "stationary point, a saddle or maximum";
  if (*run.to_minimisers > kOn) return fmt::format("{:.2g} off the nearest {}", *run.to_minimisers, what);
  if (!run.minimum) return fmt::format("at a {}", what);
  return fmt::format("on the minimisers (distance {:.1e})", *run.to_minimisers);
}

// Where the nearest minimiser stands among the minimisers.
std::string standing(const ToyRun& run) {
  if (run.to_front && *run.to_front <= kOn) return ", on their Pareto front";
  if (run.to_local_front && *run.to_local_front <= kOn) {
    return fmt::format(", where only near minimisers do not beat it: on the paper's local front, {:.2g} from the global one",
                       *run.to_front);
  }
  if (run.to_front && std::isfinite(*run.to_front)) return fmt::format(", {:.2g} from their Pareto front", *run.to_front);
  if (!run.pareto || !run.minimum) return "";
  return *run.pareto == Pareto::optimal  ? ", locally Pareto-optimal (the linear program has no direction)"
         : *run.pareto == Pareto::beaten ? ", not Pareto-optimal (a near minimiser has smaller magnitudes)"
                                         : ", perhaps Pareto-optimal (first order does not decide)";
}

bool on_local_front(const ToyRun& run) {
  return run.pareto == Pareto::optimal || (run.to_local_front && *run.to_local_front <= kOn);
}

bool undecided(const ToyRun& run) { return !on_local_front(run) && run.pareto == Pareto::undecided; }

Claim without_decay(const ToyStudy& study, const ToyRun& run) {
  return {run.arm.name + " halts at a minimiser", source_of(study, run, "section 3.2"), outcome_of(run, on_minimisers(run)),
          fmt::format("f = {:.2g}, {}{}", run.f, off_minimisers(run), standing(run))};
}

Claim in_the_box(const ToyStudy& study, const ToyRun& run) {
  const bool inside = run.to_box <= kOn;
  const bool least = run.f <= study.least_in_box + kOn * (1 + as_vector(PointView(gradient(study.problem, run.end()))).norm());
  const auto where =
      inside ? fmt::format("it ends in the box, to {:g},", kOn) : fmt::format("it ends {:.2g} outside the box", run.to_box);
  return {fmt::format("{} minimises f within the box |x| ≤ 1/λ = {:.3g}", run.arm.name, study.box),
          source_of(study, run, "section 2.2"),
          inside && least ? Outcome::holds
          : run.at_rest   ? Outcome::fails
                          : Outcome::undecided,
          fmt::format("{} with f = {:.3g}, the least found there is {:.3g}; {}", where, run.f, study.least_in_box,
                      off_minimisers(run))};
}

Claim on_the_front(const ToyStudy& study, const ToyRun& run) {
  const auto slid =
      run.arrival && run.slide > kNear
          ? fmt::format("; it came to the front in step {} and slid on along it by {:.2g}", *run.arrival, run.slide)
          : std::string();
  const bool there = on_minimisers(run) && on_local_front(run);
  return {run.arm.name + " slides within the minimisers to their local Pareto front", source_of(study, run, "section 3.2"),
          undecided(run) ? Outcome::undecided : outcome_of(run, there),
          fmt::format("f = {:.2g}, {}{}{}", run.f, off_minimisers(run), standing(run), slid)};
}

Claim as_found(const ToyRun& run) {
  return {fmt::format("Where {} ends", run.arm.name), "", Outcome::noted,
          fmt::format("f = {:.3g}, {}{}", run.f, off_minimisers(run), standing(run))};
}

Claim claim_of(const ToyStudy& study, const ToyRun& run) {
  const Recipe& recipe = run.arm.recipe;
  const bool sign_like = std::holds_alternative<Adam>(recipe.rule) || std::holds_alternative<Lion>(recipe.rule);
  const bool same_box = recipe.weight_decay == study.options.weight_decay && recipe.coupling == Coupling::plain;
  if (std::holds_alternative<None>(recipe.decay)) return without_decay(study, run);
  if (std::holds_alternative<Cautious>(recipe.decay)) return on_the_front(study, run);
  if (std::holds_alternative<Decoupled>(recipe.decay) && sign_like && same_box) {
    return in_the_box(study, run);
  }
  return as_found(run);
}

}  // namespace

std::vector<Claim> toy_claims(const ToyStudy& study) {
  std::vector<Claim> claims;
  for (const ToyRun& run : study.runs) {
    claims.push_back(claim_of(study, run));
    if (claims.back().outcome != Outcome::holds && !run.at_rest) {
      claims.back().evidence += "; it is not yet at rest, so give it more --steps";
    }
  }
  return claims;
}

}  // namespace cautious::lab
