// The fixed-point experiment: independent solvers against each other, residuals at points solved by hand, closed forms of the
// curves, and what the paper says, the two places where it does not hold among them.
#include "lab/fixedpoint/fixedpoint.h"

#include <algorithm>
#include <any>
#include <cmath>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "lab/linear.h"

namespace cautious::lab::fixedpoint {
namespace fixedpoint_test {

const Experiment& usual() {
  static const Experiment experiment = run_fixedpoint({.steps = 10000}, [](double, std::string_view) {});
  return experiment;
}

const report::Figure& figure(std::string_view name) {
  for (const Section& section : usual().sections) {
    for (const report::Figure& one : section.figures) {
      if (one.name == name) return one;
    }
  }
  throw Error(Fault::failure, "no figure " + std::string(name));
}

const report::ChartSeries& series(std::string_view name, std::string_view arm) {
  const auto& all = std::any_cast<const report::LineChart&>(figure(name).chart).series;
  return *std::ranges::find(all, arm, [](const report::ChartSeries& one) { return std::string_view(one.name); });
}

constexpr Surrogate kBox{.target = Target::box}, kRidge{.target = Target::ridge}, kBall{.target = Target::ball};
constexpr Surrogate kHuberBox{.target = Target::huber, .e = 0.5}, kLasso{.target = Target::lasso, .e = 0.2};

// F = |y - c|^2 / 2 with c = (3, 0.5, -2): solutions by hand, and points that are none.
TEST(FixedpointResidual, IsZeroAtSolutionsByHandOnly) {
  const Point c{3, 0.5, -2};
  const auto residual_from = [&](const Surrogate& surrogate, const Point& y) {
    Point g(y.size());
    for (std::size_t i = 0; i < y.size(); ++i) g[i] = y[i] - c[i];
    return residual(surrogate, y, g);
  };
  const double norm = std::sqrt(9 + 0.25 + 4);
  EXPECT_EQ(residual_from({.target = Target::original}, c), 0);
  EXPECT_EQ(residual_from(kRidge, {1.5, 0.25, -1}), 0);
  EXPECT_EQ(residual_from(kBox, {1, 0.5, -1}), 0);
  EXPECT_NEAR(residual_from(kBall, {3 / norm, 0.5 / norm, -2 / norm}), 0, 1e-15);
  EXPECT_NEAR(residual_from(kHuberBox, {1, 1.0 / 3, -1}), 0, 1e-15);
  EXPECT_NEAR(residual_from(kLasso, {2.8, 0.3, -1.8}), 0, 1e-15);
  EXPECT_NEAR(residual_from({.target = Target::lasso_box, .e = 0.2}, {1, 0.3, -1}), 0, 1e-15);
  EXPECT_EQ(residual_from(kBox, c), 2);                 // outside: the distance from the box
  EXPECT_EQ(residual_from(kBox, {-1, 0.5, -1}), 2);     // at the wrong face
  EXPECT_EQ(residual_from(kBox, {1, 0.25, -1}), 0.25);  // inside with a slope
  EXPECT_EQ(residual_from({.target = Target::original}, {1, 0.5, -1}), 2);
  EXPECT_EQ(residual_from(kRidge, {1, 0.25, -1}), 0.5);  // |g + y| / 2
}

TEST(FixedpointResidual, SpectralOnADiagonalIsTheBoxOfItsSingularValues) {
  const Surrogate spectral{.target = Target::spectral, .rows = 2};
  EXPECT_NEAR(residual(spectral, Point{1, 0, 0, 0.5}, Point{-2, 0, 0, 0}), 0, 1e-15);
  EXPECT_NEAR(residual(spectral, Point{1, 0, 0, 0.5}, Point{2, 0, 0, 0}), 2, 1e-14);
  EXPECT_NEAR(residual(spectral, Point{1.5, 0, 0, 0.5}, Point{0, 0, 0, 0}), 0.5, 1e-14);
  // All entries of size 0.8: inside the box, but the norm is 1.6.
  EXPECT_GT(residual(spectral, Point{0.8, 0.8, 0.8, 0.8}, Point{0, 0, 0, 0}), 0.29);
}

TEST(FixedpointResidual, BarrierIsTheFixedPointOfAdam) {
  for (const double y : {-0.9, -0.3, 0.5, 0.99}) {
    constexpr double eps = 1e-2;
    const double g = -eps * y / (1 - std::abs(y));
    EXPECT_NEAR(g / (std::abs(g) + eps) + y, 0, 1e-14);
    EXPECT_NEAR(barrier_residual(Point{y}, Point{g}, eps), 0, 1e-14);
  }
}

TEST(FixedpointSolve, EnumerationAndDescentAgree) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    lab::Random random(seed);
    const Quadratic quadratic = coupled(random);
    for (const Surrogate& surrogate : {kBox, kHuberBox}) {
      const Eigen::VectorXd a = solve_by_enumeration(quadratic, surrogate), b = solve_by_descent(quadratic, surrogate);
      EXPECT_LT((a - b).lpNorm<Eigen::Infinity>(), 1e-13);
    }
  }
}

