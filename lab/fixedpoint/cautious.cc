// Fixed points under cautious decay: the casework of appendix C, where it ends with g = 0 and where it does not, and Muon.
#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include <cautious/rules/lion_k.h>

#include "base/hash.h"
#include "lab/fixedpoint/fixedpoint.h"
#include "lab/linear.h"

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

CaseworkCount count_adam() {
  CaseworkCount sum;
  for (const double eps : {0.125, 0.25, 0.5, 1.0}) {
    add(sum, count([eps](double y, double g) { return Both{g / ((g < 0 ? -g : g) + eps), g * y >= 0 ? -y : 0.0}; }));
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

constexpr std::uint64_t kProblems = 12;

struct Trial {
  double rest = 0, shorter = 0;  // |grad f|_inf after all steps and after a quarter
  double from_minimiser = 0;     // after a quarter, started where grad f = 0
  double without_decay = 0;      // after all
  double first = 0, second = 0;  // singular values of grad f at rest
};

double slope_of(const Posed& problem, PointView y) { return residual_at({.target = Target::original}, problem, y); }

bool stays(const Trial& trial) { return !(trial.rest <= kSolved); }

Trial run(const MatrixLeastSquares& least_squares, const FixedpointOptions& options) {
  const Pace pace = pace_of(options), quarter{.steps = options.steps / 4};
  const Posed problem = pose("least squares", least_squares, kWeightDecay);
  Posed solved = problem;
  const Matrix pull = least_squares.a.transpose() * least_squares.b;
  const Matrix minimiser = solve_definite(least_squares.a.transpose() * least_squares.a, pull);
  for (std::size_t i = 0; i < solved.start.size(); ++i) solved.start[i] = minimiser.data()[i] / kWeightDecay;
  const Arm arm = with_cwd(muon(kWeightDecay, kRows));
  Arm without = arm;
  without.recipe.decay = None{};

  Trial trial;
  const Point y = rest(arm, problem, pace), g = slope_at(problem, y);
  const Eigen::Map<const Matrix> slope(g.data(), kRows, kColumns);
  const Eigen::VectorXd values = lab::singular_values(Eigen::MatrixXd(slope));
  trial.rest = largest(g);
  trial.first = values(0);
  trial.second = values(1);
  trial.shorter = slope_of(problem, rest(arm, problem, quarter));
  trial.from_minimiser = slope_of(problem, rest(arm, solved, quarter));
  trial.without_decay = slope_of(problem, rest(without, problem, pace));
  return trial;
}

report::Table table_of(const std::vector<Trial>& trials, std::int64_t steps) {
  report::Table table;
  table.name = "fixedpoint_muon_cwd";
  table.title = "Muon + CWD on random least squares: the largest entry of ∇f at the end";
  table.head = {"problem",
                fmt::format("{} steps", steps / 4),
                fmt::format("{} steps", steps),
                fmt::format("from the minimiser, {} steps", steps / 4),
                fmt::format("Muon without decay, {} steps", steps),
                "largest singular value of ∇f",
                "second"};
  for (const Trial& trial : trials) {
    std::vector<std::string> row{std::to_string(table.rows.size() + 1)};
    for (const double value :
         {trial.shorter, trial.rest, trial.from_minimiser, trial.without_decay, trial.first, trial.second}) {
      row.push_back(fmt::format("{:.1e}", value));
    }
    table.rows.push_back(std::move(row));
  }
  double rank_one = 0;
  for (const Trial& trial : trials) {
    if (stays(trial)) rank_one = std::max(rank_one, trial.second / trial.first);
  }
  if (rank_one == 0) return table;
  table.note = fmt::format(
      "Where |∇f| stays above {:g}, the second singular value of ∇f is at most {:.1e} of the first. With rank 1 the orthogonal "
      "factor is not determined, its entries can change sign from step to step, and the mask follows these signs.",
      kSolved, rank_one);
  return table;
}

}  // namespace

MatrixLeastSquares random_least_squares(Random& random) {
  const Eigen::MatrixXd a = random_matrix(random, kRows + 1, kRows) / 2;
  return {a, random_matrix(random, kRows + 1, kColumns)};
}

// Multiplied so that neighbouring seeds share no problem.
std::vector<MatrixLeastSquares> muon_cwd_problems(std::uint64_t seed) {
  std::vector<MatrixLeastSquares> problems;
  for (std::uint64_t i = 0; i < kProblems; ++i) {
    Random random((seed + 1) * base::kGolden + i);
    problems.push_back(random_least_squares(random));
  }
  return problems;
}

MuonCwd run_muon_cwd(const FixedpointOptions& options) {
  std::vector<Trial> trials;
  for (const MatrixLeastSquares& problem : muon_cwd_problems(options.seed)) trials.push_back(run(problem, options));
  const auto off = std::ranges::count_if(trials, stays);
  const auto left = std::ranges::count_if(trials, [](const Trial& trial) { return trial.from_minimiser > kSolved; });
  const Trial& worst = *std::ranges::max_element(trials, {}, &Trial::rest);
  const double without = std::ranges::max_element(trials, {}, &Trial::without_decay)->without_decay;
  return {{"Muon with CWD, which reaches no fixed point here, still approaches points with ∇f = 0 (the nuclear norm is least "
           "at 0 alone)",
           "section 3, unbiased optimization", outcome_of(off == 0),
           fmt::format(
               "|∇f| stays above {:g} on {} of {} problems, on {} when started at the minimiser; at most {:.1e}, there {:.1e} "
               "after a quarter of the steps, singular values of ∇f {:.1e}, then {:.1e}; without decay |∇f| at most {:.1e}",
               kSolved, off, trials.size(), left, worst.rest, worst.shorter, worst.first, worst.second, without)},
          table_of(trials, options.steps)};
}

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

Claim casework_claim(std::string what, const CaseworkCount& count) {
  return {std::move(what), "appendix C", outcome_of(only_zeros(count)), numbers(count)};
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
      casework_claim("In the fixed-point equation of Adam with CWD both sides must be 0", count_adam()),
      casework_claim(
          "In the fixed-point equation of Lion-K with CWD as printed, -∇K(-∇f) = λ 1(∇K(-∇f)x ≤ 0)x, both sides must be 0",
          count_lion_k(Sign::as_printed)),
      observed(only_zeros(of_the_algorithm), "With the sign of Algorithm 1, ∇K(-∇f) = λ 1(∇K(-∇f)x ≤ 0)x, both sides must be 0",
               numbers(of_the_algorithm)),
      stationary_point_moves()};
  return section;
}

}  // namespace cautious::lab::fixedpoint
