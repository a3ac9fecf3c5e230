// Sliding of cautious decay on manifolds of minimisers, against formulas for the selectors and against brute force.
#include "lab/dynamics/sliding.h"

#include <cmath>
#include <random>

#include <gtest/gtest.h>
#include <Eigen/LU>

#include "inclusion_fixture.h"
#include "lab/linear.h"

namespace cautious::lab {
namespace sliding_test {

using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kLambda = 0.5;

// Classical Runge-Kutta with many steps, of a field that is smooth.
VectorXd follow(const std::function<VectorXd(const VectorXd&)>& field, VectorXd x, double time, int steps) {
  const double h = time / steps;
  for (int k = 0; k < steps; ++k) {
    const VectorXd k1 = field(x), k2 = field(x + h / 2 * k1), k3 = field(x + h / 2 * k2), k4 = field(x + h * k3);
    x += h / 6 * (k1 + 2 * k2 + 2 * k3 + k4);
  }
  return x;
}

VectorXd x_of(const FlowPoint& point, std::size_t size) { return as_vector(PointView(point.z).first(size)); }

const FlowPoint* first_sliding(const Trajectory& trajectory) {
  for (const FlowPoint& point : trajectory.points) {
    if (slides(point)) return &point;
  }
  return nullptr;
}

VectorXd velocity(const Inclusion& inclusion, const FlowPoint& point) {
  Point dz(inclusion.size);
  inclusion.field(point.t, point.z, point.side, dz);
  return as_vector(PointView(dz));
}

TEST(SlidingBox, SolvesTheComplementarityProblem) {
  std::mt19937_64 random(7);
  std::normal_distribution<double> normal;
  for (int trial = 0; trial < 400; ++trial) {
    const int n = 1 + trial % 6, rank = 1 + trial % 4;
    const MatrixXd factor = MatrixXd::NullaryExpr(n, rank, [&] { return normal(random); });
    const VectorXd scale = VectorXd::NullaryExpr(n, [&] { return 0.5 + std::abs(normal(random)); });
    // Where the rank is below n, c lies in the range of b, as it does for a gradient.
    const MatrixXd b = -(factor * factor.transpose()) * scale.asDiagonal();
    const VectorXd c = 2 * factor * VectorXd::NullaryExpr(rank, [&] { return normal(random); });
    VectorXd tau;
    solve_box(b, c, tau);
    const VectorXd y = c + b * tau;
    for (Eigen::Index i = 0; i < n; ++i) {
      EXPECT_LE(std::abs(tau[i]), 1 + 1e-12);
      if (tau[i] < 1 - 1e-9) {
        EXPECT_LE(y[i], 1e-7) << trial;
      }
      if (tau[i] > -1 + 1e-9) {
        EXPECT_GE(y[i], -1e-7) << trial;
      }
    }
    // No other solution is shorter: along b's null space, within the box and with the same bounds, |tau| only grows.
    const MatrixXd null = Eigen::FullPivLU<MatrixXd>(b).setThreshold(1e-9).kernel();
    for (Eigen::Index j = 0; rank < n && y.norm() < 1e-7 && j < null.cols(); ++j) {
      for (const double step : {1e-3, -1e-3}) {
        const VectorXd other = tau + step * null.col(j).normalized();
        if (other.cwiseAbs().maxCoeff() <= 1) {
          EXPECT_GT(other.norm(), tau.norm()) << trial;
        }
      }
    }
  }
}

TEST(Sliding, OnALineThroughTheOriginItShrinksAtHalfTheDecay) {
  const Inclusion inclusion = cautious_flow(Kind::sgd, line(0), kLambda);
  const Trajectory found = flow(inclusion, {3, 1}, {.t_end = 5, .relative = 1e-10, .absolute = 1e-12});
  const FlowPoint* slid = first_sliding(found);
  ASSERT_NE(slid, nullptr);
  for (const FlowPoint& point : found.points) {
    if (!slides(point)) continue;
    EXPECT_NEAR(point.z[0], slid->z[0] * std::exp(-kLambda / 2 * (point.t - slid->t)), 1e-9);
    EXPECT_NEAR(point.z[1], point.z[0], 1e-12);
    EXPECT_NEAR(point.side[0], 0, 1e-9);  // both selectors are 1/2
  }
  // Until then r = x1 - x2 obeys x1' = -r - lambda x1, x2' = r.
  const VectorXd met =
      follow([](const VectorXd& x) -> VectorXd { return Eigen::Vector2d(x[1] - x[0] - kLambda * x[0], x[0] - x[1]); },
             Eigen::Vector2d(3, 1), slid->t, 1000);
  EXPECT_NEAR(met[0] - met[1], 0, 1e-9);
  EXPECT_NEAR(met[0], slid->z[0], 1e-9);
}

TEST(Sliding, OnALineBesideTheOriginTheSelectorsBalance) {
  const Square f = line(1);
  const Trajectory found =
      flow(cautious_flow(Kind::sgd, f, kLambda), {3, 1}, {.t_end = 5, .relative = 1e-10, .absolute = 1e-12});
  const FlowPoint* slid = first_sliding(found);
  ASSERT_NE(slid, nullptr);
  const FlowPoint& end = found.points.back();
  const auto reduced = [](const VectorXd& x) -> VectorXd {
    return VectorXd::Constant(2, -kLambda * x[0] * x[1] / (x[0] + x[1]));
  };
  EXPECT_LT((follow(reduced, x_of(*slid, 2), end.t - slid->t, 2000) - x_of(end, 2)).norm(), 1e-8);
  EXPECT_NEAR(end.side[0], 2 * end.z[1] / (end.z[0] + end.z[1]) - 1, 1e-8);  // theta = x2 / (x1 + x2)
}

TEST(Sliding, OnTheCircleItGoesToTheExtremePointOrStaysOnTheNearArc) {
  const Square f = sphere(2);
  const Inclusion inclusion = cautious_flow(Kind::sgd, f, kLambda);
  const Trajectory found = flow(inclusion, {3.3, 2.8}, {.t_end = 5});
  std::size_t moving = 0;
  for (const FlowPoint& point : found.points) {
    if (!slides(point) || point.z[0] < 3 + 1e-6) continue;
    ++moving;
    EXPECT_NEAR(f.r(point.z), 0, 1e-7);
    EXPECT_LT((velocity(inclusion, point) - f.sliding_velocity(point.z, kLambda)).norm(), 1e-6);
  }
  EXPECT_GT(moving, 5u);
  EXPECT_NEAR(found.points.back().z[0], 3, 1e-8);
  EXPECT_NEAR(found.points.back().z[1], 2, 1e-8);

  const Trajectory near = flow(inclusion, {2.8, 2.7}, {.t_end = 5});
  const FlowPoint* slid = first_sliding(near);
  ASSERT_NE(slid, nullptr);
  EXPECT_LT(slid->t, 1);
  EXPECT_LT((x_of(near.points.back(), 2) - x_of(*slid, 2)).norm(), 1e-10) << "at rest: no coordinate can shrink alone";
  EXPECT_NEAR(slid->side[0], -1, 1e-9);
  EXPECT_NEAR(f.r(near.points.back().z), 0, 1e-12);
}

TEST(Sliding, ManyCoordinatesMoveWithOneSelectorPerSide) {
  const Square f = sphere(4);
  const Inclusion inclusion = cautious_flow(Kind::sgd, f, kLambda);
  const Trajectory found = flow(inclusion, {3.3, 2.8, 3.1, 2.9}, {.t_end = 5});
  std::size_t moving = 0;
  for (const FlowPoint& point : found.points) {
    const VectorXd apart = x_of(point, 4).array() - 3;
    if (!slides(point) || apart.cwiseAbs().minCoeff() < 1e-6) continue;
    ++moving;
    EXPECT_LT((velocity(inclusion, point) - f.sliding_velocity(point.z, kLambda)).norm(), 1e-6) << point.t;
  }
  EXPECT_GT(moving, 3u);
  EXPECT_LT((x_of(found.points.back(), 4).array() - 3).maxCoeff(), 1e-8) << "at rest only where all of dr/dx_i <= 0";
}

// On r = 0 of this surface dr/dx3 gets to 0 and stays: the third switch leaves its class and is held alone. Against Euler's
// method, whose chatter about the surfaces has the same limit.
TEST(Sliding, ASwitchWhoseDriveVanishesIsHeld) {
  const Square f{3,
                 [](PointView x) {
                   const double u = x[2] - 0.3;
                   return 0.5 * x[0] - 2 * x[1] + 0.5 * u * u - 0.7 * u * x[0] + 2;
                 },
                 [](PointView x) -> VectorXd { return Eigen::Vector3d(0.5 - 0.7 * (x[2] - 0.3), -2, x[2] - 0.3 - 0.7 * x[0]); },
                 [](PointView) -> MatrixXd {
                   MatrixXd h = MatrixXd::Zero(3, 3);
                   h(0, 2) = h(2, 0) = -0.7;
                   h(2, 2) = 1;
                   return h;
                 }};
  const Inclusion inclusion = cautious_flow(Kind::sgd, f, kLambda);
  const Trajectory found = flow(inclusion, {1, 1, 1.5}, {.t_end = 2});
  const FlowPoint& end = found.points.back();
  EXPECT_NEAR(f.gradient(end.z)[2], 0, 1e-7);
  EXPECT_LT(std::abs(end.side[2]), 0.9 * std::abs(end.side[0]));

  Eigen::Vector3d x(1, 1, 1.5);
  const double h = 1e-5;
  for (int k = 0; k < 200000; ++k) {
    const double r = f.r({x.data(), 3});
    const Eigen::Vector3d g(r * (0.5 - 0.7 * (x[2] - 0.3)), -2 * r, r * (x[2] - 0.3 - 0.7 * x[0]));
    for (Eigen::Index i = 0; i < 3; ++i) x[i] -= h * (g[i] + (g[i] * x[i] >= 0 ? kLambda * x[i] : 0));
  }
  EXPECT_LT((x - x_of(end, 3)).norm(), 2e-3);
}

// With momentum the trajectory swings about the line, faster and faster; the sliding that replaces it must be where the swings
// go. The finer run swings on for long after the coarser one slides.
TEST(Sliding, SwingsOfMomentumTendToTheSameSliding) {
  const Square f = line(0.3);
  for (const Kind kind : {Kind::sgdm, Kind::lion}) {
    const Inclusion inclusion = cautious_flow(kind, f, kLambda);
    const Point start = kind == Kind::sgdm ? Point{30, 28, 0, 0} : Point{3, 2, 0, 0};
    const auto run = [&](double within) {
      return flow(inclusion, start, {.t_end = 17, .relative = 1e-9, .absolute = 1e-11, .slide_within = within});
    };
    const Trajectory coarse = run(1e-4), fine = run(1e-6);
    const FlowPoint *first = first_sliding(coarse), *second = first_sliding(fine);
    ASSERT_NE(first, nullptr);
    EXPECT_LT(first->t, 12);
    EXPECT_TRUE(second == nullptr || second->t > first->t + 3);
    const VectorXd apart = x_of(coarse.points.back(), 2) - x_of(fine.points.back(), 2);
    EXPECT_LT(std::abs(apart.sum()), 1e-3) << "along the line";
    if (kind == Kind::sgdm) {
      for (const FlowPoint& point : coarse.points) {
        if (!slides(point)) continue;
        EXPECT_LT((velocity(inclusion, point).head(2) - f.sliding_velocity(PointView(point.z).first(2), kLambda)).norm(), 1e-7);
      }
    }
  }
}

// Table 1: H falls along every trajectory, through crossings, swings and sliding of dependent switches.
TEST(Sliding, LyapunovFunctionsFall) {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal;
  for (const auto& [size, rank] : {std::pair{2, 2}, {3, 1}, {3, 2}, {5, 2}, {5, 3}, {5, 5}}) {
    const MatrixXd a = MatrixXd::NullaryExpr(rank, size, [&] { return normal(random); });
    const VectorXd b = VectorXd::NullaryExpr(rank, [&] { return normal(random); });
    const auto d = static_cast<std::size_t>(size);
    Point x(d);
    for (double& v : x) v = 2 * normal(random);
    for (const Kind kind : {Kind::sgd, Kind::sgdm, Kind::lion}) {
      const Inclusion inclusion = cautious_flow(
          kind, d, [=](PointView z) -> VectorXd { return a.transpose() * (a * as_vector(z) - b); },
          [=](PointView) -> MatrixXd { return a.transpose() * a; }, kLambda);
      Point z = x;
      z.resize(inclusion.size);
      const Trajectory found = flow(inclusion, z, {.t_end = 22, .slide_within = 1e-6});
      EXPECT_EQ(found.end, FlowEnd::time);
      double last = INFINITY;
      for (const FlowPoint& point : found.points) {
        double h = (a * x_of(point, d) - b).squaredNorm() / 2;
        for (std::size_t i = 0; kind != Kind::sgd && i < d; ++i) {
          const double m = point.z[d + i], mx = m * point.z[i];
          h += kind == Kind::sgdm ? m * m / 2 + kLambda * std::max(0.0, mx) : std::abs(m) + kLambda * std::max(0.0, -mx);
        }
        ASSERT_LE(h, last + 1e-7) << size << ' ' << rank << ' ' << static_cast<int>(kind) << ' ' << point.t;
        last = h;
      }
      if (kind == Kind::sgd && rank < size) {
        EXPECT_LT(last, 1e-8);
      }
    }
  }
}

TEST(Sliding, LionMovesAlongTheLineByTheBalanceOfSigns) {
  const Inclusion inclusion = cautious_flow(Kind::lion, line(1), kLambda);
  const Point z{2.2, 1.2, 0, 0};
  const Point side = sliding_sides(inclusion, 0, z, {1, 1}, {true, true});
  // x1' = tau (1 + lambda x1 / 2) - lambda x1 / 2 and x2' = -tau (1 + lambda x2 / 2) - lambda x2 / 2 are equal.
  const double tau = kLambda / 2 * (z[0] - z[1]) / (2 + kLambda / 2 * (z[0] + z[1]));
  EXPECT_NEAR(side[0], tau, 1e-12);
  EXPECT_NEAR(side[1], -tau, 1e-12);
}

// Two equations, four coordinates: of the selectors that hold both the ones of least norm.
TEST(Sliding, OfManySelectorsTheLeast) {
  MatrixXd a(2, 4);
  a << 1, -2, 0.5, 1, 0.3, 1, -1, 0.2;
  const Inclusion inclusion = cautious_flow(
      Kind::sgd, 4, [a](PointView x) -> VectorXd { return a.transpose() * (a * (as_vector(x).array() - 1).matrix()); },
      [a](PointView) -> MatrixXd { return a.transpose() * a; }, kLambda);
  const Point z{1, 1, 1, 1};
  const Point side = sliding_sides(inclusion, 0, z, Point(4, 1), std::vector<bool>(4, true));
  // a diag(x) (1 + side) = 0 with x = 1: the pseudo-inverse gives the least one, if it is in the box.
  const VectorXd least = least_norm(a, -a * VectorXd::Ones(4));
  ASSERT_LT(least.cwiseAbs().maxCoeff(), 1);
  EXPECT_LT((as_vector(PointView(side)) - least).norm(), 1e-9);
}

}  // namespace sliding_test
}  // namespace cautious::lab
