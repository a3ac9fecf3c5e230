// Polar factors against the oracle: every schedule, element type and way through the code, and where singular values end up.
#include <cautious/polar.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fixture.h"
#include "linear/orthogonal.h"
#include "polar_fixture.h"

namespace cautious {
namespace polar_test {

using fixture::Values;
using polar_oracle::distance;
using polar_oracle::Matrix;

// In f64 and f32, unless a schedule is so steep at the matrix's singular values that rounding errors grow beyond.
constexpr double kDouble = 1e-12, kFloat = 2e-5;

void expect_oracle(NewtonSchulz schedule, int rows, int cols, std::initializer_list<int> threads) {
  const Matrix m = random(rows, cols), wanted = polar_oracle::newton_schulz(m, name_of(schedule));
  const bool steep = schedule == NewtonSchulz::cans || schedule == NewtonSchulz::polar_express;
  const double units = steep && std::min(rows, cols) <= 40 ? 4 * polar_oracle::errors(m, name_of(schedule)) : 0;
  for (const int t : threads) {
    SCOPED_TRACE(testing::Message() << rows << "x" << cols << " on " << t);
    EXPECT_LE(distance(result<double>(m, {.schedule = schedule}, t), wanted), std::max(kDouble, 0x1p-53 * units));
    EXPECT_LE(distance(result<float>(m, {.schedule = schedule}, t), wanted), std::max(kFloat, 0x1p-24 * units));
  }
}

class EverySchedule : public testing::TestWithParam<NewtonSchulz> {};
INSTANTIATE_TEST_SUITE_P(Polar, EverySchedule,
                         testing::Values(NewtonSchulz::paper, NewtonSchulz::quintic, NewtonSchulz::polar_express,
                                         NewtonSchulz::polar_express_8, NewtonSchulz::cans, NewtonSchulz::turbo),
                         [](const auto& i) {
                           std::string name(name_of(i.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(Polar, EveryShapeUpTo33IsTheOracles) {
  for (int rows = 1; rows <= 33; ++rows) {
    for (int cols = 1; cols <= 33; ++cols) expect_oracle(NewtonSchulz::paper, rows, cols, {1});
  }
}

TEST_P(EverySchedule, SmallShapesAreTheOracles) {
  for (const int rows : {1, 2, 3, 7, 16, 33}) {
    for (const int cols : {1, 2, 5, 15, 16, 17, 32, 40, 70}) expect_oracle(GetParam(), rows, cols, {1, 2});
  }
}

// Sides from 128 on are cut into pieces when there are several threads; the Gram form is for sides that differ by a third.
TEST_P(EverySchedule, ShapesCutIntoPiecesAreTheOracles) {
  expect_oracle(GetParam(), 100, 130, {1, 2, 3});
  expect_oracle(GetParam(), 130, 100, {1, 2, 3});
  expect_oracle(GetParam(), 64, 300, {1, 2, 3});
  expect_oracle(GetParam(), 300, 64, {1, 2, 3});
  expect_oracle(GetParam(), 128, 129, {1, 2, 3});
}
TEST(Polar, LargerShapesAreTheOracles) {
  expect_oracle(NewtonSchulz::paper, 200, 200, {1, 2, 3});
  expect_oracle(NewtonSchulz::turbo, 257, 129, {1, 2, 3});
  expect_oracle(NewtonSchulz::polar_express, 129, 400, {1, 2, 3});
  expect_oracle(NewtonSchulz::cans, 1000, 20, {1, 2, 3});
}

// A square goes step by step; of an oblong several steps are done on the Gram matrix alone.
TEST_P(EverySchedule, OblongShapesTakeSeveralStepsPerRun) {
  const Polar how{.schedule = GetParam()};
  const std::size_t steps = polar_oracle::steps_of(name_of(GetParam())).size();
  for (const int side : {1, 32, 256}) {
    EXPECT_EQ(linear::make_task<float>(nullptr, side, side, how).runs, std::vector<int>(steps, 1));
    for (const bool tall : {false, true}) {
      const auto task = linear::make_task<float>(nullptr, tall ? 4 * side : side, tall ? side : 4 * side, how);
      EXPECT_LT(task.runs.size(), steps);
      EXPECT_EQ(std::accumulate(task.runs.begin(), task.runs.end(), 0), static_cast<int>(steps));
    }
  }
}

// Values evenly in the logarithm, the smallest `low` of the norm of all, which is 1.
std::vector<double> prescribed(std::size_t count, double low) {
  std::vector<double> values(count);
  double size = 1;
  for (int repeat = 0; repeat < 30; ++repeat) {
    double sum = 0;
    for (std::size_t i = 0; i < count; ++i) {
      values[i] = std::pow(low * size, static_cast<double>(i) / static_cast<double>(count - 1));
      sum += values[i] * values[i];
    }
    size = std::sqrt(sum);
  }
  for (double& value : values) value /= size;
  return values;
}

void expect_within(const Matrix& out, Band promised) {
  for (const double sigma : polar_oracle::svd(out).values) {
    EXPECT_GE(sigma, promised.low - 1e-6);
    EXPECT_LE(sigma, promised.high + 1e-6);
  }
}

// With prescribed singular values S the factor is U f(S) V^T, f being all steps one after the other: the band's promise, and
// where in it. turbo's preconditioner changes U and S; of it the preconditioned matrix tells where the values start.
TEST_P(EverySchedule, SingularValuesFollowThePolynomialIntoTheBand) {
  constexpr int kSide = 24;
  const std::string_view name = name_of(GetParam());
  const Polar how{.schedule = GetParam()};
  Values draw(5);
  const Matrix u = polar_oracle::orthonormal(kSide, kSide, draw), v = polar_oracle::orthonormal(kSide, 40, draw);
  for (const double low : {1e-3, 1e-2, 0.1, 0.2}) {
    SCOPED_TRACE(low);
    const std::vector<double> values = prescribed(kSide, low);
    const Matrix m = polar_oracle::assembled(u, values, v), out = result<double>(m, how);
    if (GetParam() == NewtonSchulz::turbo) {
      const std::vector<double> starts = polar_oracle::svd(polar_oracle::normalised(m, name)).values;
      EXPECT_LE(starts.front(), 1 + 1e-12);
      expect_within(out, band(how, starts.back()));
      continue;
    }
    std::vector<double> ends;
    for (const double value : values) {
      ends.push_back(polar_oracle::composite(polar_oracle::steps_of(name), value / polar_oracle::divisor(name)));
    }
    EXPECT_LE(distance(out, polar_oracle::assembled(u, ends, v)), kDouble);
    expect_within(out, band(how, 1e-3));
  }
}

TEST_P(EverySchedule, RandomMatricesEndInTheBand) {
  const Polar how{.schedule = GetParam()};
  for (const int cols : {16, 24, 64}) {
    const Matrix m = random(16, cols);
    const double least = polar_oracle::svd(polar_oracle::normalised(m, name_of(GetParam()))).values.back();
    expect_within(result<double>(m, how), band(how, least));
  }
}

TEST(Polar, BandsAreTheDocumentedOnes) {
  const auto expect_band = [](NewtonSchulz schedule, double low, double high, double tolerance) {
    const Band seen = band({.schedule = schedule}, 1e-3);
    EXPECT_NEAR(seen.low, low, tolerance) << name_of(schedule);
    EXPECT_NEAR(seen.high, high, tolerance) << name_of(schedule);
  };
  expect_band(NewtonSchulz::paper, 0.470, 1.203, 1e-3);
  expect_band(NewtonSchulz::quintic, 0.475, 1.145, 1e-3);
  expect_band(NewtonSchulz::polar_express, 0.846, 1.142, 1e-3);
  expect_band(NewtonSchulz::polar_express_8, 0.9999, 1.0001, 1e-4);
  expect_band(NewtonSchulz::cans, 0.884, 1.120, 1e-3);
  expect_band(NewtonSchulz::turbo, 0.120, 1.145, 1e-3);
  expect_band(NewtonSchulz::exact, 1, 1, 0);
  const Band one = band({.schedule = NewtonSchulz::custom, .coefficients = {2, -1, 0}}, 1);
  EXPECT_EQ(one.low, 1);
  EXPECT_EQ(one.high, 1);
}

TEST(Polar, ExactIsTheSingularValueDecompositions) {
  for (const int rows : {1, 2, 5, 16, 33, 60}) {
    for (const int cols : {1, 3, 5, 16, 34, 60}) {
      const Matrix m = random(rows, cols), wanted = polar_oracle::svd(m).polar;
      for (const int threads : {1, 2}) {
        EXPECT_LE(distance(result<double>(m, {.schedule = NewtonSchulz::exact}, threads), wanted), 1e-12)
            << rows << "x" << cols;
        EXPECT_LE(distance(result<float>(m, {.schedule = NewtonSchulz::exact}, threads), wanted), 1e-7) << rows << "x" << cols;
      }
    }
  }
}

// A product of small integers is of low rank exactly, in f32 too.
TEST(Polar, ExactLeavesOutDirectionsOfNoSize) {
  Values draw(9);
  for (const int rank : {1, 2, 7}) {
    for (const auto& [rows, cols] : {std::pair{12, 12}, {12, 40}, {40, 12}, {140, 70}}) {
      Matrix left(rows, rank), right(rank, cols);
      for (Matrix* factor : {&left, &right}) {
        for (double& entry : factor->data) entry = std::floor(17 * draw.uniform()) - 8;
      }
      const Matrix m = polar_oracle::product(left, right);
      const polar_oracle::Svd wanted = polar_oracle::svd(m);
      for (const int threads : {1, 2}) {
        const Matrix out = result<double>(m, {.schedule = NewtonSchulz::exact}, threads);
        EXPECT_LE(distance(out, wanted.polar), 1e-12) << rank;
        EXPECT_NEAR(polar_oracle::norm(out), std::sqrt(rank), 1e-12);
        EXPECT_LE(distance(result<float>(m, {.schedule = NewtonSchulz::exact}, threads), wanted.polar), 1e-7) << rank;
      }
    }
  }
}

TEST(Polar, NuclearNormIsTheSumOfSingularValues) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 9}, {9, 1}, {6, 6}, {20, 33}, {33, 20}, {70, 40}}) {
    const Matrix m = random(rows, cols);
    const std::vector<double> values = polar_oracle::svd(m).values;
    const double wanted = std::accumulate(values.begin(), values.end(), 0.0);
    EXPECT_NEAR(nuclear_norm(m.data, rows, cols), wanted, 1e-13 * wanted) << rows << "x" << cols;
  }
  EXPECT_EQ(nuclear_norm({}, 0, 3), 0);
  EXPECT_EQ(nuclear_norm(std::vector<double>(6), 2, 3), 0);
  EXPECT_NEAR(nuclear_norm(std::vector<double>{3, 0, 0, -4}, 2, 2), 7, 1e-14);
  fixture::expect_error([] { nuclear_norm(std::vector<double>(5), 2, 3); }, {"2 x 3", "5 entries"});
}

TEST(Polar, ScaleMultipliesTheFactor) {
  for (const NewtonSchulz schedule : {NewtonSchulz::paper, NewtonSchulz::turbo, NewtonSchulz::exact}) {
    for (const auto& [rows, cols] : {std::pair{8, 8}, {6, 30}, {30, 6}, {20, 18}}) {
      const Matrix m = random(rows, cols), plain = result<double>(m, {.schedule = schedule});
      for (const MatrixScale scale : {MatrixScale::none, MatrixScale::jordan, MatrixScale::rms}) {
        const std::string_view name = name_of(scale);
        const Matrix wanted = polar_oracle::times(polar_oracle::scale_of(name, rows, cols), plain);
        EXPECT_LE(distance(result<double>(m, {.schedule = schedule, .scale = scale}), wanted), 1e-14) << name;
      }
    }
  }
}

TEST_P(EverySchedule, StepsCutTheScheduleOffOrRepeatItsLast) {
  for (const auto& [rows, cols] : {std::pair{9, 9}, {7, 30}, {30, 7}}) {
    const Matrix m = random(rows, cols);
    for (const int steps : {1, 2, 3, 4, 7, 12}) {
      const Matrix wanted = polar_oracle::newton_schulz(m, name_of(GetParam()), steps);
      EXPECT_LE(distance(result<double>(m, {.schedule = GetParam(), .steps = steps}), wanted), 1e-11) << steps;
    }
    const auto own = static_cast<std::int64_t>(polar_oracle::steps_of(name_of(GetParam())).size());
    EXPECT_EQ(static_cast<std::int64_t>(quintics({.schedule = GetParam()}).size()), own);
    EXPECT_EQ(result<float>(m, {.schedule = GetParam(), .steps = 0}).data,
              result<float>(m, {.schedule = GetParam(), .steps = own}).data);
  }
}

TEST(Polar, CustomWithThePapersCoefficientsIsThePaper) {
  const std::vector<double> once{3.4445, -4.7750, 2.0315};
  std::vector<double> five;
  for (int i = 0; i < 5; ++i) five.insert(five.end(), once.begin(), once.end());
  for (const auto& [rows, cols] : {std::pair{17, 17}, {12, 50}, {140, 131}}) {
    const Matrix m = random(rows, cols), wanted = result<float>(m);
    EXPECT_EQ(result<float>(m, {.schedule = NewtonSchulz::custom, .coefficients = five}).data, wanted.data);
    EXPECT_EQ(result<float>(m, {.schedule = NewtonSchulz::custom, .steps = 5, .coefficients = once}).data, wanted.data);
  }
  EXPECT_TRUE(quintics({.schedule = NewtonSchulz::exact}).empty());
}

}  // namespace polar_test
}  // namespace cautious
