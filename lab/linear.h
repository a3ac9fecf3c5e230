// Linear algebra of small dense matrices: decompositions, which take Eigen seconds to compile and are therefore compiled once,
// and linear programs.
#pragma once

#include <optional>

#include "lab/numbers.h"

namespace cautious::lab {

// Of a symmetric matrix, values in ascending order.
struct Eigensystem {
  Eigen::VectorXd values;
  Eigen::MatrixXd vectors;
};
Eigensystem eigensystem(const Eigen::MatrixXd& symmetric);
Eigen::VectorXd eigenvalues(const Matrix& symmetric);

// a = u diag(values) v', thin, values in descending order.
template <class Dense>
struct Svd {
  Dense u;
  Eigen::VectorXd values;
  Dense v;
};
Svd<Eigen::MatrixXd> svd(const Eigen::MatrixXd& a);
Svd<Matrix> svd(const Matrix& a);
Eigen::VectorXd singular_values(const Eigen::MatrixXd& a);
Eigen::VectorXd singular_values(const Matrix& a);

double determinant(const Matrix& a);

// The square orthogonal factor of a's QR decomposition.
Eigen::MatrixXd orthogonal_factor(const Eigen::MatrixXd& a);

// The x of least norm among those with the least |a x - right|. Pivots up to that part of the largest are 0; by default, up to
// rounding. Of several right sides, one per column.
Eigen::VectorXd least_norm(const Eigen::MatrixXd& a, const Eigen::VectorXd& right, std::optional<double> threshold = {});
Eigen::MatrixXd least_norms(const Eigen::MatrixXd& a, const Eigen::MatrixXd& rights, double threshold);

// a x = right by LU with partial pivoting; of a symmetric matrix by LDL'; of a positive definite one by Cholesky.
Eigen::VectorXd solve_lu(const Eigen::MatrixXd& a, const Eigen::VectorXd& right);
Eigen::VectorXd solve_symmetric(const Eigen::MatrixXd& a, const Eigen::VectorXd& right);
Eigen::VectorXd solve_definite(const Eigen::MatrixXd& a, const Eigen::VectorXd& right);
Matrix solve_definite(const Eigen::MatrixXd& a, const Matrix& rights);

// max c'y  subject to  low <= A y <= high  and  y_low <= y <= y_high.
struct LinearProgram {
  Eigen::VectorXd c;
  Matrix a;
  Eigen::VectorXd low, high;      // of the rows; infinite where free
  Eigen::VectorXd y_low, y_high;  // of the variables
};

// By COIN-OR Clp. Nothing if it is infeasible; an unbounded one is an Error, since ours are bounded.
std::optional<Eigen::VectorXd> solve(const LinearProgram& program);

}  // namespace cautious::lab