TEST(FixedpointSolve, EverySolutionIsAKktPoint) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    lab::Random random(seed);
    for (const Quadratic& quadratic : {separable(random), coupled(random)}) {
      for (const Surrogate& surrogate : {Surrogate{}, kRidge, kBox, kBall, kHuberBox, kLasso}) {
        const Eigen::VectorXd y = solve(quadratic, surrogate), g = quadratic.h * (y - quadratic.c);
        EXPECT_LT(residual(surrogate, Point(y.begin(), y.end()), Point(g.begin(), g.end())), 1e-12);
      }
    }
  }
}

// No sampled point of the ball is better than the solution by projected gradient; without coupling it is the clipped matrix.
TEST(FixedpointSolve, SpectralBeatsEveryOtherPointOfTheBall) {
  lab::Random random(3);
  const Eigen::MatrixXd a = random_matrix(random, 6, 5) / 2, b = random_matrix(random, 6, 4);
  const Matrix best = solve_spectral(a, b);
  EXPECT_LT(singular_values(best)(0), 1 + 1e-12);
  const double least = (a * best - b).norm();
  for (int trial = 0; trial < 1000; ++trial) {
    const Matrix step = random_matrix(random, 5, 4) * std::pow(10, -random.uniform(0, 4));
    EXPECT_GE((a * with_clipped_singular_values(best + step) - b).norm(), least - 1e-13);
  }
  const Eigen::MatrixXd c = with_singular_values(random, 6, 4, {3, 1.5, 0.5, 0.1});
  const Matrix near = solve_spectral(Eigen::MatrixXd::Identity(6, 6), c);
  EXPECT_LT((near - with_clipped_singular_values(c)).norm(), 1e-13);
  EXPECT_NEAR(singular_values(near)(2), 0.5, 1e-13);
}

// Whatever lambda is, the gradient of f = F(λx) / λ is that of F at y = λx.
TEST(FixedpointProblem, UnitsOfTheBox) {
  lab::Random random(1);
  const Quadratic quadratic = coupled(random);
  const Point y = random_start(random, 6, 1);
  const Eigen::VectorXd expected = quadratic.h * (as_vector(PointView(y)) - quadratic.c);
  for (const double weight_decay : {0.01, 0.5, 30.0}) {
    const Point g = slope_at(pose("", quadratic, weight_decay, Point(6, 0.0)), y);
    EXPECT_LT((as_vector(PointView(g)) - expected).lpNorm<Eigen::Infinity>(), 1e-13);
  }
}

TEST(FixedpointProblem, CircleSlopesByHand) {
  const Posed circle = pose_circle(0.5, {1, 1});
  const Point corner = slope_at(circle, Point{1, 1});  // 4 (1/2 - 1/4) (-1/2)
  EXPECT_DOUBLE_EQ(corner[0], -0.5);
  EXPECT_DOUBLE_EQ(corner[1], -0.5);
  EXPECT_DOUBLE_EQ(largest(slope_at(circle, Point{1, 1.5})), 0);
}

TEST(FixedpointCasework, OnlyThePrintedSignLeavesNonzeroSides) {
  EXPECT_EQ(count_adam(Sign::of_the_algorithm).nonzero, 0U);
  EXPECT_GT(count_adam(Sign::as_printed).nonzero, 0U);
  EXPECT_EQ(count_lion_k(Sign::of_the_algorithm).nonzero, 0U);
  EXPECT_GT(count_lion_k(Sign::of_the_algorithm).solutions, 0U);
  const CaseworkCount printed = count_lion_k(Sign::as_printed);
  ASSERT_GT(printed.nonzero, 0U);
  EXPECT_EQ(printed.example_y, std::copysign(1.0, printed.example_g));  // -sign(-g) = y
}

// Cautious decay at a minimiser with x != 0 is a step of decay: u = 0, and 0 >= 0.
TEST(Fixedpoint, AStationaryPointDecaysInOneStep) {
  const Quadratic quadratic{Eigen::MatrixXd::Identity(1, 1), Eigen::VectorXd::Constant(1, -0.6)};
  const Posed problem = pose("", quadratic, 0.25, {-2.4});
  for (const Arm& arm : cautious_arms(0.25)) {
    EXPECT_NEAR(rest(arm, problem, {0.01, 1, ScheduleKind::constant}).front(), -0.6 * 0.99, 1e-14) << arm.name;
  }
}

