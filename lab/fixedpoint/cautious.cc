// Fixed points under cautious decay: the casework of appendix C, where it ends with g = 0 and where it does not.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cautious/rules/lion_k.h>

#include "lab/fixedpoint/fixedpoint.h"

namespace cautious::lab::fixedpoint {
namespace {

// Multiples of 1/8 up to 2: all sums, products and quotients of the equations are exact at the points where they can hold.
constexpr int kPerUnit = 8, kReach = 16;

// left(g, y) = right(g, y) on the grid.
template <class Sides>
CaseworkCount count(Sides sides) {
  CaseworkCount result;
  for (int i = -kReach; i <= kReach; ++i) {
    for (int j = -kReach; j <= kReach; ++j) {
      const double y = static_cast<double>(i) / kPerUnit, g = static_cast<double>(j) / kPerUnit;
      const auto [left, right] = sides(y, g);
      if (left != right) continue;
      ++result.solutions;
      if (left == 0) continue;
      if (result.nonzero++ == 0) result.example_y = y, result.example_g = g;
    }
  }
  return result;
}

void add(CaseworkCount& sum, const CaseworkCount& part) {
  if (sum.nonzero == 0) sum.example_y = part.example_y, sum.example_g = part.example_g;
  sum.solutions += part.solutions;
  sum.nonzero += part.nonzero;
}

struct Both {
  double left, right;
};

}  // namespace

CaseworkCount count_adam(Sign sign) {
  CaseworkCount sum;
  const double turn = sign == Sign::as_printed ? 1 : -1;
  for (const double eps : {0.125, 0.25, 0.5, 1.0}) {
    add(sum, count([=](double y, double g) { return Both{g / ((g < 0 ? -g : g) + eps), g * y >= 0 ? turn * y : 0.0}; }));
  }
  return sum;
}

CaseworkCount count_lion_k(Sign sign) {
  CaseworkCount sum;
  for (const ConvexFunction& k : {ConvexFunction{.k = Convex::l1}, ConvexFunction{.k = Convex::huber, .e = 0.5}}) {
    add(sum, count([&k, sign](double y, double g) {
          double z = -g;
          subgradient(k, std::span<double>(&z, 1));
          return Both{sign == Sign::as_printed ? -z : z, z * y <= 0 ? y : 0.0};
        }));
  }
  return sum;
}

namespace {

Claim stationary_claim(const Ends& ends, const std::vector<std::string>& names, std::string text) {
  bool holds = true;
  std::string evidence;
  double unmasked = INFINITY;  // |∇f| of the plain arms on the coupled quadratic
  for (const std::string& name : names) {
    const End& end = end_of(ends.cautious, name);
    unmasked = std::min(unmasked, ends.plain[static_cast<std::size_t>(&end - ends.cautious.data())].of_targets.front());
    holds = holds && solves_its_own(end) && end.least_other >= kApart;
    evidence += fmt::format("{}{} {:.1e}", evidence.empty() ? "" : ", ", name, worst_residual(end));
  }
  return {std::move(text),
          "section 3, appendix C",
          outcome_of(holds),
          "largest |∇f| at rest on four problems: " + evidence,
          "",
          {{"without the mask", fmt::format("|∇f| at least {:.2f} on the coupled quadratic", unmasked), unmasked > kSolved}}};
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
  const End& norm = end_of(ends.cautious, "Lion + CWD");
  return {"If K is not least at 0 alone, ∇K(-∇f) = 0 does not make ∇f vanish: with threshold, |∇f|∞ ≤ e",
          "appendix C",
          outcome_of(holds),
          fmt::format("e = {:g}; |∇f|∞ at rest from {:.3f} to {:.3f} on four problems", kThreshold, least, most),
          "",
          {{"K = |z|₁ in its place, least at 0 alone", fmt::format("|∇f|∞ at most {:.1e} at rest", worst_residual(norm)),
            worst_residual(norm) < kApart}}};
}

Claim lasso_claim(const Ends& ends) {
  const End& end = end_of(ends.cautious, "Lion-K threshold + CWD");
  return observed(solves_its_own(end),
                  "Lion-K with threshold and CWD minimises f + e|x|₁: below the threshold nothing opposes the decay",
                  fmt::format("residual of that problem at most {:.1e}, at most {:.1e} from its solution", worst_residual(end),
                              worst_distance(end)));
}

bool only_zeros(const CaseworkCount& count) { return count.solutions > 0 && count.nonzero == 0; }

std::string numbers(const CaseworkCount& count) {
  return fmt::format("{} grid points of (λx, g) satisfy it, {} of them with sides that are not 0{}", count.solutions,
                     count.nonzero,
                     count.nonzero > 0 ? fmt::format(", as λx = {:g}, g = {:g}", count.example_y, count.example_g) : "");
}

Claim casework_claim(std::string what, const CaseworkCount& count, std::vector<Mutation> mutations, std::string by_hand) {
  return {std::move(what), "appendix C",       outcome_of(only_zeros(count)),
          numbers(count),  std::move(by_hand), std::move(mutations)};
}

// One step at a stationary point, with moments that have vanished: the update is 0, 0 x >= 0 holds, and x decays.
Claim stationary_point_moves() {
  const Quadratic quadratic{Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Constant(1, 0.8)};
  const Posed problem = pose("at rest", quadratic, kWeightDecay, {0.8 / kWeightDecay});
  const Pace one{.lr = 0.01, .steps = 1, .kind = ScheduleKind::constant};
  double worst = 0, moved = 0;
  for (const Arm& arm : cautious_arms(kWeightDecay)) {
    moved = 0.8 - rest(arm, problem, one).front();
    worst = std::max(worst, std::abs(moved - one.lr * 0.8));
  }
  return observed(
      worst <= 1e-12,
      "A point with ∇f = 0 is a fixed point of the steps only where x = 0: there u = 0, the mask 1(0 ≥ 0) is on, and x decays",
      fmt::format("one step at ∇f = 0, λx = 0.8 moves λx by {:.4f}; lr · λx is {:.4f}, and every arm is within {:.0e} of it",
                  moved, one.lr * 0.8, worst));
}

}  // namespace

Section cautious_section(const Ends& ends) {
  const CaseworkCount of_the_algorithm = count_lion_k(Sign::of_the_algorithm);
  Section section;
  section.title = "Cautious decay: stationary points of f";
  section.text = "The same problems and steps as above, with CWD in place of plain decay.";
  section.claims = {
      stationary_claim(ends, {"Adam + CWD"}, "Adam with CWD converges to a stationary point of f"),
      stationary_claim(ends, {"Lion + CWD", "Lion-K l2 + CWD", "Lion-K huber + CWD"},
                       "Lion-K with CWD converges to a stationary point of f if K is least at 0 alone"),
      stationary_claim(ends, {"SGD + CWD", "SGDM + CWD"}, "SGD and SGDM with CWD converge to a stationary point of f"),
      threshold_claim(ends),
      lasso_claim(ends),
      casework_claim("In the fixed-point equation of Adam with CWD both sides must be 0", count_adam(Sign::of_the_algorithm),
                     {{"the other sign, that of plain decay", numbers(count_adam(Sign::as_printed)),
                       count_adam(Sign::as_printed).nonzero > 0}},
                     ""),
      casework_claim(
          "In the fixed-point equation of Lion-K with CWD as printed, -∇K(-∇f) = λ 1(∇K(-∇f)x ≤ 0)x, both sides must be 0",
          count_lion_k(Sign::as_printed), {},
          "K = |z|, one coordinate, λ = 1, g = 2, x = 1: ∇K(-g) = -1, so the left side is 1; ∇K(-g) x = -1 ≤ 0, so the right "
          "side is 1 as well. But Algorithm 1 moves x by -lr (1 + 1) there: from x - lr (u + λ 1(u x ≥ 0) x) with u = -∇K(-g) "
          "the left side must be ∇K(-g)"),
      observed(only_zeros(of_the_algorithm), "With the sign of Algorithm 1, ∇K(-∇f) = λ 1(∇K(-∇f)x ≤ 0)x, both sides must be 0",
               numbers(of_the_algorithm)),
      stationary_point_moves()};
  return section;
}

}  // namespace cautious::lab::fixedpoint
