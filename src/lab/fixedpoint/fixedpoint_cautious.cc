// Fixed points under cautious decay: the casework of appendix C, where it ends with g = 0 and where it does not.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "lab/fixedpoint/fixedpoint_casework.h"
#include "lab/fixedpoint/fixedpoint_sections.h"

namespace cautious::lab::fixedpoint {
namespace {

Claim stationary_claim(const Ends& ends, const std::vector<std::string>& names, std::string text) {
  bool holds = true;
  std::string evidence;
  for (const std::string& name : names) {
    const End& end = end_of(ends.cautious, name);
    holds = holds && solves_its_own(end) && end.least_other >= kApart;
    evidence += fmt::format("{}{} {:.1e}", evidence.empty() ? "" : ", ", name, worst_residual(end));
  }
  return {std::move(text), "section 3, appendix C", outcome_of(holds), "largest |∇f| at rest on four problems: " + evidence};
}

Claim threshold_claim(const Ends& ends) {
  const End& end = end_of(ends.cautious, "Lion-K threshold + CWD");
  double least = kThreshold, most = 0;
  for (std::size_t i = 0; i < ends.problems.size(); ++i) {
    const double slope = largest(slope_at(ends.problems[i], end.ends[i]));
    least = std::min(least, slope);
    most = std::max(most, slope);
  }
  const bool holds = solves_its_own(end) && most <= kThreshold + kSolved && least >= kApart;
  return {"If K is not least at 0 alone, ∇K(-∇f) = 0 does not make ∇f vanish: with threshold, |∇f|∞ ≤ e", "appendix C",
          outcome_of(holds),
          fmt::format("e = {:g}; |∇f|∞ at rest from {:.3f} to {:.3f} on four problems", kThreshold, least, most)};
}

Claim lasso_claim(const Ends& ends) {
  const End& end = end_of(ends.cautious, "Lion-K threshold + CWD");
  return {"Lion-K with threshold and CWD minimises f + e|x|₁: below the threshold nothing opposes the decay", "",
          solves_its_own(end) ? Outcome::noted : Outcome::fails,
          fmt::format("residual of that problem at most {:.1e}, at most {:.1e} from its solution", worst_residual(end),
                      worst_distance(end))};
}

Claim casework_claim(const std::string& what, const CaseworkCount& count, std::string source) {
  const bool holds = count.solutions > 0 && count.nonzero == 0;
  const Outcome outcome = holds && source.empty() ? Outcome::noted : outcome_of(holds);
  return {what, std::move(source), outcome,
          fmt::format("{} grid points of (λx, g) satisfy it, {} of them with sides that are not 0{}", count.solutions,
                      count.nonzero,
                      count.nonzero > 0 ? fmt::format(", as λx = {:g}, g = {:g}", count.example_y, count.example_g) : "")};
}

// One step at a stationary point, with moments that have vanished: the update is 0, 0 x >= 0 holds, and x decays.
Claim stationary_point_moves(const FixedpointOptions& options) {
  const double weight_decay = options.weight_decay;
  const Quadratic quadratic{Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Constant(1, 0.8)};
  const Posed problem = pose("at rest", quadratic, weight_decay, {0.8 / weight_decay});
  const Pace one{.lr = 0.01, .steps = 1, .kind = ScheduleKind::constant};
  double worst = 0, moved = 0;
  for (const Arm& arm : cautious_arms(weight_decay)) {
    moved = 0.8 - rest(arm, problem, one).front();
    worst = std::max(worst, std::abs(moved - one.lr * 0.8));
  }
  return {
      "A point with ∇f = 0 is a fixed point of the steps only where x = 0: there u = 0, the mask 1(0 ≥ 0) is on, and x decays",
      "", worst <= 1e-12 ? Outcome::noted : Outcome::fails,
      fmt::format(
          "one step of every arm at ∇f = 0, λx = 0.8 moves λx by {:.4f} = lr λ · λx; rest under CWD is a chattering that "
          "vanishes with the learning rate",
          moved)};
}

}  // namespace

Section cautious_section(const FixedpointOptions& options, const Ends& ends) {
  Section section;
  section.title = "Cautious decay: stationary points of f";
  section.text = "The same problems and steps as above, with CWD in place of plain decay.";
  section.claims = {
      stationary_claim(ends, {"Adam + CWD"}, "Adam with CWD rests at a stationary point of f"),
      stationary_claim(ends, {"Lion + CWD", "Lion-K l2 + CWD", "Lion-K huber + CWD"},
                       "Lion-K with CWD rests at a stationary point of f if K is least at 0 alone"),
      stationary_claim(ends, {"SGD + CWD", "SGDM + CWD"}, "SGD and SGDM with CWD rest at a stationary point of f"),
      threshold_claim(ends),
      lasso_claim(ends),
      casework_claim("In the fixed-point equation of Adam with CWD both sides must be 0", count_adam(), "appendix C"),
      casework_claim(
          "In the fixed-point equation of Lion-K with CWD as printed, -∇K(-∇f) = λ 1(∇K(-∇f)x ≤ 0)x, both sides must be 0",
          count_lion_k(Sign::as_printed), "appendix C"),
      casework_claim("With the sign of Algorithm 1, ∇K(-∇f) = λ 1(∇K(-∇f)x ≤ 0)x, both sides must be 0",
                     count_lion_k(Sign::of_the_algorithm), ""),
      stationary_point_moves(options)};
  return section;
}

}  // namespace cautious::lab::fixedpoint
