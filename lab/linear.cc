// Eigen's decompositions, and linear programs by Clp.
#include "lab/linear.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <ClpSimplex.hpp>
#include <Eigen/Dense>

#include <cautious/error.h>

namespace cautious::lab {
namespace {

constexpr double kTolerance = 1e-10;  // of rows, bounds and reduced costs, absolute: callers scale their programs to about 1

[[noreturn]] void no_optimum(const LinearProgram& program, std::string_view found) {
  throw Error(Fault::failure,
              fmt::format("a linear program of {} rows and {} variables has no optimum: {}; valid: bounded ones",
                          program.a.rows(), program.c.size(), found));
}

// Of one variable: an interval, without the tenth of a millisecond that Clp takes to begin.
std::optional<Eigen::VectorXd> solve_interval(const LinearProgram& program) {
  double low = program.y_low[0], high = program.y_high[0];
  for (Eigen::Index row = 0; row < program.a.rows(); ++row) {
    const double a = program.a(row, 0);
    if (a == 0 && (program.low[row] > kTolerance || program.high[row] < -kTolerance)) return std::nullopt;
    if (a == 0) continue;
    low = std::max(low, (a > 0 ? program.low : program.high)[row] / a);
    high = std::min(high, (a > 0 ? program.high : program.low)[row] / a);
  }
  if (low > high + kTolerance) return std::nullopt;
  const double best = program.c[0] > 0 ? high : program.c[0] < 0 ? low : std::clamp(0.0, low, std::max(low, high));
  if (!std::isfinite(best)) no_optimum(program, "it is unbounded");
  return Eigen::VectorXd::Constant(1, best);
}

using Orthogonal = Eigen::CompleteOrthogonalDecomposition<Eigen::MatrixXd>;

Orthogonal with_threshold(const Eigen::MatrixXd& a, std::optional<double> threshold) {
  Orthogonal decomposition;
  if (threshold) decomposition.setThreshold(*threshold);
  decomposition.compute(a);
  return decomposition;
}

template <class Dense>
Svd<Dense> thin_svd(const Dense& a) {
  const Eigen::JacobiSVD<Dense> found(a, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return {found.matrixU(), found.singularValues(), found.matrixV()};
}

}  // namespace

Eigensystem eigensystem(const Eigen::MatrixXd& symmetric) {
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(symmetric);
  return {solver.eigenvalues(), solver.eigenvectors()};
}

Eigen::VectorXd eigenvalues(const Matrix& symmetric) {
  return Eigen::SelfAdjointEigenSolver<Matrix>(symmetric, Eigen::EigenvaluesOnly).eigenvalues();
}

Svd<Eigen::MatrixXd> svd(const Eigen::MatrixXd& a) { return thin_svd(a); }
Svd<Matrix> svd(const Matrix& a) { return thin_svd(a); }
Eigen::VectorXd singular_values(const Eigen::MatrixXd& a) { return Eigen::JacobiSVD<Eigen::MatrixXd>(a).singularValues(); }
Eigen::VectorXd singular_values(const Matrix& a) { return Eigen::JacobiSVD<Matrix>(a).singularValues(); }

double determinant(const Matrix& a) { return a.determinant(); }

Eigen::MatrixXd orthogonal_factor(const Eigen::MatrixXd& a) { return Eigen::HouseholderQR<Eigen::MatrixXd>(a).householderQ(); }

Eigen::VectorXd least_norm(const Eigen::MatrixXd& a, const Eigen::VectorXd& right, std::optional<double> threshold) {
  return with_threshold(a, threshold).solve(right);
}

Eigen::MatrixXd least_norms(const Eigen::MatrixXd& a, const Eigen::MatrixXd& rights, double threshold) {
  return with_threshold(a, threshold).solve(rights);
}

Eigen::VectorXd solve_lu(const Eigen::MatrixXd& a, const Eigen::VectorXd& right) { return a.partialPivLu().solve(right); }
Eigen::VectorXd solve_symmetric(const Eigen::MatrixXd& a, const Eigen::VectorXd& right) { return a.ldlt().solve(right); }
Eigen::VectorXd solve_definite(const Eigen::MatrixXd& a, const Eigen::VectorXd& right) { return a.llt().solve(right); }
Matrix solve_definite(const Eigen::MatrixXd& a, const Matrix& rights) { return a.llt().solve(rights); }

std::optional<Eigen::VectorXd> solve(const LinearProgram& program) {
  if (program.c.size() == 1) return solve_interval(program);
  const int rows = static_cast<int>(program.a.rows()), columns = static_cast<int>(program.c.size());
  CoinPackedMatrix matrix(/*colordered=*/false, 0, 0);
  matrix.setDimensions(0, columns);
  std::vector<int> every(static_cast<std::size_t>(columns));
  std::iota(every.begin(), every.end(), 0);
  for (int row = 0; row < rows; ++row) matrix.appendRow(columns, every.data(), program.a.row(row).data());

  ClpSimplex simplex;
  simplex.setLogLevel(0);
  simplex.scaling(0);  // Clp would scale by the smallest entries, which may be rounding errors
  simplex.setPrimalTolerance(kTolerance);
  simplex.setDualTolerance(kTolerance);
  simplex.setOptimizationDirection(-1);
  simplex.loadProblem(matrix, program.y_low.data(), program.y_high.data(), program.c.data(), program.low.data(),
                      program.high.data());
  simplex.primal();
  // 2 to 4: optimal, but not within the tolerances.
  const bool doubtful = simplex.secondaryStatus() >= 2 && simplex.secondaryStatus() <= 4;
  if (simplex.isProvenOptimal() && !doubtful) {
    return Eigen::Map<const Eigen::VectorXd>(simplex.primalColumnSolution(), columns);
  }
  if (simplex.isProvenPrimalInfeasible()) return std::nullopt;
  no_optimum(program, simplex.isProvenDualInfeasible() ? "it is unbounded" : "Clp gave up");
}

}  // namespace cautious::lab
