// The ATen path against the fused core: rules x decays x element types and roundings, over some steps with a schedule. Both go
// their own way from the first step on, so errors add up; the tolerances are for the whole run.
#include <limits>

#include "torch_fixture.h"

namespace torch_product_test {

using cautious::Element;
using cautious::Recipe;
using cautious::Rounding;
using cautious::torch::Optimizer;
using cautious::torch::Settings;
using torch_fixture::Shape;

constexpr int kSteps = 4;
constexpr double kLr = 0.05;

struct Type {
  const char* name;
  at::ScalarType type;
  at::ScalarType gradient;
  Rounding rounding = Rounding::nearest;
  Element moments = Element::f32;
};

const Type kF32{"f32", at::kFloat, at::kFloat}, kF64{"f64", at::kDouble, at::kDouble};
const std::vector<Type> kTypes{kF32,
                               kF64,
                               {"f32, moments bf16", at::kFloat, at::kFloat, Rounding::nearest, Element::bf16},
                               {"bf16 nearest", at::kBFloat16, at::kBFloat16},
                               {"bf16 stochastic", at::kBFloat16, at::kFloat, Rounding::stochastic},
                               {"bf16 split", at::kBFloat16, at::kBFloat16, Rounding::split, Element::bf16}};

// A difference of `relative` times x and `absolute` times the largest learning rate. In bf16 the two paths round the same
// value almost always: hardly a coordinate may differ at all, then by a unit in the last place.
struct Tolerance {
  double relative, absolute;
};

Tolerance tolerance(const Type& type, bool matrices) {
  if (type.type == at::kDouble) return {1e-15, matrices ? 1e-12 : 1e-14};
  const bool coarse = type.moments == Element::bf16;  // a moment may round the other way
  const double absolute = coarse ? 1e-3 : matrices ? 3e-4 : 1e-6;
  return type.type == at::kFloat ? Tolerance{3e-7, absolute} : Tolerance{0x1p-7, absolute};
}

constexpr double kUnequalInBf16 = 0.003;

void expect_near(const at::Tensor& fused, const at::Tensor& generic, const Type& type, const Tolerance& allowed) {
  const at::Tensor a = fused.detach().to(at::kDouble), b = generic.detach().to(at::kDouble);
  const at::Tensor excess = (a - b).abs() - allowed.relative * a.abs() - allowed.absolute * kLr;
  ASSERT_LE(excess.max().item<double>(), 0) << "off by " << (a - b).abs().max().item<double>();
  if (type.type == at::kBFloat16) {
    EXPECT_LE((a != b).sum().item<double>(), std::max(2.0, kUnequalInBf16 * static_cast<double>(a.numel())));
  }
}

void expect_near(const cautious::Tally& fused, const cautious::Tally& generic, double relative) {
  EXPECT_EQ(fused.count, generic.count);
  EXPECT_EQ(fused.nonfinite, generic.nonfinite);
  EXPECT_EQ(fused.decayed, generic.decayed);
  EXPECT_EQ(fused.active, generic.active);
  const auto near = [relative](double a, double b, const char* what) {
    EXPECT_LE(std::abs(a - b), relative * std::max(std::abs(a), 1e-12)) << what;
  };
  near(fused.x2, generic.x2, "x2");
  near(fused.g2, generic.g2, "g2");
  near(fused.u2, generic.u2, "u2");
  near(fused.budget, generic.budget, "budget");
}

void check(const Recipe& recipe, const std::vector<Shape>& shapes, const Type& type, bool matrices, double clip = 0) {
  SCOPED_TRACE(cautious::to_string(recipe) + ", " + type.name);
  torch_fixture::Named fused, generic;
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    const at::Tensor x = torch_fixture::leaf(shapes[i], type.type, i);
    fused.insert("x" + std::to_string(i), x);
    generic.insert("x" + std::to_string(i), torch_fixture::leaf_like(x));
  }
  Settings settings{.moments = type.moments, .rounding = type.rounding, .update_rms_clip = clip, .seed = 77};
  Optimizer of_fused(fused, torch_fixture::options(kLr, recipe), settings);
  settings.generic = true;
  Optimizer of_generic(generic, torch_fixture::options(kLr, recipe), settings);
  for (int step = 0; step < kSteps; ++step) {
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      if (step == 1 && i == 0) continue;  // keeps its gradient
      const at::Tensor g = torch_fixture::values(shapes[i], type.gradient, 1000 * (step + 1) + i);
      torch_fixture::set_gradient(fused[i].value(), g);
      torch_fixture::set_gradient(generic[i].value(), g.clone());
    }
    for (Optimizer* optimizer : {&of_fused, &of_generic}) {
      torch_fixture::options_of(*optimizer).lr = kLr / (1 + step);
      torch_fixture::options_of(*optimizer).decay_factor = 1 - 0.2 * step;
      optimizer->step();
    }
    for (std::size_t i = 0; i < shapes.size(); ++i) {
      SCOPED_TRACE("step " + std::to_string(step + 1) + ", parameter " + std::to_string(i));
      expect_near(fused[i].value(), generic[i].value(), type, tolerance(type, matrices));
      const double sums = type.type == at::kDouble                                  ? 1e-9
                          : type.type == at::kFloat && type.moments == Element::f32 ? 1e-3
                                                                                    : 2e-2;
      expect_near(of_fused.report().tensors[i], of_generic.report().tensors[i], sums);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Product, VectorsAgree) {
  for (const fixture::RuleName& rule : fixture::every_rule()) {
    for (const std::string& decay : fixture::every_decay()) {
      for (const Type& type : kTypes) check(fixture::make(rule, decay), {{700}, {3, 5}, {}}, type, false);
      if (HasFailure()) return;
    }
  }
}

const std::vector<Shape> kMatrices{{7, 5}, {5, 7}, {16, 33}, {4, 3, 2, 2}};

TEST(Product, MatricesAgree) {
  for (const fixture::RuleName& rule : fixture::matrix_rules()) {
    for (const std::string& decay : fixture::every_decay()) {
      for (const Type& type : kTypes) check(fixture::make(rule, decay), kMatrices, type, true);
      if (HasFailure()) return;
    }
  }
}

TEST(Product, MasksByMomentumAgree) {
  for (const fixture::RuleName& rule : fixture::shaping_rules()) {
    const bool matrices = rule.rule == "muon" || rule.k == "nuclear";
    for (const char* decay : {"cautious", "opposed", "shuffled"}) {
      for (const Type& type : kTypes) check(fixture::by_momentum(rule, decay), kMatrices, type, matrices);
      if (HasFailure()) return;
    }
  }
}

TEST(Product, SchedulesOfMatricesAgree) {
  for (const std::string_view schedule : cautious::names_of(cautious::NewtonSchulz{})) {
    for (const std::string_view scale : cautious::names_of(cautious::MatrixScale{})) {
      Recipe recipe = fixture::make({"muon", ""}, "cautious");
      cautious::set(recipe, "schedule", schedule);
      cautious::set(recipe, "scale", scale);
      if (schedule == "custom") cautious::set(recipe, "coefficients", "3,-3.25,1.25,1.875,-1.25,0.375");
      if (scale == "rms") cautious::set(recipe, "nesterov", "on");
      check(recipe, kMatrices, kF32, true);
      check(recipe, kMatrices, kF64, true);
      cautious::set(recipe, "blocks", "2");
      cautious::set(recipe, "eps", "1.5");
      check(recipe, {{4, 6}, {2, 3, 4}, {6, 2, 2, 2}}, kF64, true);
      if (HasFailure()) return;
    }
  }
}

TEST(Product, CouplingsAndClippingAgree) {
  for (const std::string_view coupling : cautious::names_of(cautious::Coupling{})) {
    for (const std::string& decay : fixture::every_decay()) {
      Recipe recipe = fixture::make({"adam", ""}, decay);
      cautious::set(recipe, "coupling", coupling);
      for (const Type& type : kTypes) check(recipe, {{300}, {4, 4}}, type, false, 0.7);
    }
  }
}

// Numbers where the two could part: zeros, signs that a product would lose, NaN and infinities, an empty tensor.
TEST(Product, EdgesAgree) {
  constexpr double inf = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  const at::Tensor x = at::tensor({0.0, -0.0, 1e-30, 1e-30, -1e-30, 1.0, -1.0, 1.0, inf, nan, 2.0, -2.0}, at::kFloat);
  const at::Tensor g = at::tensor({1.0, -1.0, -1e-30, 1e-30, 1e-30, 0.0, -0.0, nan, 1.0, 1.0, inf, -inf}, at::kFloat);
  for (const fixture::RuleName& rule : fixture::every_rule()) {
    for (const std::string& decay : fixture::every_decay()) {
      SCOPED_TRACE(rule.text() + " " + decay);
      std::vector<at::Tensor> xs;
      std::vector<cautious::Tally> tallies;
      for (const bool generic : {false, true}) {
        const at::Tensor parameter = torch_fixture::leaf_like(x), empty = torch_fixture::leaf({0, 3}, at::kFloat, 1);
        torch_fixture::set_gradient(parameter, g);
        torch_fixture::set_gradient(empty, at::zeros({0, 3}));
        Optimizer optimizer({parameter, empty}, torch_fixture::options(0.1, fixture::make(rule, decay)), {.generic = generic});
        optimizer.step();
        xs.push_back(parameter.detach());
        tallies.push_back(optimizer.report().tensors[0]);
      }
      EXPECT_TRUE(at::allclose(xs[0], xs[1], 1e-5, 0, /*equal_nan=*/true)) << xs[0] << xs[1];
      EXPECT_EQ(tallies[0].decayed, tallies[1].decayed);
      EXPECT_EQ(tallies[0].active, tallies[1].active);
      EXPECT_EQ(tallies[0].nonfinite, tallies[1].nonfinite);
    }
  }
}

TEST(Product, AMatrixWithNanIsNanAndAZeroMatrixStays) {
  for (const char* schedule : {"paper", "exact", "turbo"}) {
    for (const bool generic : {false, true}) {
      Recipe recipe = fixture::make({"muon", ""}, "none");
      cautious::set(recipe, "schedule", schedule);
      const at::Tensor bad = torch_fixture::leaf({3, 4}, at::kFloat, 1), zero = torch_fixture::leaf({3, 4}, at::kFloat, 2);
      const at::Tensor before = zero.detach().clone();
      torch_fixture::random_gradient(bad, 3);
      bad.grad()[1][2] = std::numeric_limits<float>::quiet_NaN();
      torch_fixture::set_gradient(zero, at::zeros({3, 4}));
      Optimizer optimizer({bad, zero}, torch_fixture::options(0.1, recipe), {.generic = generic});
      optimizer.step();
      EXPECT_TRUE(bad.isnan().all().item<bool>());
      EXPECT_TRUE(torch_fixture::same_bits(zero, before));
    }
  }
}

}  // namespace torch_product_test
