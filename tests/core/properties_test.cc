// Identities between recipes that hold bit by bit, one short test each.
#include <cautious/cautious.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <string>

#include "fixture.h"

namespace properties_test {

using fixture::Bf16;
using fixture::every_decay;
using fixture::every_rule;
using fixture::expect_same;
using fixture::gradients;
using fixture::make;
using fixture::run;
using fixture::weights;

constexpr std::size_t kCount = 1025, kSteps = 4;

// A rule or a decay that the library has and the products do not would be tested nowhere.
TEST(Fixture, ListsEveryRuleAndDecay) {
  std::set<std::string> listed, known;
  for (const auto& rules : {every_rule(), fixture::matrix_rules()}) {
    for (const auto& rule : rules) listed.insert(rule.text());
  }
  for (const std::string& recipe : cautious::recipe_names()) {
    const cautious::Rule rule = cautious::recipe(recipe).rule;
    const std::string name(name_of(rule));
    if (!std::holds_alternative<cautious::LionK>(rule)) {
      known.insert(name);
      continue;
    }
    for (const std::string_view k : names_of(cautious::Convex{})) known.insert(name + "_" + std::string(k));
  }
  EXPECT_EQ(listed, known);
  EXPECT_EQ(every_decay(), cautious::decay_names());
}

template <class T>
class EveryElement : public testing::Test {};
using Elements = testing::Types<float, double, Bf16>;
TYPED_TEST_SUITE(EveryElement, Elements);

TYPED_TEST(EveryElement, WithoutWeightDecayEveryDecayGivesTheBitsOfNone) {
  const auto x = weights<TypeParam>(kCount, 1);
  const auto g = gradients<TypeParam>(kSteps, kCount, 2);
  for (const auto& rule : every_rule()) {
    const auto none = run(make(rule, "none"), x, g);
    for (const auto& decay : every_decay()) {
      SCOPED_TRACE(rule.text() + " " + decay);
      EXPECT_EQ(fixture::bytes(none.x), fixture::bytes(run(make(rule, decay, 0), x, g).x));
    }
  }
}

TYPED_TEST(EveryElement, EachCautiousCoordinateIsThePlainOrTheDecayedOne) {
  auto x = weights<TypeParam>(kCount, 3);
  const auto g = gradients<TypeParam>(1, kCount, 4);
  for (const auto& rule : every_rule()) {
    const auto none = run(make(rule, "none", 5), x, g), all = run(make(rule, "decoupled", 5), x, g);
    for (const std::string decay : {"cautious", "gradient", "random", "layerwise"}) {
      SCOPED_TRACE(rule.text() + " " + decay);
      const auto some = run(make(rule, decay, 5), x, g);
      std::int64_t decayed = 0, told = some.reports[0].total.decayed, same = 0;
      for (std::size_t i = 0; i < kCount; ++i) {
        const auto bits = fixture::bytes(&some.x[i], 1), plain = fixture::bytes(&none.x[i], 1),
                   full = fixture::bytes(&all.x[i], 1);
        ASSERT_TRUE(bits == plain || bits == full) << "coordinate " << i;
        same += plain == full;
        decayed += bits == full && plain != full;
      }
      EXPECT_LE(decayed, told);
      EXPECT_GE(decayed + same, told);
    }
  }
}

TYPED_TEST(EveryElement, MirroredProblemHasMirroredSteps) {
  auto x = weights<TypeParam>(kCount, 5);
  auto g = gradients<TypeParam>(kSteps, kCount, 6);
  const auto mirror = [](std::vector<TypeParam> values) {
    for (auto& value : values) value = fixture::to_element<TypeParam>(-fixture::to_double(value));
    return values;
  };
  auto mirrored = g;
  std::transform(g.begin(), g.end(), mirrored.begin(), mirror);
  for (const auto& rule : every_rule()) {
    for (const auto& decay : every_decay()) {
      SCOPED_TRACE(rule.text() + " " + decay);
      const auto a = run(make(rule, decay), x, g), b = run(make(rule, decay), mirror(x), mirrored);
      for (std::size_t i = 0; i < kCount; ++i) ASSERT_EQ(fixture::to_double(a.x[i]), -fixture::to_double(b.x[i])) << i;
    }
  }
}

TYPED_TEST(EveryElement, LionKWithL1IsLion) {
  const auto x = weights<TypeParam>(kCount, 7);
  const auto g = gradients<TypeParam>(kSteps, kCount, 8);
  for (const auto& decay : every_decay()) {
    SCOPED_TRACE(decay);
    expect_same(run(make({"lion", ""}, decay), x, g), run(make({"lion-k", "l1"}, decay), x, g));
  }
}

TYPED_TEST(EveryElement, AnchoredAtZeroIsCautious) {
  const auto x = weights<TypeParam>(kCount, 9);
  const auto g = gradients<TypeParam>(kSteps, kCount, 10);
  const auto zeros = fixture::constant<TypeParam>(kCount, 0);
  for (const auto& rule : every_rule()) {
    SCOPED_TRACE(rule.text());
    const auto a = run(make(rule, "cautious"), x, g), b = run(make(rule, "anchored"), x, g, {}, fixture::rates, zeros);
    EXPECT_EQ(fixture::bytes(a.x), fixture::bytes(b.x));
    for (std::size_t t = 0; t < kSteps; ++t) EXPECT_TRUE(fixture::same(a.reports[t].total, b.reports[t].total)) << t;
  }
}

// Of every state, one of the two strikes each coordinate.
TYPED_TEST(EveryElement, OpposedIsTheComplementOfCautious) {
  const auto x = weights<TypeParam>(kCount, 15);
  const auto g = gradients<TypeParam>(1, kCount, 16);
  for (const auto& rule : every_rule()) {
    SCOPED_TRACE(rule.text());
    const auto of = [&](const char* decay) { return run(make(rule, decay), x, g).reports[0].total; };
    const cautious::Tally one = of("cautious"), other = of("opposed"), all = of("decoupled");
    EXPECT_EQ(one.decayed + other.decayed, static_cast<std::int64_t>(kCount));
    EXPECT_TRUE(one.decayed > 0 && other.decayed > 0);
    EXPECT_NEAR(one.budget + other.budget, all.budget, 1e-6 * all.budget);
    EXPECT_EQ(one.active, other.active);
  }
}

TYPED_TEST(EveryElement, CorrectedCouplingAtConstantLearningRateIsPlain) {
  const auto x = weights<TypeParam>(kCount, 11);
  const auto g = gradients<TypeParam>(kSteps, kCount, 12);
  const auto steady = [](std::size_t) { return cautious::StepInput{.lr = 1.1e-3, .lr_max = 1.1e-3}; };
  cautious::Recipe adamw = cautious::recipe("adamw"), adamc = cautious::recipe("adamc");
  for (const auto& decay : every_decay()) {
    SCOPED_TRACE(decay);
    adamw.decay = adamc.decay = cautious::decay(decay);
    expect_same(run(adamw, x, g, {}, steady), run(adamc, x, g, {}, steady));
  }
}

// In sliding mode (u = 0) decay is all that moves x: by the factor 1 - lr wd per step, exactly where that is representable.
TEST(Sliding, ShrinksByTheDecayFactorAlone) {
  const std::vector<std::vector<double>> still(10, std::vector<double>(130, 0.0));
  const auto powers = [](std::size_t) { return cautious::StepInput{.lr = 0x1p-3}; };
  for (const auto& rule : every_rule()) {
    for (const std::string decay :
         {"decoupled", "cautious", "gradient", "shuffled", "layerwise", "none", "opposed", "selective", "anchored"}) {
      SCOPED_TRACE(rule.text() + " " + decay);
      const bool never = decay == "none" || decay == "opposed" || decay == "selective";
      const bool pulls = !never && decay != "anchored";
      const auto result = run(make(rule, decay, 0x1p-2), std::vector<double>(130, -1.0), still, {}, powers);
      for (const double x : result.x) ASSERT_EQ(x, pulls ? -std::pow(31.0 / 32, 10) : -1);
      EXPECT_EQ(result.reports[9].total.active, 0);
      EXPECT_EQ(result.reports[9].total.decayed, never ? 0 : 130);
    }
  }
}

TEST(Decays, GradientLooksAtTheGradientAndCautiousAtTheDirection) {
  const std::vector<double> x{1, 1, -1, -1};
  // After a long push one way the momentum still points there when the gradient has turned.
  std::vector<std::vector<double>> g(5, {1, -1, 1, -1});
  g.push_back({-0.1, 0.1, -0.1, 0.1});
  const auto small = [](std::size_t) { return cautious::StepInput{.lr = 1e-6}; };
  const auto by_direction = run(make({"sgdm", ""}, "cautious"), x, g, {}, small);
  const auto by_gradient = run(make({"sgdm", ""}, "gradient"), x, g, {}, small);
  const auto none = run(make({"sgdm", ""}, "none"), x, g, {}, small);
  EXPECT_EQ(by_direction.reports[5].total.decayed, 2);
  EXPECT_EQ(by_gradient.reports[5].total.decayed, 2);
  EXPECT_LT(by_direction.x[0], none.x[0]);
  EXPECT_EQ(by_direction.x[1], none.x[1]);
  EXPECT_LT(by_gradient.x[0], none.x[0]);  // five steps of agreement
  EXPECT_LT(by_gradient.x[1], none.x[1]);  // the last step
  EXPECT_GT(by_gradient.x[0], by_direction.x[0]);
}

TEST(Decays, LayerwiseIsAllOrNothing) {
  const std::vector<double> x{2, -1, 3, -4};
  const auto once = [&](std::vector<double> g, const std::string& decay) {
    return run(make({"sgd", ""}, decay, 0.5), x, {std::move(g)}, {},
               [](std::size_t) { return cautious::StepInput{.lr = 0.1}; });
  };
  const std::vector<double> along{1, 1, 1, 0}, against{-1, -1, -1, 0}, across{1, 2, 0, 0};
  expect_same(once(along, "layerwise"), once(along, "decoupled"));
  expect_same(once(across, "layerwise"), once(across, "decoupled"));
  expect_same(once(against, "layerwise"), once(against, "none"));
}

TEST(Decays, MaskDoesNotUnderflow) {
  const auto unit = [](std::size_t) { return cautious::StepInput{.lr = 1}; };
  const std::vector<float> x{1e-30f, -1e-30f, 1e-30f, -1e-30f};
  const std::vector<std::vector<float>> g{{-1e-30f, 1e-30f, 1e-30f, -1e-30f}};
  const auto some = run(make({"sgd", ""}, "cautious", 0.5), x, g, {}, unit);
  EXPECT_EQ(some.x, (std::vector<float>{2e-30f, -2e-30f, -0.5f * 1e-30f, 0.5f * 1e-30f}));
  EXPECT_EQ(some.reports[0].total.decayed, 2);
  EXPECT_EQ(some.reports[0].total.active, 2);

  const auto wide = run<double>(make({"sgd", ""}, "cautious", 0.5), {1e-300, -1e-300}, {{-1e-300, 1e-300}}, {}, unit);
  EXPECT_EQ(wide.x, (std::vector<double>{2e-300, -2e-300}));
  EXPECT_EQ(wide.reports[0].total.decayed, 0);
}

TEST(Decays, ZeroOfEitherSignDecaysAndNanStays) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto step = [](std::size_t) { return cautious::StepInput{.lr = 0.5}; };
  const auto result =
      run<double>(make({"sgd", ""}, "cautious", 0.5), {1, 1, -1, -1, 0.0, -0.0}, {{0.0, -0.0, 0.0, -0.0, -1, 1}}, {}, step);
  EXPECT_EQ(result.reports[0].total.decayed, 6);
  EXPECT_EQ(result.reports[0].total.active, 0);
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(std::fabs(result.x[i]), 0.75);
  EXPECT_EQ(result.x[4], 0.5);
  EXPECT_EQ(result.x[5], -0.5);
  const auto poisoned = run<double>(make({"sgd", ""}, "cautious", 0.5), {1, nan, 1}, {{nan, 1, 0}}, {}, step);
  EXPECT_EQ(poisoned.reports[0].total.nonfinite, 1);
  EXPECT_TRUE(std::isnan(poisoned.x[0]) && std::isnan(poisoned.x[1]));
  EXPECT_EQ(poisoned.x[2], 0.75);
}

