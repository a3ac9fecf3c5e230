// Problems whose solutions are known, posed in units of the box: f(x) = F(lambda x) / lambda. What happens does then not depend
// on lambda but for the scale of x, and gradients are of size 1 for every lambda.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "lab/fixedpoint/fixedpoint_solve.h"
#include "lab/random.h"

namespace cautious::lab::fixedpoint {

// All that an optimizer sees of a problem.
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