TEST(Fixedpoint, CurvesAreTheClosedForms) {
  const report::ChartSeries& adamw = series("fixedpoint_clamp", "AdamW");
  ASSERT_EQ(adamw.x.size(), 41U);
  for (std::size_t i = 0; i < adamw.x.size(); ++i) {
    const double c = adamw.x[i];
    EXPECT_NEAR(adamw.y[i], std::clamp(c, -1.0, 1.0), 2e-3);
    EXPECT_NEAR(series("fixedpoint_clamp", "SGD").y[i], c / 2, 1e-12);
    EXPECT_NEAR(series("fixedpoint_clamp", "Adam + CWD").y[i], c, 1e-6);
    EXPECT_NEAR(series("fixedpoint_clamp", "Lion-K huber").y[i], std::clamp(c / 1.5, -1.0, 1.0), 1e-12);
    EXPECT_NEAR(series("fixedpoint_clamp", "Lion-K threshold + CWD").y[i], soft(c, 0.2), 1e-6);
  }
  const report::ChartSeries& by_decay = series("fixedpoint_decay", "AdamW");
  for (std::size_t i = 0; i < by_decay.x.size(); ++i) {
    EXPECT_NEAR(by_decay.y[i], std::min(3.0, 1 / by_decay.x[i]), 1e-5);
    EXPECT_NEAR(series("fixedpoint_decay", "SGD").y[i], 3 / (1 + by_decay.x[i]), 1e-12);
    EXPECT_NEAR(series("fixedpoint_decay", "Adam + CWD").y[i], 3, 1e-5);
  }
  const report::ChartSeries& muon = series("fixedpoint_singular_values", "Muon, exact factors");
  for (std::size_t i = 0; i < muon.x.size(); ++i) {
    EXPECT_NEAR(muon.y[i], std::min(1.0, muon.x[i]), 1e-3);
    EXPECT_NEAR(series("fixedpoint_singular_values", "SGD").y[i], muon.x[i] / 2, 1e-12);
    EXPECT_NEAR(series("fixedpoint_singular_values", "Muon + CWD").y[i], muon.x[i], 1e-3);
  }
}

// Two statements of the paper do not hold: a sign of appendix C, and Muon + CWD, whose mask and norm do not fit.
TEST(Fixedpoint, ClaimsOfARun) {
  std::size_t holds = 0, fails = 0;
  for (const Section& section : usual().sections) {
    EXPECT_EQ(section.command, "cautious lab fixedpoint --steps 10000");
    for (const Claim& claim : section.claims) {
      const bool known = claim.text.starts_with("Muon with CWD") || claim.text.find("as printed") != std::string::npos;
      EXPECT_EQ(claim.outcome == Outcome::fails, known) << claim.text << ": " << claim.evidence;
      EXPECT_EQ(claim.outcome == Outcome::noted, claim.source.empty()) << claim.text;
      EXPECT_FALSE(claim.evidence.empty());
      EXPECT_FALSE(claim.text.starts_with("Not in this run")) << claim.text << ": " << claim.evidence;
      EXPECT_EQ(claim.by_hand.empty(), claim.outcome != Outcome::fails) << claim.text;
      const auto noticed = std::ranges::count_if(claim.mutations, [](const Mutation& one) { return one.noticed; });
      EXPECT_EQ(noticed > 0, claim.outcome == Outcome::holds) << claim.text;
      holds += claim.outcome == Outcome::holds;
      fails += claim.outcome == Outcome::fails;
    }
  }
  EXPECT_EQ(holds, 18U);
  EXPECT_EQ(fails, 2U);
}

TEST(Fixedpoint, NamesAreUniqueAndPrefixed) {
  std::set<std::string> names;
  for (const Section& section : usual().sections) {
    for (const report::Figure& one : section.figures) EXPECT_TRUE(names.insert(one.name).second) << one.name;
    for (const report::Table& table : section.tables) {
      EXPECT_TRUE(names.insert(table.name).second) << table.name;
      for (const auto& row : table.rows) EXPECT_EQ(row.size(), table.head.size()) << table.name;
    }
  }
  for (const std::string& name : names) EXPECT_TRUE(name.starts_with("fixedpoint_")) << name;
}

