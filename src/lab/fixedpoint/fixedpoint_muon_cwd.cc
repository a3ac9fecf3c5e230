#include "lab/fixedpoint/fixedpoint_muon_cwd.h"

#include <algorithm>

#include <fmt/format.h>
#include <Eigen/Cholesky>
#include <Eigen/SVD>

namespace cautious::lab::fixedpoint {
namespace {

constexpr Eigen::Index kEquations = 6, kRows = 5, kColumns = 4;
constexpr std::uint64_t kProblems = 3;

struct Trial {
  double rest = 0, shorter = 0;  // |grad f|_inf after all steps and after a quarter
  double from_minimiser = 0;     // after a quarter, started where grad f = 0
  double without_decay = 0;      // after all
  double first = 0, second = 0;  // singular values of grad f at rest
};

double slope_of(const Posed& problem, PointView y) { return residual_at({.target = Target::original}, problem, y); }

Trial run(const MatrixLeastSquares& least_squares, const FixedpointOptions& options) {
  const Pace pace = pace_of(options), quarter{.steps = options.steps / 4};
  const Posed problem = pose("least squares", least_squares, options.weight_decay);
  Posed solved = problem;
  const Matrix minimiser =
      (least_squares.a.transpose() * least_squares.a).llt().solve(least_squares.a.transpose() * least_squares.b);
  for (std::size_t i = 0; i < solved.start.size(); ++i) solved.start[i] = minimiser.data()[i] / options.weight_decay;
  const Arm arm = with_cwd(muon(options.weight_decay, kRows));
  Arm without = arm;
  without.recipe.decay = None{};

  Trial trial;
  const Point y = rest(arm, problem, pace), g = slope_at(problem, y);
  const Eigen::Map<const Matrix> slope(g.data(), kRows, kColumns);
  const Eigen::VectorXd values = Eigen::JacobiSVD<Eigen::MatrixXd>(slope).singularValues();
  trial.rest = largest(g);
  trial.first = values(0);
  trial.second = values(1);
  trial.shorter = slope_of(problem, rest(arm, problem, quarter));
  trial.from_minimiser = slope_of(problem, rest(arm, solved, quarter));
  trial.without_decay = slope_of(problem, rest(without, problem, pace));
  return trial;
}

Table table_of(const std::vector<Trial>& trials, std::int64_t steps) {
  Table table;
  table.name = "fixedpoint_muon_cwd";
  table.title = "Muon + CWD on random least squares: the largest entry of ∇f at rest";
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
  table.note =
      "Where ∇f does not vanish it has rank 1: the other singular values are 0, so the orthogonal factor is not determined "
      "there, "
      "and its entries change sign from step to step. The mask follows these signs, and decay balances the update on average.";
  return table;
}

}  // namespace

MatrixLeastSquares random_least_squares(Random& random) {
  const Eigen::MatrixXd a = random_matrix(random, kEquations, kRows) / 2;
  return {a, random_matrix(random, kEquations, kColumns)};
}

MuonCwd run_muon_cwd(const FixedpointOptions& options) {
  std::vector<Trial> trials;
  for (std::uint64_t i = 0; i < kProblems; ++i) {
    Random random(options.seed + 10 + i);
    trials.push_back(run(random_least_squares(random), options));
  }
  const auto off = std::ranges::count_if(trials, [](const Trial& trial) { return trial.rest > kSolved; });
  const Trial& worst = *std::ranges::max_element(trials, {}, &Trial::rest);
  const double without = std::ranges::max_element(trials, {}, &Trial::without_decay)->without_decay;
  return {
      {"Muon with CWD rests at a stationary point of f, as the nuclear norm is least at 0 alone", "section 3, appendix C",
       outcome_of(off == 0),
       fmt::format(
           "|∇f| at rest above {:g} on {} of {} problems, at most {:.1e}; there {:.1e} after a quarter of the steps, {:.1e} "
           "when started at the minimiser; singular values of ∇f {:.1e}, then {:.1e}; without decay |∇f| at most {:.1e}",
           kSolved, off, trials.size(), worst.rest, worst.shorter, worst.from_minimiser, worst.first, worst.second, without)},
      table_of(trials, options.steps)};
}

}  // namespace cautious::lab::fixedpoint
