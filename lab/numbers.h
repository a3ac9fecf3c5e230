// Numbers of the laboratory, double throughout: points, matrices, and random numbers that are the same on every machine.
#pragma once

#include <cmath>
#include <cstdint>
#include <numbers>
#include <random>
#include <span>
#include <vector>

#include <Eigen/Core>

namespace cautious::lab {

// Points and matrices of the laboratory, double throughout.

using Point = std::vector<double>;
using PointView = std::span<const double>;

// Row after row, as the optimizers see matrices.
using Matrix = Eigen::Matrix<double, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;

inline Eigen::Map<const Eigen::VectorXd> as_vector(PointView x) { return {x.data(), static_cast<Eigen::Index>(x.size())}; }
inline Eigen::Map<Eigen::VectorXd> as_vector(std::span<double> x) { return {x.data(), static_cast<Eigen::Index>(x.size())}; }

// Random numbers of the laboratory: the same on every machine, one stream per seed.

class Random {
 public:
  explicit Random(std::uint64_t seed) : engine_(seed) {}

  double uniform() { return static_cast<double>(engine_() >> 11) * 0x1p-53; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double sign() { return engine_() >> 63 != 0 ? 1 : -1; }
  double normal() { return std::sqrt(-2 * std::log1p(-uniform())) * std::cos(2 * std::numbers::pi * uniform()); }
  std::size_t below(std::size_t count) { return static_cast<std::size_t>(engine_() % count); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace cautious::lab
