// Inclusions with known solutions for the tests of the integrator.
#pragma once

#include <cmath>
#include <functional>
#include <span>
#include <vector>

#include <Eigen/Core>

#include "lab/dynamics/inclusion.h"

namespace cautious::lab {

// z' = a + sum_i side_i columns_i with q_i = p_i = (rows z)_i: surfaces through 0, a constant field between them.
inline Inclusion relay(const Eigen::VectorXd& a, const Eigen::MatrixXd& columns, const Eigen::MatrixXd& rows) {
  Inclusion made;
  made.size = static_cast<std::size_t>(a.size());
  made.switches = static_cast<std::size_t>(rows.rows());
  made.field = [a, columns](double, PointView, PointView side, std::span<double> dz) {
    as_vector(dz) = a + columns * as_vector(side);
  };
  made.indicator = made.drive = [rows](PointView z, std::span<double> q) { as_vector(q) = rows * as_vector(z); };
  made.drive_rate = [rows](PointView, PointView dz, std::span<double> dp) { as_vector(dp) = rows * as_vector(dz); };
  made.settle = [](std::span<double>, const std::vector<bool>&) {};
  return made;
}

// f = r(x)^2 / 2.
struct Square {
  std::size_t size = 2;
  std::function<double(PointView)> r;
  std::function<Eigen::VectorXd(PointView)> gradient;
  std::function<Eigen::MatrixXd(PointView)> hessian;

  Eigen::VectorXd f_gradient(PointView x) const { return r(x) * gradient(x); }
  Eigen::MatrixXd f_hessian(PointView x) const {
    const Eigen::VectorXd g = gradient(x);
    return g * g.transpose() + r(x) * hessian(x);
  }
  // Filippov's velocity on r = 0: theta = B / (A + B) of the side r > 0, where A and B are the parts of both signs of
  // w_i = r_i x_i.
  Eigen::VectorXd sliding_velocity(PointView x, double lambda) const {
    const Eigen::VectorXd g = gradient(x);
    double a = 0, b = 0;
    for (std::size_t i = 0; i < size; ++i) {
      const double w = g[static_cast<Eigen::Index>(i)] * x[i];
      (w > 0 ? a : b) += std::abs(w);
    }
    Eigen::VectorXd v(g.size());
    for (std::size_t i = 0; i < size; ++i) {
      const auto k = static_cast<Eigen::Index>(i);
      v[k] = -lambda * (g[k] * x[i] > 0 ? b : a) / (a + b) * x[i];
    }
    return v;
  }
};

inline Square line(double b) {
  return {2, [b](PointView x) { return x[0] - x[1] - b; }, [](PointView) -> Eigen::VectorXd { return Eigen::Vector2d(1, -1); },
          [](PointView) -> Eigen::MatrixXd { return Eigen::Matrix2d::Zero(); }};
}

// The sphere of radius 1 about (3, 3, ...).
inline Square sphere(std::size_t size) {
  return {size, [](PointView x) { return (as_vector(x).array() - 3).square().sum() - 1; },
          [](PointView x) -> Eigen::VectorXd { return 2 * (as_vector(x).array() - 3); },
          [size](PointView) -> Eigen::MatrixXd {
            return 2 * Eigen::MatrixXd::Identity(static_cast<Eigen::Index>(size), static_cast<Eigen::Index>(size));
          }};
}

enum class Kind { sgd, sgdm, lion };

// Gradient flow, with momentum (m' = g - m), or Lion (x' = sgn(m), m' = -g - m), each with cautious decay, on f given by its
// gradient and Hessian.
inline Inclusion cautious_flow(Kind kind, std::size_t size, std::function<Eigen::VectorXd(PointView)> gradient,
                               std::function<Eigen::MatrixXd(PointView)> hessian, double lambda) {
  Inclusion made;
  made.switches = size;
  made.size = kind == Kind::sgd ? size : 2 * size;
  made.field = [=](double, PointView z, PointView side, std::span<double> dz) {
    const Eigen::VectorXd g = gradient(z.first(size));
    for (std::size_t i = 0; i < size; ++i) {
      const double g_i = g[static_cast<Eigen::Index>(i)], x = z[i], m = kind == Kind::sgd ? 0 : z[size + i];
      const double sign = kind == Kind::lion ? -1 : 1;
      dz[i] = (kind == Kind::sgd ? -g_i : kind == Kind::sgdm ? -m : side[i]) - lambda * (x + sign * side[i] * std::abs(x)) / 2;
      if (kind != Kind::sgd) dz[size + i] = sign * g_i - m;
    }
  };
  made.drive = [=](PointView z, std::span<double> p) { as_vector(p) = gradient(z.first(size)); };
  made.indicator = [=](PointView z, std::span<double> q) {
    if (kind == Kind::sgd)
      as_vector(q) = gradient(z);
    else
      std::copy(z.begin() + static_cast<std::ptrdiff_t>(size), z.end(), q.begin());
  };
  made.drive_rate = [=](PointView z, PointView dz, std::span<double> dp) {
    as_vector(dp) = hessian(z.first(size)) * as_vector(dz.first(size));
  };
  made.settle = [=](std::span<double> z, const std::vector<bool>& sliding) {
    for (std::size_t i = 0; kind != Kind::sgd && i < size; ++i) {
      if (sliding[i]) z[size + i] = 0;
    }
  };
  return made;
}

inline Inclusion cautious_flow(Kind kind, const Square& f, double lambda) {
  return cautious_flow(
      kind, f.size, [f](PointView x) { return f.f_gradient(x); }, [f](PointView x) { return f.f_hessian(x); }, lambda);
}

inline bool slides(const FlowPoint& point) {
  for (const bool s : point.sliding) {
    if (s) return true;
  }
  return false;
}

}  // namespace cautious::lab
