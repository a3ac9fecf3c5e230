// The laboratory's linear algebra against definitions and closed forms: other tests use it to check with.
#include "lab/linear.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include <gtest/gtest.h>

#include "lab/numbers.h"

namespace cautious::lab {
namespace linear_test {

using Eigen::MatrixXd;
using Eigen::VectorXd;

MatrixXd normal_matrix(Random& random, Eigen::Index rows, Eigen::Index columns) {
  return MatrixXd::NullaryExpr(rows, columns, [&] { return random.normal(); });
}

bool is_orthonormal(const MatrixXd& q) { return (q.transpose() * q - MatrixXd::Identity(q.cols(), q.cols())).norm() < 1e-12; }

// Jacobi's rotations, written out: eigenvalues of a symmetric matrix, in ascending order.
VectorXd jacobi_eigenvalues(MatrixXd a) {
  for (int sweep = 0; sweep < 60; ++sweep) {
    for (Eigen::Index p = 0; p < a.rows(); ++p) {
      for (Eigen::Index q = p + 1; q < a.rows(); ++q) {
        const double angle = 0.5 * std::atan2(2 * a(p, q), a(q, q) - a(p, p)), c = std::cos(angle), s = std::sin(angle);
        MatrixXd turn = MatrixXd::Identity(a.rows(), a.rows());
        turn(p, p) = turn(q, q) = c, turn(p, q) = s, turn(q, p) = -s;
        a = turn.transpose() * a * turn;
      }
    }
  }
  VectorXd values = a.diagonal();
  std::sort(values.begin(), values.end());
  return values;
}

TEST(Linear, EigenvaluesAreThoseOfJacobisRotations) {
  Random random(1);
  for (Eigen::Index n = 1; n <= 6; ++n) {
    const MatrixXd half = normal_matrix(random, n, n), a = half + half.transpose();
    const VectorXd expected = jacobi_eigenvalues(a);
    const Eigensystem found = eigensystem(a);
    EXPECT_LT((found.values - expected).norm(), 1e-10) << n;
    EXPECT_LT((eigenvalues(Matrix(a)) - expected).norm(), 1e-10) << n;
    EXPECT_TRUE(is_orthonormal(found.vectors));
    EXPECT_LT((a * found.vectors - found.vectors * found.values.asDiagonal()).norm(), 1e-11) << n;
  }
}

TEST(Linear, SingularValuesAreRootsOfEigenvaluesAndTheFactorsMultiplyBack) {
  Random random(2);
  for (const auto& [rows, columns] : {std::pair{1, 1}, {2, 2}, {3, 2}, {2, 5}, {6, 4}, {4, 6}}) {
    const MatrixXd a = normal_matrix(random, rows, columns);
    const VectorXd squares = jacobi_eigenvalues(rows < columns ? MatrixXd(a * a.transpose()) : MatrixXd(a.transpose() * a));
    const VectorXd expected = squares.cwiseSqrt().reverse();
    const auto by_columns = svd(a);
    const auto by_rows = svd(Matrix(a));
    EXPECT_LT((by_columns.values - expected).norm(), 1e-10);
    EXPECT_LT((by_rows.values - expected).norm(), 1e-10);
    EXPECT_LT((singular_values(a) - expected).norm(), 1e-10);
    EXPECT_LT((singular_values(Matrix(a)) - expected).norm(), 1e-10);
    EXPECT_LT((by_columns.u * by_columns.values.asDiagonal() * by_columns.v.transpose() - a).norm(), 1e-12);
    EXPECT_LT((by_rows.u * by_rows.values.asDiagonal() * by_rows.v.transpose() - a).norm(), 1e-12);
    EXPECT_TRUE(is_orthonormal(by_columns.u) && is_orthonormal(by_columns.v));
  }
}

// [a b; c d] with a positive determinant: the nearest rotation is [a + d, b - c; c - b, a + d] over its length.
TEST(Linear, OrthogonalFactorOfATwoByTwoMatrixIsTheNearestRotation) {
  Matrix a(2, 2);
  a << 3, 1, 7, 3;
  const auto [u, values, v] = svd(a);
  Matrix expected(2, 2);
  expected << 1, -1, 1, 1;
  EXPECT_LT((u * v.transpose() - expected / std::sqrt(2.0)).norm(), 1e-14);
  EXPECT_NEAR(values.sum(), 12 / std::sqrt(2.0), 1e-13);
  EXPECT_NEAR(determinant(a), 2, 1e-13);
  a.row(0).swap(a.row(1));
  EXPECT_NEAR(determinant(a), -2, 1e-13);
}

TEST(Linear, OrthogonalFactorSpansTheColumns) {
  Random random(3);
  const MatrixXd a = normal_matrix(random, 5, 5), q = orthogonal_factor(a);
  EXPECT_TRUE(is_orthonormal(q));
  const MatrixXd r = q.transpose() * a;
  for (Eigen::Index i = 0; i < 5; ++i) {
    for (Eigen::Index j = 0; j < i; ++j) EXPECT_NEAR(r(i, j), 0, 1e-13);
  }
}

// The residual is orthogonal to the columns, and x to the null space; any other solution is longer.
TEST(Linear, LeastNormIsTheShortestOfTheBest) {
  Random random(4);
  for (const auto& [rows, columns, rank] : {std::array{5, 3, 3}, {3, 5, 3}, {4, 4, 2}, {6, 4, 2}}) {
    const MatrixXd left = normal_matrix(random, rows, rank), right = normal_matrix(random, rank, columns), a = left * right;
    const VectorXd b = normal_matrix(random, rows, 1);
    const VectorXd x = least_norm(a, b);
    EXPECT_LT((a.transpose() * (a * x - b)).norm(), 1e-11);
    // x is in the row space: x = right' y for some y.
    const MatrixXd gram = right * right.transpose();
    const VectorXd y = solve_definite(gram, VectorXd(right * x));
    EXPECT_LT((right.transpose() * y - x).norm(), 1e-11);
    EXPECT_LT((least_norms(a, b, 1e-10).col(0) - x).norm(), 1e-11);
  }
}

TEST(Linear, ThresholdDropsSmallPivots) {
  const MatrixXd a = Eigen::Vector2d(1, 1e-6).asDiagonal();
  const VectorXd b = Eigen::Vector2d(2, 1);
  EXPECT_NEAR(least_norm(a, b)[1], 1e6, 1);
  EXPECT_EQ(least_norm(a, b, 1e-3)[1], 0);
}

TEST(Linear, SolversSolve) {
  Random random(5);
  const MatrixXd a = normal_matrix(random, 5, 5), symmetric = a + a.transpose(), definite = a * a.transpose();
  const VectorXd b = normal_matrix(random, 5, 1);
  EXPECT_LT((a * solve_lu(a, b) - b).norm(), 1e-10);
  EXPECT_LT((symmetric * solve_symmetric(symmetric, b) - b).norm(), 1e-10);
  EXPECT_LT((definite * solve_definite(definite, b) - b).norm(), 1e-9);
  const Matrix rights = normal_matrix(random, 5, 3);
  EXPECT_LT((definite * solve_definite(definite, rights) - rights).norm(), 1e-9);
}

}  // namespace linear_test
}  // namespace cautious::lab
