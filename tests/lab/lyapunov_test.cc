// The systems of Table 1 at random states: their fields against formulas written out here, the analytic dH/dt of appendix D
// against differences of H along the field, its sign, and the conjugates K* against their definition.
#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "lab/dynamics/dynamics.h"
#include "lab/dynamics/system.h"
#include "lab/linear.h"

namespace cautious::lab {
namespace lyapunov_test {

constexpr Convex kAll[] = {Convex::l1,           Convex::l2,        Convex::lp,   Convex::huber,
                           Convex::relativistic, Convex::threshold, Convex::topk, Convex::nuclear};

System lion_k(Convex k, FlowDecay decay) {
  return {.flow = Flow::lion_k, .decay = decay, .k = {.k = k, .p = 1.5, .e = 0.3, .fraction = 0.4}, .rows = 2, .cols = 3};
}

std::vector<System> every_system(FlowDecay decay) {
  std::vector<System> systems = {
      {.flow = Flow::sgd, .decay = decay}, {.flow = Flow::sgdm, .decay = decay}, {.flow = Flow::adam, .decay = decay}};
  for (const Convex k : kAll) systems.push_back(lion_k(k, decay));
  return systems;
}

void randomise(Random& random, System& system) {
  system.lambda = random.uniform(0.1, 1);
  system.alpha = random.uniform(0.5, 2);
  system.beta = random.uniform(0.5, 2);
  system.gamma = random.uniform(0.2, 4) * system.alpha;
}

// x, m normal and v positive.
Point random_state(Random& random, std::size_t d, std::size_t size) {
  Point z(size);
  for (std::size_t i = 0; i < size; ++i) z[i] = i < 2 * d ? random.normal() : random.uniform(0.01, 2);
  return z;
}

Point sides_at(const Inclusion& inclusion, PointView z) {
  Point side(inclusion.switches);
  inclusion.indicator(z, side);
  for (double& q : side) q = q > 0 ? 1 : -1;
  return side;
}

// dH/dt from values of H along the field at times t +- h, t +- 2h, where h changes no entry by more than a small part.
double difference(const System& system, const Problem& problem, double t, const Point& z, const Point& dz) {
  double h = 1e-3;
  for (std::size_t i = 0; i < z.size(); ++i) h = std::min(h, 1e-3 * std::abs(z[i]) / (1e-9 + std::abs(dz[i])));
  const auto at = [&](double step) {
    Point moved = z;
    for (std::size_t i = 0; i < z.size(); ++i) moved[i] += step * dz[i];
    return lyapunov(system, problem, t + step, moved);
  };
  return (8 * (at(h) - at(-h)) - (at(2 * h) - at(-2 * h))) / (12 * h);
}

class EveryDecay : public testing::TestWithParam<FlowDecay> {};

TEST_P(EveryDecay, AnalyticRateIsTheRateOfHAlongTheField) {
  Random random(1);
  for (System system : every_system(GetParam())) {
    for (std::size_t trial = 0; trial < 40; ++trial) {
      randomise(random, system);
      const Problem problem = random_problem(random, trial, 6);
      const Inclusion inclusion = inclusion_of(system, problem);
      Point z = random_state(random, 6, inclusion.size);
      // Inside the set where K* is finite.
      if (GetParam() == FlowDecay::decoupled) {
        for (std::size_t i = 0; i < 6; ++i) z[i] *= 0.1 / system.lambda;
      }
      const Point side = sides_at(inclusion, z);
      Point dz(z.size());
      const double t = random.uniform(0.1, 3);
      inclusion.field(t, z, side, dz);
      const double numeric = difference(system, problem, t, z, dz);
      const double analytic = lyapunov_rate(system, problem, t, z, side);
      EXPECT_NEAR(analytic, numeric, 1e-5 * (1 + std::abs(numeric))) << name_of(system) << ' ' << problem.name;
    }
  }
}

// What the appendix proves, at every point; the nuclear norm is the exception (dynamics_test.cc), AdamW has no such H.
TEST_P(EveryDecay, RateIsNeverPositive) {
  Random random(2);
  for (System system : every_system(GetParam())) {
    if (system.flow == Flow::adam && GetParam() == FlowDecay::decoupled) continue;
    if (system.k.k == Convex::nuclear && GetParam() == FlowDecay::cautious) continue;
    for (std::size_t trial = 0; trial < 400; ++trial) {
      randomise(random, system);
      const Problem problem = random_quadratic(random, 6, 5);
      const Inclusion inclusion = inclusion_of(system, problem);
      Point z = random_state(random, 6, inclusion.size);
      if (GetParam() == FlowDecay::decoupled) {
        for (std::size_t i = 0; i < 6; ++i) z[i] *= 0.15 / system.lambda;
      }
      EXPECT_LE(lyapunov_rate(system, problem, random.uniform(0.01, 3), z, sides_at(inclusion, z)), 1e-12) << name_of(system);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Lyapunov, EveryDecay, testing::Values(FlowDecay::none, FlowDecay::decoupled, FlowDecay::cautious));

TEST(Lyapunov, MaskOfAlgorithmThreeHasTheRateOfH) {
  Random random(3);
  for (const Convex k : {Convex::threshold, Convex::topk, Convex::nuclear, Convex::huber}) {
    System system = lion_k(k, FlowDecay::cautious);
    system.mask_by_momentum = false;
    for (std::size_t trial = 0; trial < 40; ++trial) {
      randomise(random, system);
      const Problem problem = random_problem(random, trial, 6);
      const Inclusion inclusion = inclusion_of(system, problem);
      const Point z = random_state(random, 6, inclusion.size), side = sides_at(inclusion, z);
      Point dz(z.size());
      inclusion.field(1, z, side, dz);
      const double numeric = difference(system, problem, 1, z, dz);
      EXPECT_NEAR(lyapunov_rate(system, problem, 1, z, side), numeric, 1e-5 * (1 + std::abs(numeric))) << name_of(system);
    }
  }
}

TEST(Lyapunov, AdamRateIsBelowThePapersBound) {
  Random random(4);
  System system{.flow = Flow::adam};
  for (std::size_t trial = 0; trial < 2000; ++trial) {
    randomise(random, system);
    system.gamma = random.uniform(0.01, 4) * system.alpha;
    const Problem problem = random_quadratic(random, 4, 3);
    const Inclusion inclusion = inclusion_of(system, problem);
    const Point z = random_state(random, 4, inclusion.size);
    const double t = std::exp(random.uniform(-5, 2));
    const double bound = adam_rate_bound(system, t, z);
    const double rate = lyapunov_rate(system, problem, t, z, sides_at(inclusion, z));
    EXPECT_LE(rate, bound + 1e-12 * std::abs(bound));
    EXPECT_LE(bound, 0);
  }
}

// At g = 0, where m x < 0, with eps = 0 and without bias correction dH/dt = (gamma / 4 - alpha) |m^2 / sqrt(v)|_1.
TEST(Lyapunov, FourAlphaIsTheBorderForAdam) {
  Random random(5);
  const Problem problem = random_quadratic(random, 3, 3);
  const Point g = gradient(problem, problem.start);
  const Eigen::VectorXd minimiser =
      as_vector(PointView(problem.start)) - solve_symmetric(hessian(problem, problem.start), as_vector(PointView(g)));
  Point z(minimiser.begin(), minimiser.end());
  for (std::size_t i = 0; i < 3; ++i) z.push_back(z[i] > 0 ? -0.5 : 0.5);
  z.insert(z.end(), {0.04, 0.09, 0.25});
  const double weight = 0.25 / 0.2 + 0.25 / 0.3 + 0.25 / 0.5;
  for (const double gamma : {1.0, 4.0, 5.0, 50.0}) {
    const System system{.flow = Flow::adam, .lambda = 0.7, .alpha = 1, .gamma = gamma, .eps = 0};
    const Inclusion inclusion = inclusion_of(system, problem);
    EXPECT_NEAR(lyapunov_rate(system, problem, 100, z, sides_at(inclusion, z)), (gamma / 4 - 1) * weight, 1e-9);
  }
}

// Table 1 written out once more, per coordinate, at states where no mask is at its border.
TEST(System, FieldsAreThoseOfTable1) {
  Random random(6);
  const Problem problem = random_waves(random, 4);
  const double lambda = 0.3, alpha = 1.3, beta = 0.7, gamma = 2.1, eps = 0.01, t = 0.6;
  for (const Flow flow : {Flow::sgd, Flow::sgdm, Flow::lion_k, Flow::adam}) {
    const System system{.flow = flow, .lambda = lambda, .alpha = alpha, .beta = beta, .gamma = gamma, .eps = eps};
    const Inclusion inclusion = inclusion_of(system, problem);
    const Point z = random_state(random, 4, inclusion.size);
    Point dz(z.size());
    inclusion.field(t, z, sides_at(inclusion, z), dz);
    const Point g = gradient(problem, PointView(z).first(4));
    for (std::size_t i = 0; i < 4; ++i) {
      const double x = z[i], m = flow == Flow::sgd ? 0 : z[4 + i];
      switch (flow) {
        case Flow::sgd:
          EXPECT_DOUBLE_EQ(dz[i], -g[i] - (g[i] * x >= 0 ? lambda * x : 0));
          break;
        case Flow::sgdm:
          EXPECT_DOUBLE_EQ(dz[i], -m - (m * x >= 0 ? lambda * x : 0));
          EXPECT_DOUBLE_EQ(dz[4 + i], beta * (g[i] - m));
          break;
        case Flow::lion_k:
          EXPECT_DOUBLE_EQ(dz[i], (m > 0 ? 1 : -1) - (m * x <= 0 ? lambda * x : 0));
          EXPECT_DOUBLE_EQ(dz[4 + i], -alpha * g[i] - gamma * m);
          break;
        case Flow::adam: {
          const double h = std::sqrt(z[8 + i] / (1 - std::exp(-gamma * t))) + eps;
          EXPECT_NEAR(dz[i], -m / (1 - std::exp(-alpha * t)) / h - (m * x >= 0 ? lambda * x : 0), 1e-12);
          EXPECT_DOUBLE_EQ(dz[4 + i], alpha * (g[i] - m));
          EXPECT_DOUBLE_EQ(dz[8 + i], gamma * (g[i] * g[i] - z[8 + i]));
          break;
        }
      }
    }
  }
}

// A side between -1 and 1 gives the field between those of its two ends.
TEST(System, FieldsAreAffineInTheSides) {
  Random random(7);
  const Problem problem = random_waves(random, 6);
  for (const System& system : every_system(FlowDecay::cautious)) {
    if (system.k.k == Convex::topk && system.flow == Flow::lion_k) continue;  // its pairs never slide
    const Inclusion inclusion = inclusion_of(system, problem);
    const Point z = random_state(random, 6, inclusion.size);
    Point side = sides_at(inclusion, z), low(z.size()), high(z.size()), middle(z.size());
    const std::size_t i = random.below(6);
    side[i] = -1;
    inclusion.field(1, z, side, low);
    side[i] = 1;
    inclusion.field(1, z, side, high);
    side[i] = 0.4;
    inclusion.field(1, z, side, middle);
    for (std::size_t j = 0; j < z.size(); ++j) EXPECT_NEAR(middle[j], 0.3 * low[j] + 0.7 * high[j], 1e-12) << name_of(system);
  }
}

TEST(System, DriveIsTheGradientAndItsRateIsItsDifference) {
  Random random(8);
  const Problem problem = random_ellipsoid(random, 5);
  const System system{.flow = Flow::sgdm};
  const Inclusion inclusion = inclusion_of(system, problem);
  const Point z = random_state(random, 5, inclusion.size), dz = random_state(random, 5, inclusion.size);
  Point ahead = z, behind = z, p(5), q(5), rate(5);
  for (std::size_t i = 0; i < z.size(); ++i) ahead[i] += 1e-6 * dz[i], behind[i] -= 1e-6 * dz[i];
  inclusion.drive(ahead, p);
  inclusion.drive(behind, q);
  inclusion.drive_rate(z, dz, rate);
  for (std::size_t i = 0; i < 5; ++i) EXPECT_NEAR(rate[i], (p[i] - q[i]) / 2e-6, 1e-6 * (1 + std::abs(rate[i])));
}

TEST(System, AdamStartsAsIfTheGradientHadBeenConstant) {
  Random random(9);
  const Problem problem = random_quadratic(random, 3, 3);
  const System system{.flow = Flow::adam, .eps = 0};
  const Inclusion inclusion = inclusion_of(system, problem);
  const Point z = state_at(system, problem, problem.start, 0.01);
  Point dz(z.size());
  inclusion.field(0.01, z, sides_at(inclusion, z), dz);
  const Point g = gradient(problem, problem.start);
  for (std::size_t i = 0; i < 3; ++i) {
    const double decay = g[i] * z[i] >= 0 ? system.lambda * z[i] : 0;
    EXPECT_NEAR(dz[i], (g[i] > 0 ? -1 : 1) - decay, 1e-12);  // m / h is the sign of g
  }
}

TEST(System, NuclearNeedsAMatrixOfTheProblemsSize) {
  Random random(10);
  const Problem problem = random_quadratic(random, 4, 4);
  EXPECT_THROW(inclusion_of(lion_k(Convex::nuclear, FlowDecay::none), problem), std::exception);
}

// With f = 0, gamma = 0 and lambda = 1, H of decoupled Lion-K at m = 0 is K*(x) + K(0). The supremum of <m, x> - K(m) by
// trying.
TEST(Lyapunov, ConjugatesAreTheSuprema) {
  Problem zero;
  zero.start = Point(2, 0);
  zero.value = [](PointView) { return 0.0; };
  for (const Convex k : kAll) {
    System system = lion_k(k, FlowDecay::decoupled), plain = lion_k(k, FlowDecay::none);
    plain.rows = system.rows = 1, plain.cols = system.cols = 2;
    system.lambda = 1, system.gamma = 0;
    const auto k_of = [&](double a, double b) { return lyapunov(plain, zero, 1, Point{0, 0, a, b}); };
    struct Tried {
      double a, b, k;
    };
    std::vector<Tried> tried;  // for all y
    for (double a = -4; a <= 4; a += 0.02) {
      for (double b = -4; b <= 4; b += 0.02) tried.push_back({a, b, k_of(a, b)});
    }
    for (const Point& y : {Point{0.3, -0.2}, Point{0.5, 0.4}, Point{-0.7, 0.1}, Point{1.2, 0.1}, Point{1.1, -1.3}}) {
      const double conjugate = lyapunov(system, zero, 1, Point{y[0], y[1], 0, 0}) - k_of(0, 0);
      double most = -std::numeric_limits<double>::infinity();
      for (const Tried& m : tried) most = std::max(most, m.a * y[0] + m.b * y[1] - m.k);
      if (std::abs(y[0]) > 1) {
        EXPECT_EQ(conjugate, std::numeric_limits<double>::infinity()) << name_of(system);
        EXPECT_GT(most, 0.2) << name_of(system);  // and growing with m: the supremum is infinite
      } else {
        EXPECT_NEAR(conjugate, most, 1e-3) << name_of(system);
      }
    }
  }
}

}  // namespace lyapunov_test
}  // namespace cautious::lab
