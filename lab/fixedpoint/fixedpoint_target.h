// What an optimizer with weight decay is said to solve: min f(x) + K*(lambda x) / lambda. Everything here is in units of the
// box: y = lambda x, f(x) = F(y) / lambda, so that the gradient of f at x is that of F at y and the problem is min F + K*.
#pragma once

#include <string_view>

#include "lab/vector.h"

namespace cautious::lab::fixedpoint {

//   original  K* = 0                                       f itself
//   ridge     K* = |y|^2 / 2                               f + lambda |x|^2 / 2
//   box       K* = 0 where |y|_inf <= 1, else infinite     min f with |x|_inf <= 1 / lambda
//   ball      the same with |y|_2 <= 1
//   huber     e |y|^2 / 2 in the box
//   lasso     e |y|_1
//   lasso_box the same in the box
//   spectral  0 where ||Y||_op <= 1, else infinite
enum class Target { original, ridge, box, ball, huber, lasso, lasso_box, spectral };

std::string_view name_of(Target target);  // "f", "f + λ|x|²/2", ...

struct Surrogate {
  Target target{};
  double e = 0;           // of huber, lasso and lasso_box
  Eigen::Index rows = 0;  // of spectral: y is a matrix, row after row
};

// z moved toward 0 by e, and not beyond.
double soft(double z, double e);

// The proximal point: the minimiser of |y - z|^2 / 2 + K*(y). A projection where K* is a constraint.
Point nearest(const Surrogate& surrogate, PointView z);

// |y - nearest(y - g)|_inf, the natural residual: 0 exactly where y is a KKT point of min F + K*, g the gradient of F at y.
// |g| for original, |g + y| / 2 for ridge.
double residual(const Surrogate& surrogate, PointView y, PointView g);

// The same matrix with singular values above 1 set to 1.
Matrix with_clipped_singular_values(const Matrix& matrix);

// Fixed points of Adam with eps > 0 satisfy g / (|g| + eps) + y = 0, which is g + eps y / (1 - |y|) = 0: the gradient of F plus
// a barrier eps (-log(1 - |y|) - |y|) that keeps y inside the box. Its largest entry.
double barrier_residual(PointView y, PointView g, double eps);

}  // namespace cautious::lab::fixedpoint
