// The toy experiment: the paper's three claims on circle and parabola, a run that ends on the local front only, the other
// problems, any recipes as arms, and the motion along the Pareto front.
#include "lab/toy/toy.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include <gtest/gtest.h>

#include <cautious/error.h>

#include "usage_message.h"

namespace cautious::lab {
namespace toy_test {

const ToyStudy& usual(const std::string& name) {
  static const ToyStudy on_circle = run_toy(problem("circle"), {}), on_parabola = run_toy(problem("parabola"), {});
  return name == "circle" ? on_circle : on_parabola;
}

class Curve : public testing::TestWithParam<std::string> {
 protected:
  const ToyStudy& study = usual(GetParam());
  const ToyRun &adam = study.runs[0], &adamw = study.runs[1], &cwd = study.runs[2];
};

INSTANTIATE_TEST_SUITE_P(Toy, Curve, testing::Values("circle", "parabola"), [](const auto& param) { return param.param; });

TEST_P(Curve, ArmsAreTheThreeOfThePaper) {
  ASSERT_EQ(study.runs.size(), 3u);
  EXPECT_EQ(adam.arm.name, "Adam");
  EXPECT_EQ(adamw.arm.name, "AdamW");
  EXPECT_EQ(cwd.arm.name, "Adam + CWD");
  for (const ToyRun& run : study.runs) EXPECT_EQ(run.path.front(), study.problem.start);
}

TEST_P(Curve, AdamEndsOnTheMinimisersOffTheFront) {
  EXPECT_LT(adam.to_minimisers.value(), 1e-8);
  EXPECT_GT(adam.to_local_front.value(), 0.3);
  EXPECT_EQ(adam.pareto, Pareto::beaten);
}

TEST_P(Curve, AdamwSolvesTheBoxOffTheMinimisers) {
  EXPECT_LT(adamw.to_box, kOn);
  EXPECT_LT(distance(adamw.end(), Point{study.box, study.box}), kOn);
  EXPECT_NEAR(adamw.f, study.least_in_box, 0.02);
  EXPECT_GT(adamw.to_minimisers.value(), 0.4);
}

TEST_P(Curve, CautiousDecayEndsOnTheParetoFront) {
  EXPECT_LT(cwd.to_minimisers.value(), 1e-6);
  EXPECT_LT(cwd.to_front.value(), 1e-3);
  EXPECT_EQ(cwd.pareto, Pareto::optimal);
  ASSERT_TRUE(cwd.arrival);
  EXPECT_LT(*cwd.arrival, study.options.steps / 2);
}

TEST_P(Curve, AllClaimsHold) {
  for (const Claim& claim : toy_claims(study)) {
    EXPECT_EQ(claim.outcome, Outcome::holds) << claim.text << ": " << claim.evidence;
    EXPECT_FALSE(claim.mutations.empty()) << claim.text;
    for (const Mutation& mutation : claim.mutations) EXPECT_TRUE(mutation.noticed) << claim.text << ": " << mutation.change;
  }
}

TEST_P(Curve, SameOptionsSameBits) {
  const ToyStudy again = run_toy(study.problem, {});
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(again.runs[i].path, study.runs[i].path);
}

// The limit need not be globally Pareto-optimal: beyond the circle cautious decay stays on the far arc.
TEST(Toy, CautiousDecayCanEndOnTheLocalFrontOnly) {
  const ToyStudy study = run_toy(problem("circle"), {.start = Point{4.6, 4.2}});
  EXPECT_LT(study.runs[2].to_local_front.value(), kOn);
  EXPECT_GT(study.runs[2].to_front.value(), 1);
  EXPECT_EQ(study.runs[2].pareto, Pareto::optimal);
  EXPECT_NE(toy_claims(study)[2].evidence.find("local front"), std::string::npos);
}

// A claim is made only where it could fail: of the box where that excludes the minimisers, of the front where the arm without
// decay ends elsewhere.
TEST(Toy, WhatCannotFailIsNoted) {
  const ToyStudy least_squares = run_toy(problem("least-squares"), {}), factors = run_toy(problem("factorisation"), {});
  const auto claims = toy_claims(least_squares);
  EXPECT_EQ(claims[1].outcome, Outcome::noted) << claims[1].evidence;  // the box holds minimisers
  EXPECT_EQ(claims[2].outcome, Outcome::holds) << claims[2].evidence;
  EXPECT_EQ(least_squares.controls[2].front().change, "without decay");
  EXPECT_EQ(least_squares.controls[2].front().run.pareto, Pareto::beaten);
  EXPECT_EQ(toy_claims(factors)[2].outcome, Outcome::noted);  // Adam ends on the front without decay
}

TEST(Toy, RandomProblemsTellTheArmsApart) {
  const Section section = random_problems(2, [](double, std::string_view) {});
  ASSERT_EQ(section.claims.size(), 7u);
  for (std::size_t i = 0; i < 4; ++i) {  // Adam, Lion, SGD, SGDM
    EXPECT_EQ(section.claims[i].outcome, Outcome::holds) << section.claims[i].text << ": " << section.claims[i].evidence;
    for (const Mutation& mutation : section.claims[i].mutations) EXPECT_TRUE(mutation.noticed) << mutation.change;
  }
}

// X = b P / <A, P>, worked out by hand; another minimiser has no larger entry. Adam's end is Pareto-optimal.
TEST(Toy, MuonSlidesToItsPolarFactor) {
  const MuonEnd muon = muon_end("muon schedule=exact decay=cautious"), adam = muon_end("adam decay=cautious beta2=0.95");
  EXPECT_LT(muon.off, 1e-3);
  EXPECT_EQ(muon.pareto, Pareto::beaten);
  EXPECT_EQ(adam.pareto, Pareto::optimal);
  EXPECT_EQ(muon_end("muon schedule=exact decay=cautious mask=momentum").pareto, Pareto::beaten);
}

// A broken arm that diverges is left out.
TEST(Toy, BrokenArmsMayDiverge) {
  Problem steep = problem("circle");
  steep.name = "steep";
  steep.start = {1, 1};
  steep.value = [](PointView x) { return -(x[0] * x[0] + x[1] * x[1]); };
  steep.gradient = [](PointView x, std::span<double> g) { g[0] = -2 * x[0], g[1] = -2 * x[1]; };
  steep.hessian = [](PointView, Matrix& h) { h = -2 * Matrix::Identity(2, 2); };
  const auto left = broken_arms(steep, parse_arm("sgd decay=cautious lr=0.1", 4), {});
  ASSERT_EQ(left.size(), 1u);  // x grows by 1.2 in every step without decay, and shrinks by 0.8 with the opposed one
  EXPECT_EQ(left[0].change, "decay where u x < 0");
  EXPECT_NEAR(left[0].path[100][0], left[0].path[99][0] * 0.8, 1e-3);
}

// A run that was too short, or whose decay had no time to act, refutes nothing.
TEST(Toy, WhatHasNotComeToRestIsUndecided) {
  ToyOptions hasty, faint;
  hasty.steps = 100;
  faint.weight_decay = 1e-6;
  for (const Claim& claim : toy_claims(run_toy(problem("circle"), hasty))) EXPECT_EQ(claim.outcome, Outcome::undecided);
  EXPECT_EQ(toy_claims(run_toy(problem("circle"), faint))[2].outcome, Outcome::undecided);
}

TEST(Toy, LeastInTheBox) {
  EXPECT_NEAR(least_in_box(problem("circle"), 2, {}), 1, 1e-9);
  EXPECT_NEAR(least_in_box(problem("parabola"), 2, {}), 4, 1e-9);
  EXPECT_NEAR(least_in_box(problem("circle"), 2.5, {}), 0, 1e-9);
  EXPECT_DOUBLE_EQ(to_box(2, Point{-2, 2}), 0);
  EXPECT_DOUBLE_EQ(to_box(2, Point{-5, 6}), 5);
}

// Every problem of any number of variables: without decay and with CWD the arms end on stationary points of f.
TEST(Toy, EveryProblemKeepsItsMinimisersUnderCautiousDecay) {
  for (const Problem& problem : problems()) {
    if (problem.name == "rosenbrock") continue;  // its narrow valley takes more steps; see below
    const ToyStudy study = run_toy(problem, {});
    EXPECT_EQ(study.runs.size(), problem.tensors.front().shape.size() == 2 ? 7u : 3u) << problem.name;
    for (const ToyRun& run : study.runs) {
      if (std::holds_alternative<Decoupled>(run.arm.recipe.decay)) continue;
      ASSERT_TRUE(run.to_minimisers) << problem.name << ": " << run.arm.name;
      EXPECT_LT(*run.to_minimisers, kOn) << problem.name << ": " << run.arm.name;
      EXPECT_LT(run.f, problem.least.value() + 1e-5) << problem.name << ": " << run.arm.name;
    }
  }
}

TEST(Toy, RosenbrocksMinimumIsAlone) {
  const ToyStudy study = run_toy(problem("rosenbrock"), {.steps = 40000});
  for (const std::size_t i : {0, 2}) EXPECT_LT(distance(study.runs[i].end(), Point{1, 1}), 1e-2) << study.runs[i].arm.name;
}

TEST(Toy, AnyRecipeIsAnArm) {
  ToyOptions options;
  options.arms = parse_arms({"lion decay=cautious beta1=0.8", "sgdm decay=cautious lr=0.002", "adamc decay=cautious"}, 0.25);
  const ToyStudy study = run_toy(problem("circle"), options);
  ASSERT_EQ(study.runs.size(), 3u);
  EXPECT_EQ(study.runs[0].arm.name, "Lion + CWD");
  EXPECT_EQ(study.runs[1].arm.name, "SGDM + CWD");
  EXPECT_EQ(study.runs[1].arm.lr, 0.002);
  EXPECT_EQ(study.runs[0].arm.recipe.weight_decay, 0.25);
  for (const ToyRun& run : study.runs) EXPECT_LT(run.to_minimisers.value(), 1e-2) << run.arm.name;
}

TEST(Toy, ArmsOfOneNameKeepTheirLines) {
  const auto arms = parse_arms({"adamw beta2=0.95", "adamw beta2=0.999", "adam"}, 0.5);
  EXPECT_EQ(arms[0].name, "adamw beta2=0.95");
  EXPECT_EQ(arms[1].name, "adamw beta2=0.999");
  EXPECT_EQ(arms[2].name, "Adam");
  EXPECT_EQ(key_of(arms[0]), "adamw_beta2_0_95");
}

TEST(Toy, BadArmsNameTheCharacter) {
  const auto refusal = [](const char* line) { return message([&] { parse_arm(line, 0.5); }); };
  EXPECT_NE(refusal("adma").find("character 1: "), std::string::npos);
  EXPECT_NE(refusal("adma").find("did you mean"), std::string::npos);
  EXPECT_NE(refusal("adamw  beta3=1").find("character 8: "), std::string::npos);
  EXPECT_NE(refusal("adamw beta2=2").find("[0, 1)"), std::string::npos);
  EXPECT_NE(refusal("adamw cautious").find("FIELD=VALUE"), std::string::npos);
  EXPECT_NE(refusal("adamw lr=nan").find("lr"), std::string::npos);
  EXPECT_NE(refusal("  ").find("recipes: "), std::string::npos);
  EXPECT_NE(message([] { parse_arms({"adam", "adam"}, 0.5); }).find("two arms"), std::string::npos);
}

TEST(Toy, BadOptionsAreUsageErrors) {
  const auto refusal = [](auto change) {
    ToyOptions options;
    change(options);
    return message([&] { run_toy(problem("circle"), options); });
  };
  EXPECT_NE(refusal([](ToyOptions& o) { o.lr = 0; }).find("valid"), std::string::npos);
  EXPECT_NE(refusal([](ToyOptions& o) { o.lr = NAN; }).find("valid"), std::string::npos);
  EXPECT_NE(refusal([](ToyOptions& o) { o.weight_decay = 0; }).find("no box"), std::string::npos);
  EXPECT_NE(refusal([](ToyOptions& o) { o.weight_decay = -1; }).find("valid"), std::string::npos);
  EXPECT_NE(refusal([](ToyOptions& o) { o.beta2 = 1; }).find("valid"), std::string::npos);
  EXPECT_NE(refusal([](ToyOptions& o) { o.steps = 0; }).find("valid"), std::string::npos);
  EXPECT_NE(refusal([](ToyOptions& o) { o.start = Point{0, NAN}; }).find("start"), std::string::npos);
  EXPECT_NE(refusal([](ToyOptions& o) { o.start = Point{0, 1, 2}; }).find("start"), std::string::npos);
  EXPECT_NE(refusal([](ToyOptions& o) { o.lr = 1, o.weight_decay = 2; }).find("lr * weight_decay"), std::string::npos);
}

// Adam and Lion move on along the near arc at about the predicted speed; SGD with momentum rests at the smallest rate.
TEST(Toy, WhyItSlidesOn) {
  const Section section = why_it_slides_on(0.5);
  ASSERT_EQ(section.claims.size(), 3u);
  for (const Claim& claim : section.claims) EXPECT_EQ(claim.outcome, Outcome::noted);
  for (const Mutation& mutation : section.claims[1].mutations) EXPECT_TRUE(mutation.noticed) << mutation.result;
  const auto& rows = section.tables.front().rows;
  ASSERT_EQ(rows.size(), 18u);
  const auto ratio = [&](std::size_t row) { return std::stod(rows[row][6]); };
  for (const std::size_t i : {1, 2, 3, 4, 5})
    EXPECT_GT(ratio(i), ratio(i - 1)) << "Adam's speed comes nearer to the prediction";
  for (const std::size_t finest : {5, 10, 11}) EXPECT_NEAR(ratio(finest), 1, 0.02) << rows[finest][0];
  EXPECT_NEAR(ratio(12), 1, 0.05);  // SGD with momentum, while it oscillates: p = n
  EXPECT_EQ(rows.back()[0], "SGDM + CWD");
  EXPECT_LT(std::abs(std::stod(rows.back()[5])), 1e-3);
  for (const std::size_t finest : {5, 11}) {  // where |x1| = |x2| they stop
    EXPECT_GT(std::abs(std::stod(rows[finest][4])), 0.5);
    EXPECT_LT(std::abs(std::stod(rows[finest][5])), 0.15);
  }
}

// A saddle is not a minimiser, and where no stationary point can be found nothing is decided.
TEST(Toy, WhatIsNotAMinimiser) {
  Problem saddle = problem("circle");
  saddle.name = "saddle";
  saddle.start = {0, 0.5};
  saddle.value = [](PointView x) { return std::pow(x[0] * x[0] - 1, 2) + x[1] * x[1]; };
  saddle.gradient = [](PointView x, std::span<double> g) { g[0] = 4 * x[0] * (x[0] * x[0] - 1), g[1] = 2 * x[1]; };
  saddle.hessian = [](PointView x, Matrix& h) {
    h = Matrix::Zero(2, 2);
    h(0, 0) = 12 * x[0] * x[0] - 4, h(1, 1) = 2;
  };
  const Claim at_saddle = toy_claims(run_toy(saddle, {})).front();
  EXPECT_EQ(at_saddle.outcome, Outcome::fails) << at_saddle.evidence;
  EXPECT_NE(at_saddle.evidence.find("saddle"), std::string::npos);

  Problem quartic = problem("circle");
  quartic.name = "quartic";
  quartic.start = {2, 1};
  quartic.value = [](PointView x) { return std::pow(x[0] - x[1], 4); };
  quartic.gradient = [](PointView x, std::span<double> g) { g[0] = 4 * std::pow(x[0] - x[1], 3), g[1] = -g[0]; };
  quartic.hessian = [](PointView x, Matrix& h) {
    const double c = 12 * std::pow(x[0] - x[1], 2);
    h = Matrix::Constant(2, 2, -c);
    h(0, 0) = h(1, 1) = c;
  };
  EXPECT_NE(toy_claims(run_toy(quartic, {})).front().outcome, Outcome::fails);
}

TEST(Toy, TheExperimentHasASectionPerProblem) {
  const auto experiment = toy_experiment({problem("circle"), problem("deep-linear")}, {}, {}, [](double, std::string_view) {});
  ASSERT_EQ(experiment.sections.size(), 3u);  // and the question after the circle
  EXPECT_EQ(experiment.sections[0].command, "cautious lab toy circle");
  EXPECT_EQ(experiment.sections[0].claims.back().outcome, Outcome::fails);  // the caption of Figure 3
  EXPECT_EQ(experiment.sections[2].figures.size(), 2u);
  const std::string& csv = experiment.sections[0].files.front().content;
  EXPECT_EQ(csv.substr(0, csv.find('\n')), "arm,step,f,x1,x2");
}

}  // namespace toy_test
}  // namespace cautious::lab
