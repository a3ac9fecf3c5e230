// The named problems: derivatives against central differences and, in the plane, against their formulas; that the least value
// is reached; what the surface promises; what check_point refuses.
#include "lab/problem/problem.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <numeric>

#include <gtest/gtest.h>

#include "lab/linear.h"
#include "lab/numbers.h"
#include "lab/problem/expression.h"
#include "usage_message.h"

namespace cautious::lab {
namespace problem_test {

class EveryProblem : public testing::TestWithParam<const Problem*> {
 protected:
  // The start and points around it and around 0.
  std::vector<Point> points() const {
    Random random(3);
    std::vector<Point> all{problem_.start};
    for (int i = 0; i < 10; ++i) {
      Point x = i % 2 == 0 ? problem_.start : Point(problem_.size());
      for (double& c : x) c += random.normal();
      all.push_back(x);
    }
    return all;
  }

  const Problem& problem_ = *GetParam();
};

std::vector<const Problem*> addresses() {
  std::vector<const Problem*> all;
  for (const Problem& problem : problems()) all.push_back(&problem);
  return all;
}

INSTANTIATE_TEST_SUITE_P(Problem, EveryProblem, testing::ValuesIn(addresses()), [](const auto& param) {
  std::string name = param.param->name;
  std::ranges::replace(name, '-', '_');
  return name;
});

Point moved(Point x, std::size_t i, double by) {
  x[i] += by;
  return x;
}

// Central difference of fourth order.
template <class Function>
double slope(const Function& f, double h) {
  return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}

TEST_P(EveryProblem, GradientAndHessianAreSlopes) {
  for (const Point& x : points()) {
    const Point g = gradient(problem_, x);
    const Matrix h = hessian(problem_, x);
    ASSERT_EQ(h.rows(), static_cast<Eigen::Index>(problem_.size()));
    ASSERT_EQ(h.cols(), h.rows());
    EXPECT_EQ(h, h.transpose());
    const double scale = 1 + std::abs(problem_.value(x)) + as_vector(PointView(g)).norm() + h.norm();
    for (std::size_t i = 0; i < x.size(); ++i) {
      const auto value = [&](double t) { return problem_.value(moved(x, i, t)); };
      EXPECT_NEAR(g[i], slope(value, 1e-3), 1e-9 * scale) << i;
      for (std::size_t j = 0; j < x.size(); ++j) {
        const auto derivative = [&](double t) { return gradient(problem_, moved(x, i, t))[j]; };
        EXPECT_NEAR(h(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j)), slope(derivative, 1e-3), 1e-9 * scale);
      }
    }
  }
}

TEST_P(EveryProblem, StartIsOrdinary) {
  std::size_t entries = 0;
  for (const ProblemTensor& tensor : problem_.tensors) {
    entries += static_cast<std::size_t>(
        std::accumulate(tensor.shape.begin(), tensor.shape.end(), std::int64_t{1}, std::multiplies<std::int64_t>()));
  }
  EXPECT_EQ(problem_.size(), entries);
  EXPECT_NO_THROW(check_point(problem_, "start", problem_.start));
  for (const double c : problem_.start) EXPECT_NE(c, 0);
  for (const double c : gradient(problem_, problem_.start)) EXPECT_GT(std::abs(c), 1e-3);
  EXPECT_LT(problem_.view_low, problem_.view_high);
  EXPECT_FALSE(problem_.title.empty());
  EXPECT_FALSE(problem_.formula.empty());
}

// Newton's method, damped so that f decreases, from the start to the least value, which nothing is below.
TEST_P(EveryProblem, LeastValueIsReached) {
  ASSERT_TRUE(problem_.least.has_value());
  for (const Point& x : points()) EXPECT_GE(problem_.value(x), *problem_.least);
  Point x = problem_.start;
  const auto n = static_cast<Eigen::Index>(x.size());
  double damping = 1;
  for (int step = 0; step < 1000 && problem_.value(x) > 1e-25; ++step) {
    const Eigensystem curved = eigensystem(hessian(problem_, x));
    const Eigen::VectorXd curvature = curved.values.cwiseAbs() + Eigen::VectorXd::Constant(n, damping);
    const Point g = gradient(problem_, x);
    const Eigen::VectorXd along = curved.vectors.transpose() * as_vector(PointView(g));
    Point next = x;
    as_vector(std::span<double>(next)) -= curved.vectors * along.cwiseQuotient(curvature);
    const bool better = problem_.value(next) < problem_.value(x);
    damping *= better ? 0.3 : 4;
    if (better) x = next;
  }
  EXPECT_NEAR(problem_.value(x), *problem_.least, 1e-20);
}

TEST(Problem, NamesInOrder) {
  std::vector<std::string> names;
  for (const Problem& known : problems()) names.push_back(known.name);
  EXPECT_EQ(names, (std::vector<std::string>{"circle", "parabola", "surface", "rosenbrock", "least-squares", "deep-linear",
                                             "factorisation"}));
  EXPECT_EQ(problem("surface").title, "Surface");
  EXPECT_EQ(message([] { problem("circel"); }),
            "no problem named 'circel'; did you mean 'circle'? choices: circle, parabola, surface, rosenbrock, least-squares, "
            "deep-linear, factorisation");
}

TEST(Problem, PlaneProblemsAreTheirFormulas) {
  const std::map<std::string, std::string> formulas{{"circle", "((x2-3)^2 + (x1-3)^2 - 1)^2"},
                                                    {"parabola", "(x2 - 3 - (x1-3)^2)^2"},
                                                    {"surface", "log(1 + (x1 + x2 - 5 - (x1-x2)^2/2)^2)"},
                                                    {"rosenbrock", "(1-x1)^2 + 100*(x2 - x1^2)^2"}};
  Random random(5);
  for (const auto& [name, text] : formulas) {
    const Problem& known = problem(name);
    const Expression formula = Expression::parse(text);
    for (int i = 0; i < 100; ++i) {
      const Point x{random.uniform(-4, 6), random.uniform(-4, 6)};
      Point g(2);
      Matrix h;
      const double f = formula.gradient(x, g);
      formula.hessian(x, h);
      const auto near = [](double a, double b) { return std::abs(a - b) <= 1e-12 * (1 + std::abs(b)); };
      EXPECT_PRED2(near, known.value(x), f) << name;
      const Point known_g = gradient(known, x);
      for (std::size_t k = 0; k < 2; ++k) EXPECT_PRED2(near, known_g[k], g[k]) << name;
      EXPECT_LE((hessian(known, x) - h).norm(), 1e-12 * (1 + h.norm())) << name;
    }
  }
}

// Its minimisers are x + y = 5 + (x - y)^2 / 2; the box of AdamW touches them nowhere, and its best point is the corner.
TEST(Problem, SurfaceHasACurveOfMinimisersOutsideTheBox) {
  const Problem& surface = problem("surface");
  for (double d = -3; d <= 3; d += 0.125) {
    const double s = 5 + d * d / 2;
    const Point x{(s + d) / 2, (s - d) / 2};
    EXPECT_LT(surface.value(x), 1e-30);
    const Eigen::Vector2d tangent(d + 1, d - 1);
    EXPECT_LT((hessian(surface, x) * tangent).norm(), 1e-13);
    EXPECT_EQ(tangent.prod() > 0, std::abs(d) > 1);  // both coordinates shrink along it, or one does at the other's cost
  }
  double least = std::numeric_limits<double>::infinity();
  for (double x = -2; x <= 2; x += 1.0 / 32) {
    for (double y = -2; y <= 2; y += 1.0 / 32) least = std::min(least, surface.value(Point{x, y}));
  }
  EXPECT_EQ(least, surface.value(Point{2, 2}));
  EXPECT_DOUBLE_EQ(least, std::numbers::ln2);
}

// W2 G^-1 and G W1, or U G and V G^-T, are the same product for any invertible G, here a stretch of the inner coordinates.
TEST(Problem, ProductsAreWhatCounts) {
  const auto stretched = [](const Problem& known, const auto& factor_of) {
    Point x = known.start;
    for (std::size_t i = 0; i < x.size(); ++i) x[i] *= factor_of(i);
    return known.value(x);
  };
  const Problem& deep = problem("deep-linear");
  const std::vector<double> g{2, 0.5, -4};
  const double f = stretched(deep, [&](std::size_t i) { return i < 12 ? g[i / 4] : 1 / g[(i - 12) % 3]; });
  EXPECT_NEAR(f, deep.value(deep.start), 1e-14);
  const Problem& factorisation = problem("factorisation");
  const double same = stretched(factorisation, [&](std::size_t i) { return i < 8 ? g[i % 2] : 1 / g[i % 2]; });
  EXPECT_NEAR(same, factorisation.value(factorisation.start), 1e-14);
}

TEST(Problem, LeastSquaresHasFiveFreeDirections) {
  const Problem& known = problem("least-squares");
  const Eigen::VectorXd curvature = eigensystem(hessian(known, known.start)).values;
  EXPECT_LT(curvature[4], 1e-14);
  EXPECT_GT(curvature[5], 0.1);
}

TEST(Problem, CheckPointSaysWhatIsWrong) {
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const Problem& circle = problem("circle");
  const auto refused = [&](const Point& x) { return message([&] { check_point(circle, "start", x); }); };
  EXPECT_EQ(refused({1, 2}), "");
  EXPECT_EQ(refused({1}), "start: the number of coordinates is 1; valid for circle: 2");
  EXPECT_EQ(refused({1, -kNan}), "start: x2 is nan; valid: finite numbers");
  EXPECT_EQ(refused({std::numeric_limits<double>::infinity(), 1}), "start: x1 is inf; valid: finite numbers");
  EXPECT_EQ(refused({1e200, 1}), "start: f is inf there; valid: a point where f and its derivatives are finite");
  Problem root = circle;
  root.value = [](PointView x) { return std::sqrt(x[1]); };
  root.gradient = [](PointView x, std::span<double> g) {
    g[0] = 0;
    g[1] = 0.5 / std::sqrt(x[1]);
  };
  EXPECT_EQ(message([&] {
              check_point(root, "--start", Point{0, 0});
            }),
            "--start: the derivative of f by x2 is inf there; valid: a point where f and its derivatives are finite");
}

}  // namespace problem_test
}  // namespace cautious::lab
