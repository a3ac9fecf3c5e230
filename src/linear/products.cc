#include "linear/products.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace cautious::linear {
namespace {

constexpr int kLeastCut = 128;  // shorter sides are one piece

int rounded_up(int side) { return (side + kPanel - 1) / kPanel * kPanel; }

// Equal parts of a side in whole panels, the last one shorter.
struct Cuts {
  int part, count;
  Cuts(int side, int parts) : part(rounded_up((side + parts - 1) / parts)), count((side + part - 1) / part) {}
};

// Parts of about `length`, at least two; one if they are not for several threads or not worth it.
int parts_of(const Pieces& pieces, int side, int length) {
  return !pieces.several() || side < kLeastCut ? 1 : std::max(2, (side + length - 1) / length);
}

template <class T>
Block<T> part(Square<T> c, int row, int rows, int col, int cols) {
  return {c.data + static_cast<std::ptrdiff_t>(row) * c.stride + col, rows, cols, c.stride};
}

template <class T>
Block<const T> constant(Block<T> block) {
  return {block.data, block.rows, block.cols, block.stride};
}

// Copies rows x cols at (row, col) to its mirror image (col, row).
template <class T>
void mirror(Square<T> c, int row, int rows, int col, int cols) {
  transpose(constant(part(c, row, rows, col, cols)), part(c, col, cols, row, rows));
}

// The upper triangle of the n x n block at (at, at) from its lower one.
template <class T>
void mirror_diagonal(Square<T> c, int at, int n) {
  constexpr int kSide = 16;
  for (int i0 = at; i0 < at + n; i0 += kSide) {
    const int side = std::min(kSide, at + n - i0);
    mirror(c, i0, side, at, i0 - at);
    for (int i = i0; i < i0 + side; ++i) {
      for (int j = i0; j < i; ++j) {
        c.data[static_cast<std::ptrdiff_t>(j) * c.stride + i] = c.data[static_cast<std::ptrdiff_t>(i) * c.stride + j];
      }
    }
  }
}

// Calls body(i, j) for the blocks of the lower triangle: those beside the diagonal first, since they take twice as long.
template <class Body>
void lower_blocks(const Pieces& pieces, int count, const Body& body) {
  const int beside = count * (count - 1) / 2;
  const auto block = [&](std::size_t piece) {
    const int p = static_cast<int>(piece);
    if (p >= beside) return body(p - beside, p - beside);
    int i = 1;
    while ((i + 1) * i / 2 <= p) ++i;
    body(i, p - i * (i - 1) / 2);
  };
  pieces(beside + count, std::cref(block));
}

// The symmetric c = alpha op(a) op(b): the lower half, mirrored. left(at, length) are rows of op(a), as a block of a, and
// right(at, length) columns of op(b). Before a block is mirrored, finish(row, rows, col, cols) may change it.
template <class T, class Left, class Right, class Finish>
void half_product(const Pieces& pieces, T alpha, const Left& left, Transpose of_a, const Right& right, Transpose of_b,
                  Square<T> c, const Finish& finish) {
  const Cuts cuts(c.n, parts_of(pieces, c.n, 256));
  lower_blocks(pieces, cuts.count, [&](int i, int j) {
    const int row = i * cuts.part, rows = std::min(cuts.part, c.n - row), col = j * cuts.part;
    const int cols = std::min(cuts.part, c.n - col);
    multiply(alpha, left(row, rows), of_a, right(col, cols), of_b, Into::set, part(c, row, rows, col, cols),
             i == j ? Entries::lower : Entries::all);
    finish(row, rows, col, cols);
    if (i == j)
      mirror_diagonal(c, row, rows);
    else
      mirror(c, row, rows, col, cols);
  });
}

constexpr auto kAsItIs = [](int, int, int, int) {};

}  // namespace

template <class T>
void gram(const Pieces& pieces, T alpha, Oblong<T> x, Square<T> c) {
  const Transpose tall = x.tall ? Transpose::yes : Transpose::no, other = x.tall ? Transpose::no : Transpose::yes;
  const auto strip = [&](int at, int length) -> Block<const T> {
    if (x.tall) return {x.data + at, x.m, length, x.n};
    return {x.data + static_cast<std::ptrdiff_t>(at) * x.m, length, x.m, x.m};
  };
  half_product(pieces, alpha, strip, tall, strip, other, c, kAsItIs);
}

template <class T>
void quadratic(const Pieces& pieces, T a, T b, T c, Square<T> r, Square<T> q) {
  const auto rows_of_r = [&](int at, int length) { return constant(part(r, at, length, 0, r.n)); };
  const auto columns_of_r = [&](int at, int length) { return constant(part(r, 0, r.n, at, length)); };
  const auto add_rest = [&](int row, int rows, int col, int cols) {
    for (int i = row; i < row + rows; ++i) {
      const T* from = r.data + static_cast<std::ptrdiff_t>(i) * r.stride;
      T* to = q.data + static_cast<std::ptrdiff_t>(i) * q.stride;
      const int end = std::min(col + cols, i + 1);
      for (int j = col; j < end; ++j) to[j] += b * from[j];
      if (end == i + 1) to[i] += a;
    }
  };
  half_product(pieces, c, rows_of_r, Transpose::no, columns_of_r, Transpose::no, q, add_rest);
}

template <class T>
void symmetric_product(const Pieces& pieces, Square<T> a, Square<T> b, Square<T> c) {
  half_product(
      pieces, T(1), [&](int at, int length) { return constant(part(a, at, length, 0, a.n)); }, Transpose::no,
      [&](int at, int length) { return constant(part(b, 0, b.n, at, length)); }, Transpose::no, c, kAsItIs);
}

template <class T>
void apply(const Pieces& pieces, T alpha, Square<T> p, Oblong<T> x, Oblong<T> y) {
  const Cuts cuts(x.m, parts_of(pieces, x.m, 384));
  const Block<const T> factor = constant(part(p, 0, p.n, 0, p.n));
  const auto strip = [&](std::size_t piece) {
    const int at = static_cast<int>(piece) * cuts.part, length = std::min(cuts.part, x.m - at);
    if (x.tall) {
      const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(at) * x.n;
      multiply(alpha, {x.data + offset, length, x.n, x.n}, Transpose::no, factor, Transpose::yes, Into::set,
               {y.data + offset, length, x.n, x.n});
    } else {
      multiply(alpha, factor, Transpose::no, {x.data + at, x.n, length, x.m}, Transpose::no, Into::set,
               {y.data + at, x.n, length, x.m});
    }
  };
  pieces(cuts.count, std::cref(strip));
}

#define CAUTIOUS_PRODUCTS(T)                                                       \
  template void gram(const Pieces&, T, Oblong<T>, Square<T>);                      \
  template void quadratic(const Pieces&, T, T, T, Square<T>, Square<T>);           \
  template void symmetric_product(const Pieces&, Square<T>, Square<T>, Square<T>); \
  template void apply(const Pieces&, T, Square<T>, Oblong<T>, Oblong<T>)
CAUTIOUS_PRODUCTS(float);
CAUTIOUS_PRODUCTS(double);
#undef CAUTIOUS_PRODUCTS

}  // namespace cautious::linear
