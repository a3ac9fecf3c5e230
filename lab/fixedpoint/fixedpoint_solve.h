// Solutions to compare with, by methods that share nothing with the optimizers. In units of the box, as fixedpoint_target.h.
#pragma once

#include "lab/fixedpoint/fixedpoint_target.h"

namespace cautious::lab::fixedpoint {

// F(y) = (y - c)^T H (y - c) / 2, H symmetric and positive definite.
struct Quadratic {
  Eigen::MatrixXd h;
  Eigen::VectorXd c;
};

// Tries for each coordinate "at -1, at 1, between" and returns the combination that satisfies the KKT conditions: box and
// huber, 3^d linear systems, exact to rounding.
Eigen::VectorXd solve_by_enumeration(const Quadratic& quadratic, const Surrogate& surrogate);

// Minimises over one coordinate at a time until nothing changes: box, huber, lasso and lasso_box, whose K* is a
// sum over coordinates.
Eigen::VectorXd solve_by_descent(const Quadratic& quadratic, const Surrogate& surrogate);

// The solution of any surrogate but spectral: closed forms (original, ridge), the multiplier of the constraint by root finding
// (ball), enumeration (box, huber) or descent (lasso, lasso_box).
Eigen::VectorXd solve(const Quadratic& quadratic, const Surrogate& surrogate);

// F(Y) = |A Y - B|_F^2 / 2 with ||Y||_op <= 1, by projected gradient with singular values clipped.
Matrix solve_spectral(const Eigen::MatrixXd& a, const Eigen::MatrixXd& b);

}  // namespace cautious::lab::fixedpoint
