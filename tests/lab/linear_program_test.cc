// Linear programs with solutions by hand, and random ones against the best of all vertices.
#include "lab/linear.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include <gtest/gtest.h>
#include <Eigen/LU>

#include <cautious/error.h>

#include "lab/numbers.h"

namespace cautious::lab {
namespace linear_program_test {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

using Eigen::VectorXd;

LinearProgram program(const VectorXd& c, const Matrix& a, const VectorXd& high) {
  LinearProgram made;
  made.c = c;
  made.a = a;
  made.low = VectorXd::Constant(a.rows(), -kInfinity);
  made.high = high;
  made.y_low = VectorXd::Zero(c.size());
  made.y_high = VectorXd::Constant(c.size(), kInfinity);
  return made;
}

// max 3a + 5b with a <= 4, 2b <= 12, 3a + 2b <= 18 is 36 at (2, 6).
LinearProgram textbook() {
  Matrix a(3, 2);
  a << 1, 0, 0, 2, 3, 2;
  return program(VectorXd{{3, 5}}, a, VectorXd{{4, 12, 18}});
}

TEST(LinearProgram, SolvesTheTextbooksExample) {
  const auto y = solve(textbook());
  ASSERT_TRUE(y);
  EXPECT_NEAR((*y)[0], 2, 1e-9);
  EXPECT_NEAR((*y)[1], 6, 1e-9);
}

TEST(LinearProgram, RowsHaveTwoSidesAndVariablesMayBeNegative) {
  LinearProgram two_sided = program(VectorXd{{-1, -1}}, Matrix::Identity(2, 2), VectorXd{{5, 5}});
  two_sided.low = VectorXd{{-2, -3}};
  two_sided.y_low = VectorXd{{-kInfinity, -1}};
  const auto y = solve(two_sided);
  ASSERT_TRUE(y);
  EXPECT_NEAR((*y)[0], -2, 1e-9);
  EXPECT_NEAR((*y)[1], -1, 1e-9);
}

TEST(LinearProgram, EqualSidesAreAnEquation) {
  Matrix a(1, 3);
  a << 1, 2, 3;
  LinearProgram equation = program(VectorXd{{1, 1, 1}}, a, VectorXd{{6}});
  equation.low = equation.high;
  const auto y = solve(equation);
  ASSERT_TRUE(y);
  EXPECT_NEAR((*y)[0], 6, 1e-9);
  EXPECT_NEAR((*y)[1], 0, 1e-9);
  EXPECT_NEAR((*y)[2], 0, 1e-9);
}

TEST(LinearProgram, InfeasibleIsNothing) {
  LinearProgram empty = textbook();
  empty.low[0] = 4, empty.low[1] = 12;  // then 3a + 2b >= 24
  EXPECT_FALSE(solve(empty));
}

TEST(LinearProgram, UnboundedIsAnError) {
  LinearProgram endless = textbook();
  endless.high.setConstant(kInfinity);
  try {
    solve(endless);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("unbounded"), std::string::npos) << error.what();
  }
}

TEST(LinearProgram, NoRowsLeaveTheBounds) {
  LinearProgram box = program(VectorXd{{1, -1}}, Matrix(0, 2), VectorXd(0));
  box.y_high.setConstant(3);
  const auto y = solve(box);
  ASSERT_TRUE(y);
  EXPECT_EQ((*y)[0], 3);
  EXPECT_EQ((*y)[1], 0);
}

TEST(LinearProgram, OfOneVariableIsAnInterval) {
  Matrix a(3, 1);
  a << 2, -1, 0;
  LinearProgram interval = program(VectorXd{{1}}, a, VectorXd{{6, 1, 1}});  // y <= 3, y >= -1
  interval.y_low[0] = -kInfinity;
  EXPECT_EQ(solve(interval), VectorXd::Constant(1, 3));
  interval.c[0] = -1;
  EXPECT_EQ(solve(interval), VectorXd::Constant(1, -1));
  interval.high[0] = interval.high[1] = -3;  // y <= -1.5, y >= 3
  EXPECT_FALSE(solve(interval));
  interval.high.setConstant(kInfinity);
  EXPECT_THROW(solve(interval), Error);
  interval.high[2] = -1;  // 0 <= -1
  EXPECT_FALSE(solve(interval));
}

// An optimum is at a vertex: three of the constraints a y <= high, 0 <= y <= 1 with equality.
double best_vertex(const LinearProgram& of) {
  const Eigen::Index rows = of.a.rows(), all = rows + 6;
  Matrix g(all, 3);
  VectorXd h(all);
  g << of.a, Matrix::Identity(3, 3), -Matrix::Identity(3, 3);
  h << of.high, VectorXd::Ones(3), VectorXd::Zero(3);
  double best = -kInfinity;
  for (Eigen::Index i = 0; i < all; ++i) {
    for (Eigen::Index j = i + 1; j < all; ++j) {
      for (Eigen::Index k = j + 1; k < all; ++k) {
        Eigen::Matrix3d corner;
        corner << g.row(i), g.row(j), g.row(k);
        const Eigen::FullPivLU<Eigen::Matrix3d> lu(corner);
        if (!lu.isInvertible()) continue;
        const Eigen::Vector3d y = lu.solve(Eigen::Vector3d(h[i], h[j], h[k]));
        if ((g * y - h).maxCoeff() <= 1e-9) best = std::max(best, of.c.dot(y));
      }
    }
  }
  return best;
}

TEST(LinearProgram, IsTheBestOfAllVertices) {
  Random random(11);
  const auto normal = [&] { return random.normal(); };
  int infeasible = 0;
  for (int trial = 0; trial < 300; ++trial) {
    LinearProgram made = program(VectorXd::NullaryExpr(3, normal), Matrix::NullaryExpr(5, 3, normal),
                                 VectorXd::NullaryExpr(5, [&] { return random.uniform(-0.5, 1); }));
    made.y_high.setOnes();
    const double best = best_vertex(made);
    const auto y = solve(made);
    ASSERT_EQ(y.has_value(), std::isfinite(best)) << trial;
    infeasible += !y;
    if (!y) continue;
    EXPECT_NEAR(made.c.dot(*y), best, 1e-8) << trial;
    EXPECT_LE((made.a * *y - made.high).maxCoeff(), 1e-8) << trial;
  }
  EXPECT_GT(infeasible, 10);
  EXPECT_LT(infeasible, 290);
}

}  // namespace linear_program_test
}  // namespace cautious::lab
