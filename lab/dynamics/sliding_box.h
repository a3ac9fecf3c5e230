// The sides of sliding switches as a linear complementarity problem over the box [-1, 1]^n.
#pragma once

#include <Eigen/Core>

namespace cautious::lab {

// tau such that for y = c + b tau: y_i = 0, or y_i > 0 with tau_i = 1, or y_i < 0 with tau_i = -1. Unique where -b is a
// P-matrix. Where -b is a singular matrix that is positive semidefinite after a scaling of its rows, the solution of least
// |tau|_2.
void solve_box(const Eigen::MatrixXd& b, const Eigen::VectorXd& c, Eigen::VectorXd& tau);

}  // namespace cautious::lab
