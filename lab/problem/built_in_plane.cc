// The problems of two variables. In circle, parabola and surface f grows with a residual r whose zeros are minimisers.
//
// The surface is for a picture: its valley floor is symmetric about x = y and bends at (2.5, 2.5). Both coordinates shrink
// along an arm, where |x - y| > 1; the Pareto part is the rest. The best point of the box |x|, |y| <= 2 is its corner. The
// start lies inside the bend, so that the way down ends high up on an arm. The logarithm keeps the hills low.
#include <cmath>
#include <utility>

#include "lab/problem/built_in.h"

namespace cautious::lab {
namespace {

// A function of (x, y) and its derivatives.
struct Plane {
  double f, fx, fy, fxx, fxy, fyy;
};

Plane circle_residual(double x, double y) {
  return {(y - 3) * (y - 3) + (x - 3) * (x - 3) - 1, 2 * (x - 3), 2 * (y - 3), 2, 0, 2};
}

Plane parabola_residual(double x, double y) { return {y - 3 - (x - 3) * (x - 3), -2 * (x - 3), 1, -2, 0, 0}; }

Plane surface_residual(double x, double y) { return {x + y - 5 - (x - y) * (x - y) / 2, 1 - (x - y), 1 + (x - y), -1, 1, -1}; }

// f = outer(r), with the outer function's value and first two derivatives at r.
Plane composed(double value, double first, double second, const Plane& r) {
  return {value,
          first * r.fx,
          first * r.fy,
          first * r.fxx + second * r.fx * r.fx,
          first * r.fxy + second * r.fx * r.fy,
          first * r.fyy + second * r.fy * r.fy};
}

Plane squared(const Plane& r) { return composed(r.f * r.f, 2 * r.f, 2, r); }

Plane log_squared(const Plane& r) {
  const double square = r.f * r.f, below = 1 + square;
  return composed(std::log1p(square), 2 * r.f / below, 2 * (1 - square) / (below * below), r);
}

Plane circle(double x, double y) { return squared(circle_residual(x, y)); }
Plane parabola(double x, double y) { return squared(parabola_residual(x, y)); }
Plane surface(double x, double y) { return log_squared(surface_residual(x, y)); }

Plane rosenbrock(double x, double y) {
  const double r = y - x * x;
  return {(1 - x) * (1 - x) + 100 * r * r, -2 * (1 - x) - 400 * r * x, 200 * r, 2 + 800 * x * x - 400 * r, -400 * x, 200};
}

template <Plane (*kPlane)(double, double)>
Problem with_function(Problem problem) {
  problem.tensors = {{"x", {2}}};
  problem.least = 0;
  problem.value = [](PointView x) { return kPlane(x[0], x[1]).f; };
  problem.gradient = [](PointView x, std::span<double> g) {
    const Plane at = kPlane(x[0], x[1]);
    g[0] = at.fx;
    g[1] = at.fy;
  };
  problem.hessian = [](PointView x, Matrix& h) {
    const Plane at = kPlane(x[0], x[1]);
    h.resize(2, 2);
    h << at.fxx, at.fxy, at.fxy, at.fyy;
  };
  return problem;
}

Problem described(std::string name, std::string title, std::string formula, Point start, double view_low, double view_high) {
  Problem problem;
  problem.name = std::move(name);
  problem.title = std::move(title);
  problem.formula = std::move(formula);
  problem.start = std::move(start);
  problem.view_low = view_low;
  problem.view_high = view_high;
  return problem;
}

}  // namespace

std::vector<Problem> plane_problems() {
  return {
      with_function<circle>(described("circle", "Circle", "((y − 3)² + (x − 3)² − 1)²", {1.4, 5.2}, 0, 5.7)),
      with_function<parabola>(described("parabola", "Parabola", "(y − 3 − (x − 3)²)²", {5.4, 4.4}, 0, 5.7)),
      with_function<surface>(described("surface", "Surface", "log(1 + (x + y − 5 − (x − y)²/2)²)", {3.9, 5.2}, 0, 6.4)),
      with_function<rosenbrock>(described("rosenbrock", "Rosenbrock valley", "(1 − x)² + 100 (y − x²)²", {-1.2, 1}, -2, 2)),
  };
}

}  // namespace cautious::lab