// The minimiser of least squares, found by Cholesky, is left by Muon + CWD for a point whose gradient has rank 1, and Lion +
// CWD stays.
TEST(Fixedpoint, MuonWithCautiousDecayLeavesAMinimiser) {
  lab::Random random(10);
  const MatrixLeastSquares least_squares{random_matrix(random, 6, 5) / 2, random_matrix(random, 6, 4)};
  Posed problem = pose("", least_squares, 0.5);
  const Eigen::MatrixXd gram = least_squares.a.transpose() * least_squares.a;
  const Matrix minimiser = solve_definite(gram, Matrix(least_squares.a.transpose() * least_squares.b));
  for (std::size_t i = 0; i < problem.start.size(); ++i) problem.start[i] = minimiser.data()[i] / 0.5;
  EXPECT_LT(largest(slope_at(problem, Point(minimiser.data(), minimiser.data() + minimiser.size()))), 1e-12);
  const Pace pace{.steps = 5000};
  const Point g = slope_at(problem, rest(with_cwd(muon(0.5, 5)), problem, pace));
  const Eigen::Map<const Matrix> slope(g.data(), 5, 4);
  const Eigen::VectorXd values = singular_values(Matrix(slope));
  EXPECT_GT(values(0), 0.02);
  EXPECT_LT(values(1), 0.01 * values(0));
  EXPECT_LT(largest(slope_at(problem, rest(cautious_arms(0.5)[3], problem, pace))), 1e-3);
}

// C = -3 [1 1; 1 1] and lambda = 1: X = -2 [1 1; 1 1] with the mask by the orthogonal factor, X = C with that by the momentum.
TEST(Fixedpoint, MuonRestsOffTheMinimiserByHand) {
  const Posed problem = pose("", MatrixLeastSquares{Eigen::MatrixXd::Identity(2, 2), Eigen::MatrixXd::Constant(2, 2, -3)}, 1);
  const auto end = [&](Decay decay) {
    Arm arm = muon_cwd(2, decay);
    arm.recipe.weight_decay = 1;
    return rest(arm, problem, {.steps = 10000});
  };
  for (const double entry : end(Cautious{})) EXPECT_NEAR(entry, -2, 0.02);
  for (const double entry : end(Cautious{MaskBy::momentum})) EXPECT_NEAR(entry, -3, 1e-3);
  for (const double entry : end(Gradient{})) EXPECT_NEAR(entry, -3, 1e-3);
}

// The decay that CWD switches off makes the box: with it alone AdamW clips as with all of it.
TEST(Fixedpoint, TheReversedMaskMakesTheSameBox) {
  const Quadratic quadratic{Eigen::MatrixXd::Identity(3, 3), Eigen::Vector3d(2, -1.5, 0.4)};
  const Posed problem = pose("", quadratic, 0.5, Point(3, 0.1));
  const Point y = rest(opposed(adamw(0.5)), problem, {.steps = 10000});
  EXPECT_NEAR(y[0], 1, 1e-3);
  EXPECT_NEAR(y[1], -1, 1e-3);
  EXPECT_NEAR(y[2], 0.4, 1e-3);
}

// No problem of one seed is one of another.
TEST(Fixedpoint, SeedsShareNoMuonProblem) {
  std::set<double> first_entries;
  constexpr std::uint64_t kSeeds = 20;
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    const auto problems = muon_cwd_problems(seed);
    EXPECT_EQ(problems.size(), 12U);
    for (const MatrixLeastSquares& problem : problems) first_entries.insert(problem.a(0, 0));
  }
  EXPECT_EQ(first_entries.size(), 12U * kSeeds);
}

// An observation of ours is noted, and says so where it was not made.
TEST(Fixedpoint, ObservationsAreNotedWhateverCameOut) {
  const Claim seen = observed(true, "It rains", "3 mm"), not_seen = observed(false, "It rains", "0 mm");
  EXPECT_EQ(seen.text, "It rains");
  EXPECT_EQ(not_seen.text, "Not in this run: It rains");
  EXPECT_EQ(not_seen.evidence, "0 mm");
  for (const Claim& claim : {seen, not_seen}) {
    EXPECT_EQ(claim.outcome, Outcome::noted);
    EXPECT_EQ(claim.source, "");
  }
}

TEST(Fixedpoint, CommandNamesWhatIsNotUsual) {
  EXPECT_EQ(command_of({.steps = 30000}), "cautious lab fixedpoint --steps 30000");
  EXPECT_EQ(command_of({.steps = 10000, .seed = 3}), "cautious lab fixedpoint --steps 10000 --seed 3");
}

TEST(Fixedpoint, BadOptionsAreUsageErrors) {
  const auto message = [](FixedpointOptions options) -> std::string {
    try {
      check(options);
    } catch (const Error& error) {
      return error.fault() == Fault::usage ? error.what() : "another fault";
    }
    return "";
  };
  EXPECT_EQ(message({}), "");
  EXPECT_NE(message({.steps = 100}).find("steps"), std::string::npos);
  EXPECT_NE(message({.steps = 2000000}).find("steps"), std::string::npos);
}

}  // namespace fixedpoint_test
}  // namespace cautious::lab::fixedpoint
