// Nearest stationary points against closed forms, and local Pareto optimality on hand-solved cases, on the arcs of the paper's
// circle and parabola, and on random linear manifolds against the enumeration of all extreme rays.
#include "lab/problem/minimisers.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include <gtest/gtest.h>
#include <Eigen/LU>

#include "lab/linear.h"
#include "lab/numbers.h"

namespace cautious::lab {

void PrintTo(Pareto pareto, std::ostream* out) {
  *out << (pareto == Pareto::optimal ? "optimal" : pareto == Pareto::beaten ? "beaten" : "undecided");
}

namespace pareto_test {

using Eigen::Index;
using Eigen::MatrixXd;
using Eigen::VectorXd;

constexpr double kPi = std::numbers::pi;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

VectorXd vector_of(const Point& x) { return as_vector(PointView(x)); }
Point point_of(const VectorXd& x) { return {x.begin(), x.end()}; }

// |A x - b|^2, whose minimisers are a linear manifold if A x = b has solutions.
Problem squares(const MatrixXd& a, const VectorXd& b) {
  Problem made;
  made.start.assign(static_cast<std::size_t>(a.cols()), 0);
  made.value = [=](PointView x) { return (a * as_vector(x) - b).squaredNorm(); };
  made.gradient = [=](PointView x, std::span<double> g) { as_vector(g) = 2 * a.transpose() * (a * as_vector(x) - b); };
  made.hessian = [=](PointView, Matrix& h) { h = 2 * a.transpose() * a; };
  return made;
}

// x on the plane a'x = b, b chosen so.
Problem plane(const VectorXd& a, const Point& x) { return squares(a.transpose(), VectorXd::Constant(1, a.dot(vector_of(x)))); }

// The sum of (x_i - c_i)^order.
Problem powers(int order, const Point& c) {
  Problem made;
  made.start.assign(c.size(), 0);
  const auto sum = [=](PointView x) {
    double f = 0;
    for (std::size_t i = 0; i < c.size(); ++i) f += std::pow(x[i] - c[i], order);
    return f;
  };
  made.value = sum;
  made.gradient = [=](PointView x, std::span<double> g) {
    for (std::size_t i = 0; i < c.size(); ++i) g[i] = order * std::pow(x[i] - c[i], order - 1);
  };
  made.hessian = [=](PointView x, Matrix& h) {
    h = Matrix::Zero(std::ssize(c), std::ssize(c));
    for (std::size_t i = 0; i < c.size(); ++i) {
      h(static_cast<Index>(i), static_cast<Index>(i)) = order * (order - 1) * std::pow(x[i] - c[i], order - 2);
    }
  };
  return made;
}

// (x1 x2)^2: its minimisers are both axes, which cross.
Problem crossing() {
  Problem made;
  made.start.assign(2, 1);
  made.value = [](PointView x) { return x[0] * x[0] * x[1] * x[1]; };
  made.gradient = [](PointView x, std::span<double> g) {
    g[0] = 2 * x[0] * x[1] * x[1];
    g[1] = 2 * x[1] * x[0] * x[0];
  };
  made.hessian = [](PointView x, Matrix& h) {
    h.resize(2, 2);
    h << 2 * x[1] * x[1], 4 * x[0] * x[1], 4 * x[0] * x[1], 2 * x[0] * x[0];
  };
  return made;
}

ParetoVerdict verdict_at(const Problem& problem, const Point& x) {
  const auto at = nearest_stationary(problem, x, 1e-9);
  if (!at) {
    ADD_FAILURE() << "not stationary";
    return {};
  }
  const ParetoVerdict verdict = pareto(problem, *at);
  EXPECT_EQ(verdict.better.has_value(), verdict.pareto == Pareto::beaten);
  EXPECT_EQ(verdict.shrinkage == 0, verdict.pareto == Pareto::optimal);
  if (verdict.better) {  // a proof must be one: stationary, no coordinate larger, one smaller, near
    VectorXd g(std::ssize(x));
    problem.gradient(*verdict.better, {g.data(), x.size()});
    EXPECT_LT(g.norm(), 1e-12 * (1 + at->hessian.norm()));
    EXPECT_LT((vector_of(*verdict.better) - vector_of(x)).norm(), 0.02 * vector_of(x).norm());
    const VectorXd fall = vector_of(x).cwiseAbs() - vector_of(*verdict.better).cwiseAbs();
    EXPECT_GT(fall.minCoeff(), -1e-9);
    EXPECT_GT(fall.maxCoeff(), 1e3 * std::max(0.0, -fall.minCoeff()));
  }
  return verdict;
}

Pareto pareto_at(const Problem& problem, const Point& x) { return verdict_at(problem, x).pareto; }

Point on_circle(double angle) { return {3 + std::cos(angle), 3 + std::sin(angle)}; }
Point on_parabola(double x) { return {x, 3 + (x - 3) * (x - 3)}; }

TEST(NearestStationary, OnTheCircleIsAlongTheRadius) {
  for (double angle = 0.1; angle < 6.2; angle += 0.37) {
    for (const double radius : {0.8, 0.95, 1.2, 2.0, 3.0}) {
      const Point x{3 + radius * std::cos(angle), 3 + radius * std::sin(angle)};
      const auto at = nearest_stationary(problem("circle"), x, 10);
      ASSERT_TRUE(at) << angle << " " << radius;
      EXPECT_NEAR(at->distance, std::abs(radius - 1), 1e-12);
      EXPECT_LT((vector_of(at->x) - vector_of(on_circle(angle))).norm(), 1e-7);
      EXPECT_LT(at->gradient_norm, 1e-13);
      ASSERT_EQ(at->tangent.cols(), 1);
      EXPECT_NEAR(std::abs(at->tangent(0, 0)), std::abs(std::sin(angle)), 1e-7);
    }
  }
}

TEST(NearestStationary, OfTheCirclesMiddleIsTheMiddle) {
  const auto at = nearest_stationary(problem("circle"), Point{3.1, 2.95}, 1);
  ASSERT_TRUE(at);
  EXPECT_LT((vector_of(at->x) - VectorXd::Constant(2, 3)).norm(), 1e-12);
  EXPECT_EQ(at->tangent.cols(), 0);
}

TEST(NearestStationary, OnTheParabolaNothingIsNearer) {
  for (const Point& x : {Point{1.4, 5.2}, {5.4, 4.4}, {0.6, 2.1}, {2.1, 2.4}, {0, 0}, {3.3, 4}}) {
    const auto at = nearest_stationary(problem("parabola"), x, 10);
    ASSERT_TRUE(at);
    double least = kInfinity;
    for (double t = 0; t < 6; t += 1e-4) least = std::min(least, (vector_of(on_parabola(t)) - vector_of(x)).norm());
    EXPECT_NEAR(at->distance, least, 1e-7);
    EXPECT_LT(at->gradient_norm, 1e-13);
  }
}

TEST(NearestStationary, OnLinearManifoldsIsTheProjection) {
  Random random(3);
  const auto normal = [&] { return random.normal(); };
  for (int trial = 0; trial < 100; ++trial) {
    const Index n = 3 + trial % 4, rank = 1 + trial % 3;
    const MatrixXd a = MatrixXd::NullaryExpr(rank, n, normal);
    const VectorXd b = VectorXd::NullaryExpr(rank, normal), x = VectorXd::NullaryExpr(n, normal);
    const VectorXd projection = x - least_norm(a, a * x - b);
    const auto at = nearest_stationary(squares(a, b), point_of(x), 100);
    ASSERT_TRUE(at);
    EXPECT_LT((vector_of(at->x) - projection).norm(), 1e-8) << trial;
    ASSERT_EQ(at->tangent.cols(), n - rank);
    EXPECT_LT((a * at->tangent).norm(), 1e-10);
    EXPECT_LT((at->tangent.transpose() * at->tangent - MatrixXd::Identity(n - rank, n - rank)).norm(), 1e-12);
  }
}

TEST(NearestStationary, FollowsTheValleyToAnIsolatedMinimum) {
  const auto at = nearest_stationary(problem("rosenbrock"), Point{-1.2, 1}, 10);
  ASSERT_TRUE(at);
  EXPECT_LT((vector_of(at->x) - VectorXd::Ones(2)).norm(), 1e-12);
  EXPECT_EQ(at->tangent.cols(), 0);
  EXPECT_NEAR(at->distance, 2.2, 1e-12);
}

TEST(NearestStationary, IsNothingBeyondReach) {
  EXPECT_FALSE(nearest_stationary(problem("circle"), Point{3, 4.5}, 0.49));
  EXPECT_TRUE(nearest_stationary(problem("circle"), Point{3, 4.5}, 0.51));
}

// Where the Hessian vanishes although the point is alone, or where branches cross, its null space is not a tangent space.
TEST(NearestStationary, IsNothingAtAMinimumOfAHigherOrder) {
  for (const int order : {4, 6}) {
    for (const double from : {-2.0, 0.5, 0.999, 1.0, 1.7}) {
      EXPECT_FALSE(nearest_stationary(powers(order, {1, 1}), Point{from, 1.5}, 10)) << order << " " << from;
    }
    EXPECT_FALSE(nearest_stationary(powers(order, {1, 1}), Point{1, 1}, 10)) << order;
  }
  EXPECT_FALSE(nearest_stationary(crossing(), Point{0, 0}, 10));
  EXPECT_FALSE(nearest_stationary(crossing(), Point{1e-10, 1e-10}, 10));
  const auto on_axis = nearest_stationary(crossing(), Point{1, 0.1}, 10);
  ASSERT_TRUE(on_axis);
  EXPECT_NEAR(on_axis->x[0], 1, 1e-7);
  EXPECT_NEAR(on_axis->x[1], 0, 1e-12);
}

// Lower left: the front; upper right: a front of its own, locally; the other quarters shrink toward the lower left.
TEST(Pareto, OnTheCircleIsTwoQuarters) {
  const auto truth = [](double angle) { return std::sin(2 * angle) > 0 ? Pareto::optimal : Pareto::beaten; };
  for (double angle = kPi / 4; angle < 2 * kPi; angle += kPi / 2) {
    EXPECT_EQ(pareto_at(problem("circle"), on_circle(angle)), truth(angle)) << angle;
  }
  for (double end = 0; end < 2 * kPi; end += kPi / 2) {
    for (const double away : {0.3, 0.03, 3e-3, 3e-4, 3e-5}) {
      for (const double angle : {end - away, end + away}) {
        EXPECT_EQ(pareto_at(problem("circle"), on_circle(angle)), truth(angle)) << angle << " " << away;
      }
    }
  }
}

// Right and top: both coordinates shrink, one by the second order. Left and bottom are optimal, but not by the first order.
TEST(Pareto, AtTheEndsOfTheQuartersClaimsNothingWrong) {
  EXPECT_EQ(pareto_at(problem("circle"), {4, 3}), Pareto::beaten);
  EXPECT_EQ(pareto_at(problem("circle"), {3, 4}), Pareto::beaten);
  const ParetoVerdict left = verdict_at(problem("circle"), {2, 3});
  EXPECT_EQ(left.pareto, Pareto::undecided);
  EXPECT_NEAR(left.direction[0], 0, 1e-6);
  EXPECT_NEAR(left.direction[1], -3, 1e-6);
  EXPECT_NEAR(left.shrinkage, 3, 1e-6);
  EXPECT_EQ(pareto_at(problem("circle"), {3, 2}), Pareto::undecided);
  EXPECT_EQ(pareto_at(problem("parabola"), {3, 3}), Pareto::undecided);
}

// y falls with x until 3, whatever the branch; left of 0 both magnitudes fall toward it, at 0 only y could.
TEST(Pareto, OnTheParabolaIsBetweenTheAxisAndTheVertex) {
  for (const double x : {0.001, 0.5, 1.0, 2.0, 2.9, 2.999})
    EXPECT_EQ(pareto_at(problem("parabola"), on_parabola(x)), Pareto::optimal) << x;
  for (const double x : {-2.0, -0.1, 3.001, 3.1, 5.0, 7.0})
    EXPECT_EQ(pareto_at(problem("parabola"), on_parabola(x)), Pareto::beaten) << x;
  EXPECT_EQ(pareto_at(problem("parabola"), on_parabola(0)), Pareto::optimal);
}

TEST(Pareto, OnAFallingLineIsBetweenTheIntercepts) {
  const VectorXd a{{1, 1}};  // x1 + x2 = 1
  for (const double x : {0.0, 0.2, 0.5, 1.0}) EXPECT_EQ(pareto_at(plane(a, {1, 0}), {x, 1 - x}), Pareto::optimal) << x;
  for (const double x : {-2.0, -0.01, 1.01, 3.0}) EXPECT_EQ(pareto_at(plane(a, {1, 0}), {x, 1 - x}), Pareto::beaten) << x;
}

TEST(Pareto, OnARisingLineIsBetweenTheIntercepts) {
  const VectorXd a{{1, -1}};  // x1 - x2 = 1
  for (const double x : {0.0, 0.5, 1.0}) EXPECT_EQ(pareto_at(plane(a, {1, 0}), {x, x - 1}), Pareto::optimal) << x;
  for (const double x : {-4.0, -1e-3, 1 + 1e-3, 2.0}) EXPECT_EQ(pareto_at(plane(a, {1, 0}), {x, x - 1}), Pareto::beaten) << x;
}

// The selectors s = (2/3, 1): both coordinates fall by 2, when the second is gone.
TEST(Pareto, DirectionIsTheLongestMotionWithSelectors) {
  const ParetoVerdict verdict = verdict_at(plane(VectorXd{{1, -1}}, {3, 2}), {3, 2});
  EXPECT_EQ(verdict.pareto, Pareto::beaten);
  EXPECT_NEAR(verdict.direction[0], -2, 1e-6);
  EXPECT_NEAR(verdict.direction[1], -2, 1e-6);
  EXPECT_NEAR(verdict.shrinkage, 4, 1e-6);
}

// On a'x = b a direction of D exists unless all a_i sgn(x_i) with x_i != 0 have one sign and none is 0.
TEST(Pareto, OnPlanesIsAMatterOfSigns) {
  const auto at = [](const VectorXd& a, const Point& x) { return pareto_at(plane(a, x), x); };
  EXPECT_EQ(at(VectorXd{{1, 2, 3}}, {1, 1, 1}), Pareto::optimal);
  EXPECT_EQ(at(VectorXd{{-1, -2, -3}}, {1, 1, 1}), Pareto::optimal);
  EXPECT_EQ(at(VectorXd{{1, 2, -3}}, {1, 1, 1}), Pareto::beaten);
  EXPECT_EQ(at(VectorXd{{1, 2, -3}}, {1, 1, -1}), Pareto::optimal);
  EXPECT_EQ(at(VectorXd{{1, 2, 0}}, {1, 1, 1}), Pareto::beaten);
  EXPECT_EQ(at(VectorXd{{1, 2, 0}}, {1, 1, 0}), Pareto::optimal);
  EXPECT_EQ(at(VectorXd{{1, -5, -1}}, {2, 0, -1}), Pareto::optimal);
  EXPECT_EQ(at(VectorXd{{1, -5, 1}}, {2, 0, -1}), Pareto::beaten);
  EXPECT_EQ(at(VectorXd{{1, -5, 1}}, {2, 0, 0}), Pareto::optimal);
  EXPECT_EQ(at(VectorXd{{0, -5, 1}}, {2, 0, 0}), Pareto::beaten);
  EXPECT_EQ(at(VectorXd{{1, 1e-3, 1}}, {1e-5, 1, 1e3}), Pareto::optimal);
  EXPECT_EQ(at(VectorXd{{1, -1, 1}}, {1e-5, 1, 1e3}), Pareto::beaten);
}

TEST(Pareto, AnIsolatedPointIsOptimal) {
  EXPECT_EQ(pareto_at(problem("rosenbrock"), {1, 1}), Pareto::optimal);
  EXPECT_EQ(pareto_at(powers(2, {1, -2, 0, 3}), {1, -2, 0, 3}), Pareto::optimal);
}

TEST(Pareto, WhereEverythingIsStationaryIsTheOrigin) {
  const Problem nothing = squares(MatrixXd::Zero(1, 3), VectorXd::Zero(1));
  EXPECT_EQ(pareto_at(nothing, {0, 0, 0}), Pareto::optimal);
  EXPECT_EQ(pareto_at(nothing, {1e-12, 0, -1e-10}), Pareto::optimal);  // counts as 0
  EXPECT_EQ(pareto_at(nothing, {1, -2, 3}), Pareto::beaten);
  EXPECT_EQ(pareto_at(nothing, {0, 0, 3}), Pareto::beaten);
}

// Columns: an orthonormal basis of {d : rows d = 0}.
MatrixXd null_space(const MatrixXd& rows) {
  Eigen::FullPivLU<MatrixXd> lu(rows);
  lu.setThreshold(1e-10);
  if (lu.dimensionOfKernel() == 0) return MatrixXd(rows.cols(), 0);
  const MatrixXd kernel = lu.kernel();
  return orthogonal_factor(kernel).leftCols(kernel.cols());
}

// D lies in an orthant, so it is {0} or has an extreme ray: a line of the space where d_i = 0 for some more coordinates.
bool has_ray(const MatrixXd& a, const VectorXd& x) {
  const Index n = x.size();
  for (unsigned chosen = 0; chosen < 1U << n; ++chosen) {
    MatrixXd rows(a.rows() + n, n);
    rows << a, MatrixXd::Zero(n, n);
    for (Index i = 0; i < n; ++i) {
      if (x[i] == 0 || (chosen >> i & 1U) != 0) rows(a.rows() + i, i) = 1;
    }
    const MatrixXd space = null_space(rows);
    if (space.cols() != 1) continue;
    const VectorXd shrinks = -space.col(0).cwiseProduct(x.cwiseSign());
    if (shrinks.minCoeff() > -1e-9 || shrinks.maxCoeff() < 1e-9) return true;
  }
  return false;
}

TEST(Pareto, OnLinearManifoldsAgreesWithTheEnumerationOfRays) {
  Random random(5);
  int optimal = 0, beaten = 0;
  for (int trial = 0; trial < 400; ++trial) {
    const Index n = 3 + trial % 4, rank = 1 + static_cast<Index>(random.below(static_cast<std::size_t>(n - 1)));
    const MatrixXd a = MatrixXd::NullaryExpr(rank, n, [&] { return random.uniform() < 0.15 ? 0 : random.normal(); });
    const VectorXd x = VectorXd::NullaryExpr(n, [&] { return random.uniform() < 0.2 ? 0 : random.normal(); });
    const bool ray = has_ray(a, x);
    ++(ray ? beaten : optimal);
    EXPECT_EQ(pareto_at(squares(a, a * x), point_of(x)), ray ? Pareto::beaten : Pareto::optimal) << trial << "\n"
                                                                                                 << a << "\n"
                                                                                                 << x.transpose();
  }
  EXPECT_GT(optimal, 50);
  EXPECT_GT(beaten, 50);
}

// The theorem of the alternative: D = {0} if and only if some w = A'y has w_i sgn(x_i) > 0 wherever x_i != 0.
TEST(Pareto, PointsWithACertificateAreOptimal) {
  Random random(6);
  for (int trial = 0; trial < 200; ++trial) {
    const Index n = 3 + trial % 4, rank = 1 + trial % 2;
    const MatrixXd a = MatrixXd::NullaryExpr(rank, n, [&] { return random.normal(); });
    const VectorXd w = a.transpose() * VectorXd::NullaryExpr(rank, [&] { return random.normal(); });
    VectorXd x = w.cwiseSign().cwiseProduct(VectorXd::NullaryExpr(n, [&] { return random.uniform(0.1, 2); }));
    if (trial % 3 == 0) x[0] = 0;
    EXPECT_EQ(pareto_at(squares(a, a * x), point_of(x)), Pareto::optimal) << trial;
  }
}

}  // namespace pareto_test
}  // namespace cautious::lab
