#include "lab/fixedpoint/fixedpoint_muon_cwd.h"

#include <algorithm>

#include <fmt/format.h>
#include <Eigen/Cholesky>
#include <Eigen/SVD>

#include "base/hash.h"

namespace cautious::lab::fixedpoint {
namespace {

constexpr Eigen::Index kEquations = 6, kRows = 5, kColumns = 4;
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
  const Matrix minimiser =
      (least_squares.a.transpose() * least_squares.a).llt().solve(least_squares.a.transpose() * least_squares.b);
  for (std::size_t i = 0; i < solved.start.size(); ++i) solved.start[i] = minimiser.data()[i] / kWeightDecay;
  const Arm arm = with_cwd(muon(kWeightDecay, kRows));
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
  const Eigen::MatrixXd a = random_matrix(random, kEquations, kRows) / 2;
  return {a, random_matrix(random, kEquations, kColumns)};
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
  return {{"Muon with CWD, which comes to no fixed point here, still approaches points with ∇f = 0 (the nuclear norm is least "
           "at 0 alone)",
           "section 3, unbiased optimization", outcome_of(off == 0),
           fmt::format("|∇f| stays above {:g} on {} of {} problems, on {} when started at the minimiser; at most {:.1e}, there "
                       "{:.1e} after a quarter of the steps, singular values of ∇f {:.1e}, then {:.1e}; without decay |∇f| at "
                       "most {:.1e}",
                       kSolved, off, trials.size(), left, worst.rest, worst.shorter, worst.first, worst.second, without)},
          table_of(trials, options.steps)};
}

}  // namespace cautious::lab::fixedpoint
