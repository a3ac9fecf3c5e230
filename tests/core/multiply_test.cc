// Matrix products against sums in double; what is cut, packed or left out changes no bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <utility>
#include <vector>

#include "linear/multiply.h"

namespace multiply_test {

using namespace cautious::linear;

template <class T>
struct Matrix {
  int rows, cols;
  std::vector<T> data;

  Matrix(int r, int c, unsigned seed) : rows(r), cols(c), data(static_cast<std::size_t>(r) * static_cast<std::size_t>(c)) {
    std::mt19937 engine(seed);
    std::uniform_real_distribution<T> uniform(-1, 1);
    for (T& entry : data) entry = uniform(engine);
  }
  T operator()(int i, int j, Transpose turned = Transpose::no) const {
    return turned == Transpose::yes ? data[static_cast<std::size_t>(j * cols + i)]
                                    : data[static_cast<std::size_t>(i * cols + j)];
  }
  Block<const T> read() const { return {data.data(), rows, cols, cols}; }
  Block<T> block(int row, int col, int r, int c) { return {data.data() + row * cols + col, r, c, cols}; }
};

template <class T>
class Multiply : public testing::Test {};
using Types = testing::Types<float, double>;
TYPED_TEST_SUITE(Multiply, Types);

// Sides at and beside those of tiles, panels and what is summed up at a time.
TYPED_TEST(Multiply, EqualsSumsInDouble) {
  using T = TypeParam;
  const double eps = std::numeric_limits<T>::epsilon();
  for (const int rows : {1, 6, 103})
    for (const int cols : {1, 32, 71})
      for (const int inner : {0, 1, 9, 600})
        for (const Transpose of_a : {Transpose::no, Transpose::yes})
          for (const Transpose of_b : {Transpose::no, Transpose::yes})
            for (const Into into : {Into::set, Into::add}) {
              SCOPED_TRACE(testing::Message() << rows << "x" << inner << "x" << cols);
              const bool ta = of_a == Transpose::yes, tb = of_b == Transpose::yes;
              const Matrix<T> a(ta ? inner : rows, ta ? rows : inner, 1), b(tb ? cols : inner, tb ? inner : cols, 2);
              const Matrix<T> before(rows, cols, 3);
              Matrix<T> c = before, by_packed = before;
              multiply(T(0.75), a.read(), of_a, b.read(), of_b, into, c.block(0, 0, rows, cols));
              std::vector<T> packed(packed_size(inner, cols));
              pack(b.read(), of_b, packed.data());
              multiply_packed(T(0.75), a.read(), of_a, packed.data(), into, by_packed.block(0, 0, rows, cols));
              EXPECT_EQ(c.data, by_packed.data);
              double apart = 0;
              for (int i = 0; i < rows; ++i)
                for (int j = 0; j < cols; ++j) {
                  double sum = 0;
                  for (int k = 0; k < inner; ++k) sum += double(a(i, k, of_a)) * double(b(k, j, of_b));
                  sum = 0.75 * sum + (into == Into::add ? double(before(i, j)) : 0.0);
                  apart = std::max(apart, std::abs(sum - double(c(i, j))));
                }
              EXPECT_LE(apart, eps * (2 + inner));
            }
}

TYPED_TEST(Multiply, PiecesAndHalvesHaveTheBitsOfTheWhole) {
  using T = TypeParam;
  constexpr int n = 301, inner = 700;
  const Matrix<T> a(n, inner, 1), b(inner, n, 2);
  Matrix<T> whole(n, n, 3), pieces(n, n, 4), half(n, n, 5);
  multiply(T(0.3), a.read(), Transpose::no, b.read(), Transpose::no, Into::set, whole.block(0, 0, n, n));
  multiply(T(0.3), a.read(), Transpose::no, b.read(), Transpose::no, Into::set, half.block(0, 0, n, n), Entries::lower);
  for (const auto& [row, rows] : {std::pair{0, 50}, {50, 251}})
    for (const auto& [col, cols] : {std::pair{0, 96}, {96, 205}})
      multiply(T(0.3), Block<const T>{a.data.data() + row * inner, rows, inner, inner}, Transpose::no,
               Block<const T>{b.data.data() + col, inner, cols, n}, Transpose::no, Into::set,
               pieces.block(row, col, rows, cols));
  EXPECT_EQ(pieces.data, whole.data);
  for (int i = 0; i < n; ++i)
    for (int j = 0; j <= i; ++j) ASSERT_EQ(half(i, j), whole(i, j)) << i << " " << j;
}

}  // namespace multiply_test
