// The named problems. In circle, parabola and surface f grows with a residual r whose zeros are minimisers.
//
// The surface is for a picture: its valley floor is symmetric about x = y and bends at (2.5, 2.5). Both coordinates shrink
// along an arm, where |x - y| > 1; the Pareto part is the rest. The best point of the box |x|, |y| <= 2 is its corner. The
// start lies inside the bend, so that the way down ends high up on an arm. The logarithm keeps the hills low.
#include <cmath>
#include <utility>

#include "base/text.h"
#include "lab/problem/problem.h"

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

Problem titled(std::string name, std::string title, std::string formula, Point start, double view_low, double view_high) {
  Problem problem;
  problem.name = std::move(name);
  problem.title = std::move(title);
  problem.formula = std::move(formula);
  problem.start = std::move(start);
  problem.view_low = view_low;
  problem.view_high = view_high;
  return problem;
}

// The problems of matrices. All have least value 0 on a manifold of minimisers.

using Index = Eigen::Index;

// Literals, row after row.
Matrix matrix(Index rows, Index columns, std::initializer_list<double> entries) {
  return Eigen::Map<const Matrix>(entries.begin(), rows, columns);
}

// f = |A x - b|^2 / 2
Problem least_squares() {
  const Matrix a = matrix(3, 8, {0.9,  -0.4, 0.3,  1.2,  -0.7, 0.2,  0.5,  -0.1,  //
                                 -0.3, 1.1,  0.6,  -0.5, 0.4,  0.8,  -0.9, 0.7,   //
                                 0.2,  0.5,  -1.0, 0.1,  0.6,  -0.3, 0.8,  1.3});
  const Eigen::Vector3d b(2.5, -1.5, 3.0);
  Problem problem;
  problem.name = "least-squares";
  problem.title = "Over-parameterised least squares";
  problem.formula = "½ |A x − b|², 3 equations, 8 unknowns";
  problem.tensors = {{"x", {8}}};
  problem.start = {1.5, -0.8, 0.6, -1.2, 2.0, 0.4, -1.7, 0.9};
  problem.least = 0;
  problem.value = [=](PointView x) { return 0.5 * (a * as_vector(x) - b).squaredNorm(); };
  problem.gradient = [=](PointView x, std::span<double> g) { as_vector(g) = a.transpose() * (a * as_vector(x) - b); };
  problem.hessian = [=](PointView, Matrix& h) { h = a.transpose() * a; };
  return problem;
}

// The index in x of a factor's entry (i, j).
struct Layout {
  Index offset, rows, columns, row_step, column_step;
  Index place(Index i, Index j) const { return offset + i * row_step + j * column_step; }
};

// f = <(L R - T) S, L R - T> / 2 with S symmetric; L and R are parts of x.
struct Product {
  Layout left, right;
  Matrix target, weight;

  Matrix factor(const Layout& layout, PointView x) const {
    return Matrix::NullaryExpr(layout.rows, layout.columns,
                               [&](Index i, Index j) { return x[static_cast<std::size_t>(layout.place(i, j))]; });
  }

  // The gradient by L R.
  Matrix slope(PointView x) const { return (factor(left, x) * factor(right, x) - target) * weight; }

  double value(PointView x) const {
    const Matrix residual = factor(left, x) * factor(right, x) - target;
    return 0.5 * (residual * weight).cwiseProduct(residual).sum();
  }

  static void scatter(const Layout& layout, const Matrix& entries, std::span<double> g) {
    for (Index i = 0; i < layout.rows; ++i) {
      for (Index j = 0; j < layout.columns; ++j) g[static_cast<std::size_t>(layout.place(i, j))] = entries(i, j);
    }
  }

  void gradient(PointView x, std::span<double> g) const {
    const Matrix by_product = slope(x);
    scatter(left, by_product * factor(right, x).transpose(), g);
    scatter(right, factor(left, x).transpose() * by_product, g);
  }

