// Polar factors at the edges: what must not change the result, sizes near the ends of the range, stacks, zeros, NaN, errors.
#include <cautious/polar.h>

#include <omp.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "fixture.h"
#include "optim/work.h"
#include "polar_fixture.h"

namespace cautious {
namespace polar_edges_test {

using fixture::Values;
using polar_oracle::distance;
using polar_oracle::Matrix;

const double kNan = std::numeric_limits<double>::quiet_NaN(), kInf = std::numeric_limits<double>::infinity();
constexpr double kDouble = 1e-11;

// The factor as the oracle has it, for exact too.
Matrix oracle(const Matrix& m, NewtonSchulz schedule) {
  return schedule == NewtonSchulz::exact ? polar_oracle::svd(m).polar : polar_oracle::newton_schulz(m, name_of(schedule));
}

bool all_nan(const Matrix& m) {
  return std::all_of(m.data.begin(), m.data.end(), [](double entry) { return std::isnan(entry); });
}

class PolarEdges : public testing::TestWithParam<NewtonSchulz> {
 protected:
  Polar how() const { return {.schedule = GetParam()}; }
};
INSTANTIATE_TEST_SUITE_P(Every, PolarEdges,
                         testing::Values(NewtonSchulz::paper, NewtonSchulz::quintic, NewtonSchulz::polar_express,
                                         NewtonSchulz::polar_express_8, NewtonSchulz::cans, NewtonSchulz::turbo,
                                         NewtonSchulz::exact),
                         [](const auto& i) {
                           std::string name(name_of(i.param));
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

// Powers of two and signs go through every operation without rounding, so the bits are the same; other factors round the input.
TEST_P(PolarEdges, SizeDoesNotMatter) {
  for (const auto& [rows, cols] : {std::pair{9, 9}, {8, 40}, {40, 8}, {8, 130}}) {
    const Matrix m = random(rows, cols), wanted = result<double>(m, how());
    for (const int threads : {1, 2}) {
      const Matrix single = result<float>(m, how(), threads), full = result<double>(m, how(), threads);
      for (const double factor : {2.0, -1.0, -0x1p-40, 0x1p90}) {
        SCOPED_TRACE(testing::Message() << rows << "x" << cols << " times " << factor << " on " << threads);
        const double sign = factor < 0 ? -1 : 1;
        const Matrix larger = polar_oracle::times(factor, m);
        EXPECT_LE(distance(result<double>(larger, how(), threads), polar_oracle::times(sign, full)), 1e-12);
        if (GetParam() == NewtonSchulz::exact) continue;  // LAPACK has thresholds of its own
        EXPECT_EQ(result<float>(larger, how(), threads).data, polar_oracle::times(sign, single).data);
        EXPECT_EQ(result<double>(larger, how(), threads).data, polar_oracle::times(sign, full).data);
      }
      for (const double factor : {1e-30, 1e30}) {
        EXPECT_LE(distance(result<float>(polar_oracle::times(factor, m), how(), threads), wanted), 2e-5) << factor;
      }
      for (const double factor : {1e-30, 1e30, 1e-200, 1e200, 1e-300, 1e305}) {
        EXPECT_LE(distance(result<double>(polar_oracle::times(factor, m), how(), threads), wanted), kDouble) << factor;
      }
    }
  }
}

// Denormals are zeros, on any number of threads: alone they leave a zero matrix, beside others they do not count.
template <class T>
void expect_denormals_are_zeros(const Polar& how) {
  constexpr double kNormal = std::numeric_limits<T>::min();
  for (const int threads : {1, 2}) {
    const Matrix m = polar_oracle::times(64 * kNormal, random(20, 130));
    const Matrix tiny = result<T>(polar_oracle::times(0x1p-8, m), how, threads);
    for (const double entry : tiny.data) ASSERT_LT(std::abs(entry), kNormal) << threads;
    Matrix some = m, none = m;
    for (std::size_t i = 0; i < m.data.size(); i += 5) {
      some.data[i] = kNormal / 4;
      none.data[i] = 0;
    }
    EXPECT_EQ(result<T>(some, how, threads).data, result<T>(none, how, threads).data) << threads;
  }
}
TEST_P(PolarEdges, DenormalsAreZeros) {
  expect_denormals_are_zeros<float>(how());
  expect_denormals_are_zeros<double>(how());
}

// The norm is out of range where no entry is.
TEST_P(PolarEdges, LargestEntriesAreNumbers) {
  Matrix m = random(6, 10);
  m(2, 3) = 1;
  const Matrix wanted = oracle(m, GetParam());
  for (const int threads : {1, 2}) {
    const double single = std::numeric_limits<float>::max(), full = std::numeric_limits<double>::max();
    EXPECT_LE(distance(result<float>(polar_oracle::times(single, m), how(), threads), wanted), 1e-4);  // cans is steep near 1
    EXPECT_LE(distance(result<double>(polar_oracle::times(full, m), how(), threads), wanted), kDouble);
  }
}

TEST_P(PolarEdges, TranspositionCommutes) {
  for (const auto& [rows, cols] : {std::pair{1, 7}, {12, 12}, {10, 45}, {20, 24}, {128, 135}}) {
    if (GetParam() == NewtonSchulz::turbo && rows == cols) continue;  // it takes the rows of a square, either way
    const Matrix m = random(rows, cols);
    for (const int threads : {1, 2}) {
      const Matrix turned = result<double>(polar_oracle::transposed(m), how(), threads);
      EXPECT_LE(distance(polar_oracle::transposed(turned), result<double>(m, how(), threads)), kDouble) << rows << "x" << cols;
    }
  }
}

// turbo's preconditioner takes row sums of |X X^T|, which depend on the basis, so it has no such symmetry on its short side;
// on the other side X X^T does not change and it does.
TEST_P(PolarEdges, RotationsCommute) {
  for (const auto& [rows, cols] : {std::pair{12, 12}, {10, 45}, {45, 10}}) {
    Values draw(3);
    const Matrix m = random(rows, cols), out = result<double>(m, how());
    const Matrix left = polar_oracle::orthonormal(rows, rows, draw), right = polar_oracle::orthonormal(cols, cols, draw);
    if (GetParam() != NewtonSchulz::turbo || rows > cols) {
      EXPECT_LE(distance(result<double>(polar_oracle::product(left, m), how()), polar_oracle::product(left, out)), kDouble);
    }
    if (GetParam() != NewtonSchulz::turbo || rows <= cols) {
      EXPECT_LE(distance(result<double>(polar_oracle::product(m, right), how()), polar_oracle::product(out, right)), kDouble);
    }
  }
}

// The same bits every time and from any address; on several threads products are cut by shape alone, whatever their number.
template <class T>
void expect_repeatable(const Polar& how) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {13, 29}, {64, 64}, {200, 40}, {129, 170}}) {
    const Matrix m = random(rows, cols);
    const std::vector<double> alone = result<T>(m, how, 1).data, several = result<T>(m, how, 2).data;
    SCOPED_TRACE(testing::Message() << rows << "x" << cols);
    EXPECT_EQ(result<T>(m, how, 1, 1).data, alone);
    EXPECT_EQ(result<T>(m, how, 2, 1).data, several);
    EXPECT_EQ(result<T>(m, how, 3, 3).data, several);
  }
}
TEST_P(PolarEdges, BitsAreRepeatable) {
  expect_repeatable<float>(how());
  expect_repeatable<double>(how());
}

// Nested in somebody else's threads, OpenMP's or not and whatever their settings, the bits are the same and the settings stay.
TEST_P(PolarEdges, InsideOtherThreadsItIsTheSame) {
  const int before = omp_get_max_threads();
  for (const auto& [rows, cols] : {std::pair{30, 70}, {140, 150}}) {
    const Matrix m = random(rows, cols);
    for (const int threads : {1, 2}) {
      const Matrix single = result<float>(m, how(), threads), full = result<double>(m, how(), threads);
      EXPECT_EQ(omp_get_max_threads(), before);
      std::vector<std::string> faults(4);
      const auto work = [&](std::size_t i) {
        const int own = omp_get_max_threads();
        if (result<float>(m, how(), threads).data != single.data) faults[i] += " f32";
        if (result<double>(m, how(), threads).data != full.data) faults[i] += " f64";
        if (omp_get_max_threads() != own) faults[i] += " settings";
      };
      optim::parallel({.threads = 2}, 2, work);  // an OpenMP region
      std::vector<std::thread> workers;
      for (const std::size_t i : {2, 3}) {
        workers.emplace_back([&work, i] {
          omp_set_num_threads(static_cast<int>(i) - 1);
          work(i);
        });
      }
      for (std::thread& worker : workers) worker.join();
      for (std::size_t i = 0; i < 4; ++i) {
        EXPECT_EQ(faults[i], "") << (i < 2 ? "OpenMP" : "std::thread") << ", " << rows << "x" << cols << " on " << threads;
      }
    }
  }
}

TEST_P(PolarEdges, BlocksAreFactoredOneByOne) {
  for (const auto& [rows, cols] : {std::pair{1, 7}, {5, 9}, {9, 5}, {130, 40}}) {
    const Matrix stack = random(3 * rows, cols);
    Polar three = how();
    three.blocks = 3;
    three.scale = MatrixScale::jordan;  // of the block's shape
    Matrix wanted(3 * rows, cols);
    for (int block = 0; block < 3; ++block) {
      Matrix one(rows, cols);
      std::copy_n(stack.row(block * rows), one.data.size(), one.data.begin());
      Polar alone = three;
      alone.blocks = 1;
      one = result<double>(one, alone);
      std::copy(one.data.begin(), one.data.end(), wanted.row(block * rows));
    }
    EXPECT_EQ(result<double>(stack, three, 1).data, wanted.data) << rows << "x" << cols;
    for (const int threads : {2, 3, 4}) {
      EXPECT_LE(distance(result<double>(stack, three, threads), wanted), kDouble) << rows << "x" << cols << " on " << threads;
    }
  }
}

TEST_P(PolarEdges, ZeroStaysZeroAndEmptyIsFine) {
  for (const int threads : {1, 2}) {
    for (const auto& [rows, cols] : {std::pair{1, 1}, {3, 8}, {140, 130}, {0, 5}, {5, 0}, {0, 0}}) {
      const Matrix zero(rows, cols);
      EXPECT_EQ(result<float>(zero, how(), threads).data, zero.data);
      EXPECT_EQ(result<double>(zero, how(), threads).data, zero.data);
    }
    Matrix stack(6, 5);  // of blocks, only the second has something
    stack(3, 2) = -2;
    Polar three = how();
    three.blocks = 3;
    const Matrix out = result<double>(stack, three, threads);
    for (int i = 0; i < 6; ++i) {
      for (int j = 0; j < 5; ++j) EXPECT_EQ(out(i, j) != 0, i == 3 && j == 2);
    }
  }
}

TEST_P(PolarEdges, NanAndInfinityAreNeverHidden) {
  for (const auto& [rows, cols] : {std::pair{1, 1}, {4, 9}, {9, 4}, {131, 140}}) {
    for (const double bad : {kNan, kInf, -kInf}) {
      for (const int threads : {1, 2}) {
        Matrix m = random(rows, cols);
        m.data[m.data.size() / 2] = bad;
        EXPECT_TRUE(all_nan(result<float>(m, how(), threads))) << bad << " in " << rows << "x" << cols;
        EXPECT_TRUE(all_nan(result<double>(m, how(), threads))) << bad << " in " << rows << "x" << cols;
      }
    }
  }
  Matrix both = random(4, 4);
  both(0, 0) = kInf;
  both(3, 3) = kNan;
  EXPECT_TRUE(all_nan(result<double>(both, how())));
}

// u v^T has the one singular value 1 and goes to f(1) u v^T. turbo first makes u_i into sign(u_i) sqrt(|u_i| / sum of all |u|).
TEST_P(PolarEdges, RankOneFollowsThePolynomialAtOne) {
  double at_one = 1;
  if (GetParam() != NewtonSchulz::exact) {
    const std::string_view name = name_of(GetParam());
    at_one = polar_oracle::composite(polar_oracle::steps_of(name), 1 / polar_oracle::divisor(name));
  }
  for (const auto& [rows, cols] : {std::pair{1, 1}, {1, 50}, {1, 300}, {9, 9}, {12, 50}, {128, 129}}) {
    Matrix u = random(rows, 1), v = random(1, cols);
    v = polar_oracle::times(1 / polar_oracle::norm(v), v);
    const Matrix m = polar_oracle::product(u, v);
    if (GetParam() == NewtonSchulz::turbo && rows <= cols) {
      for (double& entry : u.data) entry = std::copysign(std::sqrt(std::abs(entry)), entry);
    } else if (GetParam() == NewtonSchulz::turbo) {
      for (double& entry : v.data) entry = std::copysign(std::sqrt(std::abs(entry)), entry);
      v = polar_oracle::times(1 / polar_oracle::norm(v), v);
    }
    const Matrix wanted = polar_oracle::product(polar_oracle::times(at_one / polar_oracle::norm(u), u), v);
    for (const int threads : {1, 2}) {
      EXPECT_LE(distance(result<double>(m, how(), threads), wanted), 1e-10) << rows << "x" << cols;
      const Matrix turned = result<double>(polar_oracle::transposed(m), how(), threads);
      const double error = rows == cols ? 0 : distance(polar_oracle::transposed(turned), wanted);
      EXPECT_LE(error, 1e-10) << cols << "x" << rows;
    }
  }
}

// Rounding errors in the directions that are missing grow by the slopes at 0, 6000 times for polar-express-8.
TEST_P(PolarEdges, EqualAndEmptyRowsAreFine) {
  Matrix m = random(8, 20);
  for (int j = 0; j < m.cols; ++j) {
    m(3, j) = m(1, j);
    m(6, j) = -m(1, j);
    m(4, j) = 0;
  }
  const Matrix wanted = oracle(m, GetParam()), out = result<double>(m, how());
  EXPECT_LE(distance(out, wanted), kDouble);
  EXPECT_LE(distance(result<float>(m, how()), wanted), 1e-4);
  for (int j = 0; j < m.cols; ++j) {
    EXPECT_NEAR(out(3, j), out(1, j), 1e-13);
    EXPECT_NEAR(out(6, j), -out(1, j), 1e-13);
    EXPECT_NEAR(out(4, j), 0, 1e-14);
  }
}

// A norm below eps counts as eps; turbo's is the root of a row sum.
TEST_P(PolarEdges, EpsIsTheLeastNorm) {
  if (GetParam() == NewtonSchulz::exact) return;  // divides by nothing
  for (const auto& [rows, cols] : {std::pair{7, 7}, {6, 30}, {30, 6}}) {
    const Matrix m = random(rows, cols);
    const double size = polar_oracle::norm(m);
    for (const double ratio : {1e-3, 0.3, 2.0, 10.0, 1e4}) {
      Polar least = how();
      least.eps = ratio * size;
      const Matrix wanted = polar_oracle::newton_schulz(m, name_of(GetParam()), 0, least.eps);
      EXPECT_LE(distance(result<double>(m, least), wanted), kDouble) << ratio;
      EXPECT_LE(distance(result<float>(m, least), wanted), 2e-5) << ratio;
      for (const double small : {0x1p-90, 0x1p90}) {  // both out of the range of f32 squares
        least.eps = ratio * size * small;
        EXPECT_LE(distance(result<double>(polar_oracle::times(small, m), least), wanted), kDouble) << ratio << " " << small;
        EXPECT_LE(distance(result<float>(polar_oracle::times(small, m), least), wanted), 2e-5) << ratio << " " << small;
      }
    }
  }
}

TEST(PolarErrors, SayWhatIsWrong) {
  std::vector<float> data(12, 1);
  const auto refused = [&data](const Polar& how, std::int64_t rows, std::int64_t cols,
                               std::initializer_list<std::string_view> fragments) {
    fixture::expect_error([&] { polar(data, rows, cols, how); }, fragments);
    EXPECT_EQ(data, std::vector<float>(12, 1)) << "changed before the error";
  };
  refused({}, 3, 5, {"3 x 5", "12 entries"});
  refused({}, -3, -4, {"-3 x -4"});
  refused({}, 0, 5, {"0 x 5"});
  refused({}, std::int64_t{1} << 62, 4, {"12 entries"});
  refused({.blocks = 5}, 4, 3, {"[4, 3]", "5 blocks"});
  refused({.blocks = 0}, 4, 3, {"blocks", "0"});
  refused({.steps = -1}, 4, 3, {"steps", "-1"});
  refused({.steps = 101}, 4, 3, {"steps", "101"});
  refused({.eps = -1e-9}, 4, 3, {"eps"});
  refused({.eps = kNan}, 4, 3, {"eps"});
  refused({.coefficients = {2, -1.5, 0.5}}, 4, 3, {"coefficients", "'paper'", "'custom'"});
  refused({.schedule = NewtonSchulz::custom}, 4, 3, {"coefficients", "0 numbers", "a,b,c"});
  refused({.schedule = NewtonSchulz::custom, .coefficients = {1, 2, 3, 4}}, 4, 3, {"4 numbers", "a,b,c"});
  refused({.schedule = NewtonSchulz::custom, .coefficients = {1, 2, kNan}}, 4, 3, {"coefficients"});
  refused({.schedule = NewtonSchulz::exact, .steps = 3}, 4, 3, {"steps is 3", "'exact'"});
  for (const int threads : {-1, 4097}) {
    fixture::expect_error([&] { polar(data, 4, 3, {}, threads); }, {"threads", std::to_string(threads), "[0, 4096]"});
  }
  fixture::expect_error([] { band({.schedule = NewtonSchulz::custom}, 0.1); }, {"coefficients"});
}

}  // namespace polar_edges_test
}  // namespace cautious
