// Points and matrices of the laboratory, double throughout.
#pragma once

#include <span>
#include <vector>

#include <Eigen/Core>

namespace cautious::lab {

using Point = std::vector<double>;
using PointView = std::span<const double>;

// Row after row, as the optimizers see matrices.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline Eigen::Map<const Eigen::VectorXd> as_vector(PointView x) { return {x.data(), static_cast<Eigen::Index>(x.size())}; }
inline Eigen::Map<Eigen::VectorXd> as_vector(std::span<double> x) { return {x.data(), static_cast<Eigen::Index>(x.size())}; }

}  // namespace cautious::lab
