// What an optimizer with weight decay is said to solve: min f(x) + K*(lambda x) / lambda. Everything here is in units of the
// box: y = lambda x, f(x) = F(y) / lambda, so that the gradient of f at x is that of F at y and the problem is min F + K*.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lab/numbers.h"

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

// Solutions to compare with, by methods that share nothing with the optimizers.
//
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

// Problems whose solutions are known, posed in units of the box: f(x) = F(lambda x) / lambda. What happens does then not depend
// on lambda but for the scale of x, and gradients are of size 1 for every lambda.
// All that an optimizer sees of one:
struct Posed {
  std::string title;
  std::vector<std::int64_t> shape;
  Point start;                                                     // x, row after row
  double weight_decay = 0;                                         // lambda
  std::function<void(PointView x, std::span<double> g)> gradient;  // of f
};

// F(y) = sum h_i (y_i - c_i)^2 / 2 of six coordinates, every second target outside the box.
Quadratic separable(Random& random);

// The same with a rotated H, eigenvalues between 0.5 and 3.
Quadratic coupled(Random& random);

Posed pose(std::string title, const Quadratic& quadratic, double weight_decay, Point start);

// F(y) = |A y - b|^2 / 2 with three equations for six unknowns: the minimisers are a space of three dimensions.
Posed pose_underdetermined(Random& random, double weight_decay, Point start);

// F(y) = (|y - (1.5, 1.5)|^2 - 1/4)^2: not convex, the minimisers are a circle outside of the box.
Posed pose_circle(double weight_decay, Point start);

// F(Y) = |A Y - B|_F^2 / 2, from Y = 0.
struct MatrixLeastSquares {
  Eigen::MatrixXd a, b;
};

Posed pose(std::string title, const MatrixLeastSquares& problem, double weight_decay);

// rows x columns, these singular values, random singular vectors.
Eigen::MatrixXd with_singular_values(Random& random, Eigen::Index rows, Eigen::Index columns, const Point& values);
Eigen::MatrixXd random_matrix(Random& random, Eigen::Index rows, Eigen::Index columns);

// Uniform in [-2, 2] / lambda: inside the box and outside.
Point random_start(Random& random, std::size_t size, double weight_decay);

// The gradient of f at x = y / lambda.
Point slope_at(const Posed& problem, PointView y);

double residual_at(const Surrogate& surrogate, const Posed& problem, PointView y);

}  // namespace cautious::lab::fixedpoint
