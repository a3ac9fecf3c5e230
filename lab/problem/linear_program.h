// A small linear program:  max c'y  subject to  low <= A y <= high  and  y_low <= y <= y_high,  by COIN-OR Clp.
#pragma once

#include <optional>

#include "lab/vector.h"

namespace cautious::lab {

struct LinearProgram {
  Eigen::VectorXd c;
  Matrix a;
  Eigen::VectorXd low, high;      // of the rows; infinite where free
  Eigen::VectorXd y_low, y_high;  // of the variables
};

// Nothing if it is infeasible; an unbounded one is an Error, since ours are bounded.
std::optional<Eigen::VectorXd> solve(const LinearProgram& program);

}  // namespace cautious::lab