TEST(Groups, SwitchedOffDecayIsNoneAndTheMultiplierScalesTheLearningRate) {
  const auto x = weights<double>(kCount, 13);
  const auto g = weights<double>(kCount, 14);
  const cautious::Recipe recipe = make({"adam", ""}, "cautious");
  cautious::Routing routing = cautious::everything(recipe);
  routing.groups[0].lr_multiplier = 0.25;
  auto scaled = x;
  cautious::Optimizer optimizer(routing);
  optimizer.add("x", {static_cast<std::int64_t>(kCount)}, scaled.data(), g.data());
  optimizer.step({.lr = 0.5});
  const auto quarter = [](std::size_t) { return cautious::StepInput{.lr = 0.125}; };
  EXPECT_EQ(scaled, run(recipe, x, {g}, {}, quarter).x);

  auto plain = x;
  cautious::Optimizer vectors(cautious::no_decay_on_vectors(recipe));
  vectors.add("x", {static_cast<std::int64_t>(kCount)}, plain.data(), g.data());
  const auto& report = vectors.step({.lr = 0.125});
  EXPECT_EQ(report.total.decayed, 0);
  EXPECT_EQ(plain, run(make({"adam", ""}, "none"), x, {g}, {}, quarter).x);
}

// A factor of a tensor is a factor on its weight decay, under every decay and coupling, and of no other tensor.
TEST(Groups, TensorFactorsScaleTheWeightDecayOfTheirTensor) {
  const auto x = weights<double>(kCount, 17), g = weights<double>(kCount, 18);
  const std::vector<double> factors{0.5, 0, 4};
  for (const auto& decay : every_decay()) {
    for (const std::string_view coupling : cautious::names_of(cautious::Coupling{})) {
      SCOPED_TRACE(decay + " " + std::string(coupling));
      cautious::Recipe recipe = make({"sgdm", ""}, decay, 0.25);
      cautious::set(recipe, "coupling", coupling);
      const cautious::StepInput input{.lr = 0.125, .lr_max = 0.25};
      std::vector<std::vector<double>> together(3, x);
      cautious::Optimizer optimizer(recipe);
      for (std::size_t k = 0; k < 3; ++k) {
        optimizer.add(std::to_string(k), {static_cast<std::int64_t>(kCount)}, together[k].data(), g.data());
      }
      cautious::StepInput scaled = input;
      scaled.tensor_factors = factors;
      const auto report = optimizer.step(scaled);
      for (std::size_t k = 0; k < 3; ++k) {
        cautious::Recipe own = recipe;
        own.weight_decay *= factors[k];
        auto alone = x;
        cautious::Optimizer other(own);
        other.add(std::to_string(k), {static_cast<std::int64_t>(kCount)}, alone.data(), g.data());
        EXPECT_TRUE(fixture::same(other.step(input).total, report.tensors[k])) << k;
        EXPECT_EQ(alone, together[k]) << k;
      }
    }
  }
}

}  // namespace properties_test
