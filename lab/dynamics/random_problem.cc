#include "lab/dynamics/random_problem.h"

#include <algorithm>
#include <cmath>

namespace cautious::lab {
namespace {

Matrix normal_matrix(Random& random, std::size_t rows, std::size_t cols, double scale) {
  Matrix a(rows, cols);
  std::generate_n(a.data(), a.size(), [&] { return scale * random.normal(); });
  return a;
}

Point normal_point(Random& random, std::size_t d, double scale) {
  Point x(d);
  std::generate(x.begin(), x.end(), [&] { return scale * random.normal(); });
  return x;
}

Problem named(std::string name, Random& random, std::size_t d) {
  Problem problem;
  problem.title = problem.name = std::move(name);
  problem.tensors = {{"x", {static_cast<std::int64_t>(d)}}};
  problem.start = normal_point(random, d, 2);
  return problem;
}

}  // namespace

Problem random_quadratic(Random& random, std::size_t d, std::size_t rank) {
  Problem problem = named(rank < d ? "degenerate quadratic" : "quadratic", random, d);
  problem.formula = "|A x - b|^2 / 2";
  Matrix a = normal_matrix(random, rank, d, 1 / std::sqrt(static_cast<double>(d)));
  if (rank == d) a.diagonal().array() += 1;
  const Matrix square = a.transpose() * a;
  const Point target = normal_point(random, rank, 1.5);
  const Eigen::VectorXd b = as_vector(PointView(target));
  problem.value = [a, b](PointView x) { return (a * as_vector(x) - b).squaredNorm() / 2; };
  problem.gradient = [square, c = Eigen::VectorXd(a.transpose() * b)](PointView x, std::span<double> g) {
    as_vector(g).noalias() = square * as_vector(x) - c;
  };
  problem.hessian = [square](PointView, Matrix& h) { h = square; };
  problem.least = 0;
  return problem;
}

Problem random_waves(Random& random, std::size_t d) {
  Problem problem = random_quadratic(random, d, d);
  problem.title = problem.name = "waves";
  problem.formula = "|A x - b|^2 / 2 + sum of w_j cos(a_j x + c_j)";
  problem.least.reset();
  const Matrix a = normal_matrix(random, 3, d, 1.5 / std::sqrt(static_cast<double>(d)));
  const Point phase = normal_point(random, 3, 3);
  const Eigen::VectorXd c = as_vector(PointView(phase));
  const Eigen::VectorXd w = Eigen::VectorXd::Constant(3, 0.7);
  problem.value = [a, c, w, base = problem.value](PointView x) {
    return base(x) + w.dot(Eigen::VectorXd((a * as_vector(x) + c).array().cos()));
  };
  problem.gradient = [a, c, w, base = problem.gradient](PointView x, std::span<double> g) {
    base(x, g);
    as_vector(g) -= a.transpose() * Eigen::VectorXd(w.array() * (a * as_vector(x) + c).array().sin());
  };
  problem.hessian = [a, c, w, base = problem.hessian](PointView x, Matrix& h) {
    base(x, h);
    h -= a.transpose() * Eigen::VectorXd(w.array() * (a * as_vector(x) + c).array().cos()).asDiagonal() * a;
  };
  return problem;
}

Problem random_ellipsoid(Random& random, std::size_t d) {
  Problem problem = named("ellipsoid", random, d);
  problem.formula = "(sum of w_i (x_i - c_i)^2 - 1)^2 / 4";
  const Point middle = normal_point(random, d, 1.5);
  const Eigen::VectorXd c = as_vector(PointView(middle));
  Eigen::VectorXd w(d);
  std::generate(w.begin(), w.end(), [&] { return random.uniform(0.3, 1); });
  problem.value = [w, c](PointView x) {
    const Eigen::ArrayXd r = (as_vector(x) - c).array();
    return std::pow((w.array() * r * r).sum() - 1, 2) / 4;
  };
  problem.gradient = [w, c](PointView x, std::span<double> g) {
    const Eigen::ArrayXd r = (as_vector(x) - c).array();
    as_vector(g) = ((w.array() * r * r).sum() - 1) * w.array() * r;
  };
  problem.hessian = [w, c](PointView x, Matrix& h) {
    const Eigen::VectorXd r = as_vector(x) - c, wr = w.cwiseProduct(r);
    h = 2 * wr * wr.transpose();
    h.diagonal() += (wr.dot(r) - 1) * w;
  };
  // Near the minimisers, where f is not yet steep.
  for (std::size_t i = 0; i < d; ++i) problem.start[i] = middle[i] + random.normal();
  problem.least = 0;
  return problem;
}

Problem random_problem(Random& random, std::size_t number, std::size_t d) {
  switch (number % 4) {
    case 0:
      return random_quadratic(random, d, d);
    case 1:
      return random_quadratic(random, d, d - 1);
    case 2:
      return random_waves(random, d);
    default:
      return random_ellipsoid(random, d);
  }
}

Problem tilted_plane() {
  constexpr double kNormal[] = {1, 0.5, -0.7}, kOffset = 1.5;
  const auto residual = [=](PointView x) { return kNormal[0] * x[0] + kNormal[1] * x[1] + kNormal[2] * x[2] - kOffset; };
  Problem problem;
  problem.start = {2, 1.5, 1};
  problem.value = [=](PointView x) { return residual(x) * residual(x) / 2; };
  problem.gradient = [=](PointView x, std::span<double> g) {
    for (std::size_t i = 0; i < 3; ++i) g[i] = residual(x) * kNormal[i];
  };
  problem.hessian = [=](PointView, Matrix& h) {
    const Eigen::Vector3d normal(kNormal[0], kNormal[1], kNormal[2]);
    h = normal * normal.transpose();
  };
  return problem;
}

}  // namespace cautious::lab
