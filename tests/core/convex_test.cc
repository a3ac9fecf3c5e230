// K and its subgradient: by hand, by the subgradient inequality, by finite differences, and at the awkward values.
#include <cautious/rules/lion_k.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace cautious {
namespace convex_test {

using Vector = std::vector<double>;
const double kNan = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

Vector at(const ConvexFunction& k, Vector z) {
  subgradient(k, std::span<double>(z));
  return z;
}
std::vector<float> at(const ConvexFunction& k, std::vector<float> z) {
  subgradient(k, std::span<float>(z));
  return z;
}

std::vector<ConvexFunction> all() {
  return {{.k = Convex::l1},
          {.k = Convex::l2},
          {.k = Convex::lp, .p = 1},
          {.k = Convex::lp, .p = 1.5},
          {.k = Convex::lp, .p = 2},
          {.k = Convex::lp, .p = 7},
          {.k = Convex::huber, .e = 0.5},
          {.k = Convex::relativistic, .e = 0.5},
          {.k = Convex::threshold, .e = 0.5},
          {.k = Convex::topk, .fraction = 0.3},
          {.k = Convex::topk, .fraction = 1},
          {.k = Convex::topk, .fraction = 0}};
}

class EveryK : public testing::TestWithParam<ConvexFunction> {
 protected:
  Vector point(std::size_t n) {
    Vector z(n);
    for (double& entry : z) entry = std::round(draw() * 64) / 16;  // a grid, so that ties and zeros occur
    return z;
  }
  double draw() { return 2 * static_cast<double>(engine_() >> 11) * 0x1p-53 - 1; }

