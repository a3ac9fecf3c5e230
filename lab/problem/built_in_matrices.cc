// The problems of matrices. All have least value 0 on a manifold of minimisers.
#include <utility>

#include "lab/problem/built_in.h"

namespace cautious::lab {
namespace {

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

// Where a factor's entry (i, j) stands in x.
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

std::vector<Problem> matrix_problems() { return {least_squares(), deep_linear(), factorisation()}; }

}  // namespace cautious::lab