  // J S J' with J the derivatives of the entries of L R, and the second derivatives of L R, which pair L(i, k) with R(k, j).
  void hessian(PointView x, Matrix& h) const {
    const Matrix l = factor(left, x), r = factor(right, x), by_product = slope(x);
    const Index rows = target.rows(), columns = target.cols(), size = l.size() + r.size();
    h.setZero(size, size);
    for (Index i = 0; i < rows; ++i) {
      Matrix jacobian = Matrix::Zero(size, columns);  // of row i
      for (Index k = 0; k < l.cols(); ++k) {
        for (Index j = 0; j < columns; ++j) {
          jacobian(left.place(i, k), j) = r(k, j);
          jacobian(right.place(k, j), j) = l(i, k);
          h(left.place(i, k), right.place(k, j)) += by_product(i, j);
          h(right.place(k, j), left.place(i, k)) += by_product(i, j);
        }
      }
      h += jacobian * weight * jacobian.transpose();
    }
    h = (0.5 * (h + h.transpose())).eval();
  }
};

Problem with_product(Problem problem, const Product& product) {
  problem.least = 0;
  problem.value = [=](PointView x) { return product.value(x); };
  problem.gradient = [=](PointView x, std::span<double> g) { product.gradient(x, g); };
  problem.hessian = [=](PointView x, Matrix& h) { product.hessian(x, h); };
  return problem;
}

// f = |W2 W1 X - Y|^2 / (2N), Y = A X.
Problem deep_linear() {
  const Matrix inputs = matrix(4, 6, {1.0,  -0.5, 0.3,  0.8,  -1.2, 0.4,   //
                                      0.2,  0.9,  -0.7, 0.5,  0.6,  -1.1,  //
                                      -0.6, 0.4,  1.1,  -0.9, 0.3,  0.7,   //
                                      0.5,  -0.8, 0.2,  1.0,  -0.4, 0.9});
  const Matrix map = matrix(2, 4,
                            {1.5, -0.5, 0.8, 0.4,  //
                             -0.6, 1.2, 0.3, -1.0});
  Problem problem;
  problem.name = "deep-linear";
  problem.title = "Deep linear network";
  problem.formula = "|W₂ W₁ X − Y|² / (2N), W₁ 3 × 4, W₂ 2 × 3, N = 6";
  problem.tensors = {{"W1", {3, 4}}, {"W2", {2, 3}}};
  problem.start = {0.7, -0.3, 0.5, 0.2, -0.4, 0.9, 0.1, -0.6, 0.3, 0.4, -0.8, 1.1, 0.6, -0.5, 0.9, 0.2, 1.0, -0.7};
  const Matrix weight = inputs * inputs.transpose() / static_cast<double>(inputs.cols());
  return with_product(problem, {{12, 2, 3, 3, 1}, {0, 3, 4, 4, 1}, map, weight});
}

// f = |U V' - M|^2 / 4, M of rank 2.
Problem factorisation() {
  const Matrix tall = matrix(4, 2, {1.2, -0.5, 0.4, 1.0, -0.8, 0.6, 1.5, 0.3});
  const Matrix wide = matrix(2, 3, {1.0, -0.6, 0.9, 0.5, 1.1, -0.7});
  Problem problem;
  problem.name = "factorisation";
  problem.title = "Matrix factorisation";
  problem.formula = "¼ |U Vᵀ − M|², U 4 × 2, V 3 × 2, M of rank 2";
  problem.tensors = {{"U", {4, 2}}, {"V", {3, 2}}};
  problem.start = {0.9, 0.6, -0.3, 1.4, 0.2, -0.7, 1.1, -0.4, 1.3, -0.5, 0.4, 0.8, -0.6, 1.0};
  return with_product(problem, {{0, 4, 2, 2, 1}, {8, 2, 3, 1, 2}, tall * wide, 0.5 * Matrix::Identity(3, 3)});
}

}  // namespace

const std::vector<Problem>& problems() {
  static const std::vector<Problem> all{
      with_function<circle>(titled("circle", "Circle", "((y − 3)² + (x − 3)² − 1)²", {1.4, 5.2}, 0, 5.7)),
      with_function<parabola>(titled("parabola", "Parabola", "(y − 3 − (x − 3)²)²", {5.4, 4.4}, 0, 5.7)),
      with_function<surface>(titled("surface", "Surface", "log(1 + (x + y − 5 − (x − y)²/2)²)", {3.9, 5.2}, 0, 6.4)),
      with_function<rosenbrock>(titled("rosenbrock", "Rosenbrock valley", "(1 − x)² + 100 (y − x²)²", {-1.2, 1}, -2, 2)),
      least_squares(),
      deep_linear(),
      factorisation(),
  };
  return all;
}

const Problem& problem(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Problem& known : problems()) names.push_back(known.name);
  return problems()[base::index_of_name("problem", name, names)];
}

}  // namespace cautious::lab