 private:
  std::mt19937_64 engine_{7};
};
INSTANTIATE_TEST_SUITE_P(Convex, EveryK, testing::ValuesIn(all()),
                         [](const auto& i) { return std::string(name_of(i.param.k)) + "_" + std::to_string(i.index); });

TEST_P(EveryK, SubgradientInequality) {
  for (int trial = 0; trial < 2000; ++trial) {
    const std::size_t n = 1 + static_cast<std::size_t>(trial) % 20;
    const Vector z = point(n), y = point(n), s = at(GetParam(), z);
    double bound = value(GetParam(), z);
    for (std::size_t i = 0; i < n; ++i) bound += s[i] * (y[i] - z[i]);
    ASSERT_GE(value(GetParam(), y), bound - 1e-12 * (1 + std::abs(bound))) << "trial " << trial;
  }
}

TEST_P(EveryK, SubgradientIsTheDerivativeAwayFromKinks) {
  const Vector z{1.3, -0.71, 2.9, 0.11, -3.7, 0.24, 1.9}, s = at(GetParam(), z);
  const double h = 1e-6;
  for (std::size_t i = 0; i < z.size(); ++i) {
    Vector up = z, down = z;
    up[i] += h;
    down[i] -= h;
    EXPECT_NEAR(s[i], (value(GetParam(), up) - value(GetParam(), down)) / (2 * h), 1e-8) << "coordinate " << i;
  }
}

TEST_P(EveryK, ZerosGiveZerosAndEmptyIsFine) {
  for (const double s : at(GetParam(), Vector{0.0, -0.0, 0.0})) EXPECT_EQ(s, 0);
  EXPECT_TRUE(at(GetParam(), Vector{}).empty());
  const double empty = value(GetParam(), Vector{});
  EXPECT_EQ(empty, 0);
}

TEST_P(EveryK, NanIsNeverHidden) {
  const Vector s = at(GetParam(), Vector{1, kNan, -2, kNan, 0});
  EXPECT_TRUE(std::isnan(s[1]) && std::isnan(s[3]));
  EXPECT_TRUE(!is_separable(GetParam().k) || (std::isfinite(s[0]) && std::isfinite(s[2]) && s[4] == 0));
  const bool constant = GetParam().k == Convex::topk && GetParam().fraction == 0;
  EXPECT_EQ(std::isnan(value(GetParam(), Vector{1, kNan})), !constant);
}

TEST_P(EveryK, OddAndCloseInF32) {
  const Vector z = point(37);
  const Vector s = at(GetParam(), z);
  Vector mirrored = z;
  for (double& entry : mirrored) entry = -entry;
  mirrored = at(GetParam(), mirrored);
  const std::vector<float> single = at(GetParam(), std::vector<float>(z.begin(), z.end()));
  for (std::size_t i = 0; i < z.size(); ++i) {
    EXPECT_EQ(mirrored[i], -s[i]);
    EXPECT_NEAR(single[i], s[i], 2e-7);
  }
}

// Squares of these over- and underflow in their own type. K(cz) = c K(z) for norms; the others saturate or vanish.
TEST_P(EveryK, NoOverflowOrUnderflow) {
  for (const double scale : {1e30, 1e160, 1e300, 1e-160, 1e-300}) {
    for (const double s : at(GetParam(), Vector{3 * scale, -4 * scale})) EXPECT_LE(std::abs(s), 1 + 1e-15) << scale;
    EXPECT_TRUE(std::isfinite(value(GetParam(), Vector{3 * scale, -4 * scale}))) << scale;
  }
  for (const float scale : {1e30f, 1e37f, 1e-30f, 1e-37f}) {
    for (const float s : at(GetParam(), std::vector<float>{3 * scale, -4 * scale})) EXPECT_LE(std::abs(s), 1.000001f) << scale;
  }
}

TEST(Convex, ValuesByHand) {
  const Vector z{3, -4, 0};
  EXPECT_EQ(value({.k = Convex::l1}, z), 7);
  EXPECT_EQ(value({.k = Convex::l2}, z), 5);
  EXPECT_NEAR(value({.k = Convex::lp, .p = 3}, z), std::cbrt(91.0), 1e-14);
  EXPECT_EQ(value({.k = Convex::huber, .e = 2}, Vector{1, -3}), 0.25 + 2);
  EXPECT_EQ(value({.k = Convex::relativistic, .e = 4}, z), 5 + std::sqrt(32.0) + 4);
  EXPECT_EQ(value({.k = Convex::threshold, .e = 1}, Vector{0.5, -3, 1}), 2);
  EXPECT_EQ(value({.k = Convex::topk, .fraction = 0.5}, z), 7);  // ceil(1.5) = 2 entries
}

TEST(Convex, SubgradientsByHand) {
  EXPECT_EQ(at({.k = Convex::l2}, Vector{3, -4, 0}), (Vector{3 * 0.2, -4 * 0.2, 0}));
  EXPECT_EQ(at({.k = Convex::huber, .e = 2}, Vector{1, -3, -2}), (Vector{0.5, -1, -1}));
  EXPECT_EQ(at({.k = Convex::relativistic, .e = 4}, Vector{3, -3}), (Vector{0.6, -0.6}));
  EXPECT_EQ(at({.k = Convex::threshold, .e = 1}, Vector{0.5, -3, 1}), (Vector{0, -1, 0}));
  const Vector s = at({.k = Convex::lp, .p = 3}, Vector{1, -2});
  EXPECT_NEAR(s[0], std::pow(9, -2.0 / 3), 1e-15);
  EXPECT_NEAR(s[1], -4 * std::pow(9, -2.0 / 3), 1e-15);
}

TEST(Convex, L1IsTheSignWithZerosAndNan) {
  const Vector s = at({.k = Convex::l1}, Vector{-0.0, 0.0, -5, kInf, kNan});
  EXPECT_TRUE(std::signbit(s[0]) && s[0] == 0);
  EXPECT_TRUE(!std::signbit(s[1]) && s[1] == 0);
  EXPECT_EQ(s[2], -1);
  EXPECT_EQ(s[3], 1);
  EXPECT_TRUE(std::isnan(s[4]));
}

TEST(Convex, LpWithOneAndTwoHasTheBitsOfL1AndL2) {
  const std::vector<float> z{0.3f, -0.0f, -7, 1e-20f, 123};
  EXPECT_EQ(at({.k = Convex::lp, .p = 1}, z), at({.k = Convex::l1}, z));
  EXPECT_EQ(at({.k = Convex::lp, .p = 2}, z), at({.k = Convex::l2}, z));
}

TEST(Convex, TopkTakesTiesFromTheLowerIndex) {
  const ConvexFunction k{.k = Convex::topk, .fraction = 0.5};
  EXPECT_EQ(at(k, Vector{1, -2, 2, 2, -2, 0.5}), (Vector{0, -1, 1, 1, 0, 0}));
  EXPECT_EQ(at(k, Vector{0, 0, 0, 5}), (Vector{0, 0, 0, 1}));
  EXPECT_EQ(at(k, Vector{kInf, -kInf, 1, 2}), (Vector{1, -1, 0, 0}));
  const Vector s = at(k, Vector{1, kNan, 7, 6});  // NaN takes a place
  EXPECT_TRUE(s[0] == 0 && std::isnan(s[1]) && s[2] == 1 && s[3] == 0);
}

TEST(Convex, TinyWidthsInF32) {
  for (const Convex k : {Convex::huber, Convex::relativistic, Convex::threshold}) {
    EXPECT_EQ(at({.k = k, .e = 1e-60}, std::vector<float>{0, 1, -1}), (std::vector<float>{0, 1, -1}));
  }
}

}  // namespace convex_test
}  // namespace cautious
