// The toy experiment: its functions against finite differences and hand-computed points, the paper's three claims on the
// default run, and one run that ends on the local front only.
#include "lab/toy.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "lab/toy_text.h"

namespace cautious {
namespace {

const ToyObjective& circle() { return toy_objective("circle"); }
const ToyObjective& parabola() { return toy_objective("parabola"); }
const ToyRun& run_of(const ToyStudy& study, ToyArm arm) { return study.runs[static_cast<std::size_t>(arm)]; }

const ToyStudy& usual(const ToyObjective& objective) {
  static const ToyStudy on_circle = run_toy(circle(), {}), on_parabola = run_toy(parabola(), {});
  return objective.name == "circle" ? on_circle : on_parabola;
}

class EveryToy : public testing::TestWithParam<const ToyObjective*> {
 protected:
  const ToyObjective& objective = *GetParam();
};

INSTANTIATE_TEST_SUITE_P(Toy, EveryToy, testing::Values(&toy_objectives()[0], &toy_objectives()[1]),
                         [](const auto& param) { return std::string(param.param->name); });

TEST_P(EveryToy, GradientIsTheSlope) {
  constexpr double h = 1e-5;
  for (const ToyPoint p : {ToyPoint{1.4, 5.2}, {5.4, 4.4}, {2, 2}, {-1, 0.5}, {3, 3}, {0, 0}}) {
    const ToyPoint g = objective.gradient(p);
    const double dx = (objective.value({p.x + h, p.y}) - objective.value({p.x - h, p.y})) / (2 * h);
    const double dy = (objective.value({p.x, p.y + h}) - objective.value({p.x, p.y - h})) / (2 * h);
    EXPECT_NEAR(g.x, dx, 1e-6 * (1 + std::abs(dx)));
    EXPECT_NEAR(g.y, dy, 1e-6 * (1 + std::abs(dy)));
  }
}

TEST_P(EveryToy, MinimisersAreZerosAndAtNoDistance) {
  for (double s = 0; s <= 6.25; s += 0.125) {
    const ToyPoint p = objective.minimiser(s);
    EXPECT_LT(objective.value(p), 1e-28);
    EXPECT_LT(to_manifold(objective, p), 1e-14);
  }
}

// Against the definitions, away from the ends of the arcs: no point of the curve beats one of the front, and no near one beats
// one of the local front; every other point is beaten.
TEST_P(EveryToy, FrontIsWhatNoMinimiserBeats) {
  constexpr double kStep = 0.01, kNearby = 0.05, kEnd = 0.1;
  const bool round = objective.name == "circle";
  const double first = round ? 0 : -3, last = round ? 2 * std::numbers::pi : 7;
  const auto beats = [](ToyPoint a, ToyPoint b) {
    return distance(a, b) > 1e-9 && std::abs(a.x) <= std::abs(b.x) && std::abs(a.y) <= std::abs(b.y);
  };
  const auto near_end = [&](double s, const ToyArc& arc) {
    return std::min(std::abs(s - arc.from), std::abs(s - arc.to)) < kEnd;
  };
  for (double s = first + kEnd; s < last - kEnd; s += kStep) {
    if (near_end(s, objective.front) || (objective.local_front && near_end(s, *objective.local_front))) continue;
    const ToyPoint p = objective.minimiser(s);
    bool beaten = false, beaten_nearby = false;
    for (double r = first; r < last; r += kStep / 4) {
      const ToyPoint other = objective.minimiser(r);
      beaten |= beats(other, p);
      beaten_nearby |= beats(other, p) && distance(p, other) < kNearby;
    }
    EXPECT_EQ(to_front(objective, p) < 1e-9, !beaten) << "at " << p.x << ", " << p.y;
    EXPECT_EQ(to_local_front(objective, p) < 1e-9, !beaten_nearby) << "at " << p.x << ", " << p.y;
  }
}

TEST(Toy, DistancesOnTheCircle) {
  EXPECT_DOUBLE_EQ(to_manifold(circle(), {3, 3}), 1);
  EXPECT_DOUBLE_EQ(to_manifold(circle(), {2, 2}), std::numbers::sqrt2 - 1);
  EXPECT_DOUBLE_EQ(to_manifold(circle(), {3, 6}), 2);
  EXPECT_DOUBLE_EQ(to_front(circle(), {2, 2}), std::numbers::sqrt2 - 1);
  EXPECT_DOUBLE_EQ(to_front(circle(), {3, 4}), std::numbers::sqrt2);  // to (2, 3)
  EXPECT_DOUBLE_EQ(to_front(circle(), {4, 2}), 1);                    // to (3, 2)
  EXPECT_NEAR(to_local_front(circle(), {4, 4}), std::numbers::sqrt2 - 1, 1e-15);
  EXPECT_NEAR(to_local_front(circle(), {4, 2}), 1, 1e-15);  // (3, 2) and (4, 3) are equally far
}

TEST(Toy, DistancesOnTheParabola) {
  EXPECT_DOUBLE_EQ(to_manifold(parabola(), {3, 2}), 1);
  EXPECT_NEAR(to_manifold(parabola(), {3, 5}), std::sqrt(1.75), 1e-15);  // at t^2 = k - 1/2 = 3/2: 3/2 + 1/4
  EXPECT_NEAR(to_manifold(parabola(), {6, 12}), 0, 1e-15);
  EXPECT_NEAR(to_manifold(parabola(), {3 + 1 + 2, 3 + 1 - 1}), std::sqrt(5), 1e-14);  // along the normal (2, -1) at t = 1
  EXPECT_NEAR(to_front(parabola(), {4, 4}), std::sqrt(2), 1e-15);                     // the vertex
  EXPECT_DOUBLE_EQ(to_front(parabola(), {-1, 13}), std::sqrt(2));                     // (0, 12)
}

TEST(Toy, LeastInTheBox) {
  EXPECT_DOUBLE_EQ(circle().least_in_box(2), 1);
  EXPECT_DOUBLE_EQ(parabola().least_in_box(2), 4);
  EXPECT_DOUBLE_EQ(circle().least_in_box(2.5), 0);
  EXPECT_DOUBLE_EQ(circle().least_in_box(HUGE_VAL), 0);
  EXPECT_DOUBLE_EQ(parabola().least_in_box(HUGE_VAL), 0);
  EXPECT_DOUBLE_EQ(to_box(2, {-2, 2}), 0);
  EXPECT_DOUBLE_EQ(to_box(2, {-5, 6}), 5);
}

TEST_P(EveryToy, AdamEndsOnTheMinimisersOffTheFront) {
  const ToyRun& run = run_of(usual(objective), ToyArm::adam);
  EXPECT_LT(run.to_manifold, 1e-8);
  EXPECT_GT(run.to_local_front, 0.3);
}

TEST_P(EveryToy, AdamwSolvesTheBoxOffTheMinimisers) {
  const ToyStudy& study = usual(objective);
  const ToyRun& run = run_of(study, ToyArm::adamw);
  EXPECT_LT(run.to_box, kOn);
  EXPECT_LT(distance(run.end, {study.box, study.box}), kOn);
  EXPECT_NEAR(run.f, study.least_in_box, kOn * distance(objective.gradient(run.end), {0, 0}));
  EXPECT_GT(run.to_manifold, 0.4);
}

TEST_P(EveryToy, CautiousDecayEndsOnTheParetoFront) {
  const ToyRun& run = run_of(usual(objective), ToyArm::cwd);
  EXPECT_LT(run.to_manifold, 1e-6);
  EXPECT_LT(run.to_front, 1e-6);
  ASSERT_TRUE(run.arrival);
  EXPECT_LT(*run.arrival, usual(objective).options.steps / 2);
}

// The limit need not be globally Pareto-optimal: beyond the circle cautious decay stays on the far arc.
TEST(Toy, CautiousDecayCanEndOnTheLocalFrontOnly) {
  ToyOptions options;
  options.start = ToyPoint{4.6, 4.2};
  const ToyStudy study = run_toy(circle(), options);
  const ToyRun& run = run_of(study, ToyArm::cwd);
  EXPECT_LT(run.to_local_front, 1e-6);
  EXPECT_GT(run.to_front, 1);
  EXPECT_NE(verdict(study).back().find("local front"), std::string::npos);
}

TEST_P(EveryToy, SameOptionsSameBits) {
  const ToyStudy again = run_toy(objective, {});
  EXPECT_EQ(toy_csv({&again, 1}), toy_csv({&usual(objective), 1}));
  EXPECT_EQ(toy_json({&again, 1}), toy_json({&usual(objective), 1}));
}

TEST_P(EveryToy, WithoutDecayAllArmsAreAdam) {
  ToyOptions options;
  options.weight_decay = 0;
  const ToyStudy study = run_toy(objective, options);
  for (const ToyRun& run : study.runs) EXPECT_EQ(distance(run.end, study.runs.front().end), 0);
  EXPECT_NE(verdict(study)[1].find("no box"), std::string::npos);
}

TEST(Toy, BadOptionsAreUsageErrors) {
  const auto refuses = [](auto change) {
    ToyOptions options;
    change(options);
    try {
      run_toy(circle(), options);
    } catch (const Error& error) {
      return error.fault() == Fault::usage && std::string(error.what()).find("valid") != std::string::npos;
    }
    return false;
  };
  EXPECT_TRUE(refuses([](ToyOptions& o) { o.lr = 0; }));
  EXPECT_TRUE(refuses([](ToyOptions& o) { o.lr = NAN; }));
  EXPECT_TRUE(refuses([](ToyOptions& o) { o.weight_decay = -1; }));
  EXPECT_TRUE(refuses([](ToyOptions& o) { o.beta2 = 1; }));
  EXPECT_TRUE(refuses([](ToyOptions& o) { o.steps = 0; }));
  EXPECT_TRUE(refuses([](ToyOptions& o) { o.start = ToyPoint{0, NAN}; }));
  EXPECT_TRUE(refuses([](ToyOptions& o) { o.lr = 1, o.weight_decay = 2; }));
  EXPECT_THROW(toy_objective("circel"), Error);
}

}  // namespace
}  // namespace cautious
