#include "lab/fixedpoint/fixedpoint_target.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <Eigen/SVD>

namespace cautious::lab::fixedpoint {

std::string_view name_of(Target target) {
  constexpr std::array<std::string_view, 8> names{
      "f",         "f + λ|x|²/2",          "f in the box",          "f in the ball", "f + eλ|x|²/2 in the box",
      "f + e|x|₁", "f + e|x|₁ in the box", "f in the spectral ball"};
  return names.at(static_cast<std::size_t>(target));
}

double soft(double z, double e) { return std::copysign(std::max(0.0, std::abs(z) - e), z); }

Matrix with_clipped_singular_values(const Matrix& matrix) {
  const Eigen::JacobiSVD<Eigen::MatrixXd> svd(matrix, Eigen::ComputeThinU | Eigen::ComputeThinV);
  return svd.matrixU() * svd.singularValues().cwiseMin(1).asDiagonal() * svd.matrixV().transpose();
}

Point nearest(const Surrogate& surrogate, PointView z) {
  Point y(z.begin(), z.end());
  auto vector = as_vector(std::span<double>(y));
  switch (surrogate.target) {
    case Target::original:
      break;
    case Target::ridge:
      vector /= 2;
      break;
    case Target::box:
      vector = vector.cwiseMax(-1).cwiseMin(1).eval();
      break;
    case Target::ball:
      vector /= std::max(1.0, vector.norm());
      break;
    case Target::huber:
      vector = (vector / (1 + surrogate.e)).cwiseMax(-1).cwiseMin(1).eval();
      break;
    case Target::lasso:
      for (double& entry : y) entry = soft(entry, surrogate.e);
      break;
    case Target::lasso_box:
      for (double& entry : y) entry = std::clamp(soft(entry, surrogate.e), -1.0, 1.0);
      break;
    case Target::spectral: {
      const auto columns = static_cast<Eigen::Index>(y.size()) / surrogate.rows;
      Eigen::Map<Matrix> matrix(y.data(), surrogate.rows, columns);
      matrix = with_clipped_singular_values(matrix);
      break;
    }
  }
  return y;
}

double residual(const Surrogate& surrogate, PointView y, PointView g) {
  Point z(y.size());
  as_vector(std::span<double>(z)) = as_vector(y) - as_vector(g);
  const Point near = nearest(surrogate, z);
  return (as_vector(y) - as_vector(PointView(near))).lpNorm<Eigen::Infinity>();
}

double barrier_residual(PointView y, PointView g, double eps) {
  const auto position = as_vector(y).array();
  return (as_vector(g).array() + eps * position / (1 - position.abs())).abs().maxCoeff();
}

}  // namespace cautious::lab::fixedpoint
