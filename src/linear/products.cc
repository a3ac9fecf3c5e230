#include "linear/products.h"

#include <algorithm>
#include <cstddef>
#include <functional>

namespace cautious::linear {
namespace {

// Multiples of this keep the BLAS in its fastest kernel.
constexpr int kGrain = 16;
constexpr int kLeastCut = 128;  // shorter sides are one piece

int rounded_up(int side) { return (side + kGrain - 1) / kGrain * kGrain; }

// Equal parts of a side, the last one shorter.
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

// Copies rows x cols at (row, col) to its mirror image (col, row), in tiles that stay in the first cache.
template <class T>
void mirror(Square<T> c, int row, int rows, int col, int cols) {
  constexpr int kSide = 16;
  for (int i0 = row; i0 < row + rows; i0 += kSide) {
    for (int j0 = col; j0 < col + cols; j0 += kSide) {
      const int i1 = std::min(i0 + kSide, row + rows), j1 = std::min(j0 + kSide, col + cols);
      for (int j = j0; j < j1; ++j) {
        T* to = c.data + static_cast<std::ptrdiff_t>(j) * c.stride;
        const T* from = c.data + j;
        for (int i = i0; i < i1; ++i) to[i] = from[static_cast<std::ptrdiff_t>(i) * c.stride];
      }
    }
  }
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

}  // namespace

template <class T>
void gram(const Pieces& pieces, T alpha, Oblong<T> x, Square<T> c) {
  const Cuts cuts(x.n, parts_of(pieces, x.n, 256));
  const Transpose tall = x.tall ? Transpose::yes : Transpose::no, other = x.tall ? Transpose::no : Transpose::yes;
  const auto strip = [&](int at, int length) -> Block<const T> {
    if (x.tall) return {x.data + at, x.m, length, x.n};
    return {x.data + static_cast<std::ptrdiff_t>(at) * x.m, length, x.m, x.m};
  };
  lower_blocks(pieces, cuts.count, [&](int i, int j) {
    const int row = i * cuts.part, rows = std::min(cuts.part, x.n - row), col = j * cuts.part;
    if (i == j) {
      square(alpha, strip(row, rows), tall, T(0), part(c, row, rows, row, rows));
      mirror_diagonal(c, row, rows);
    } else {
      multiply(alpha, strip(row, rows), tall, strip(col, cuts.part), other, T(0), part(c, row, rows, col, cuts.part));
      mirror(c, row, rows, col, cuts.part);
    }
  });
}

template <class T>
void quadratic(const Pieces& pieces, T a, T b, T c, Square<T> r, Square<T> q) {
  const Cuts cuts(r.n, parts_of(pieces, r.n, 256));
  lower_blocks(pieces, cuts.count, [&](int i, int j) {
    const int row = i * cuts.part, rows = std::min(cuts.part, r.n - row), col = j * cuts.part;
    const int cols = std::min(cuts.part, r.n - col);
    const Block<T> out = part(q, row, rows, col, cols);
    for (int k = 0; k < rows; ++k) {
      const T* from = r.data + static_cast<std::ptrdiff_t>(row + k) * r.stride + col;
      std::copy(from, from + cols, out.data + static_cast<std::ptrdiff_t>(k) * out.stride);
    }
    const Block<const T> left = constant(part(r, row, rows, 0, r.n));
    if (i == j) {
      square(c, left, Transpose::no, b, out);
      for (int k = 0; k < rows; ++k) out.data[static_cast<std::ptrdiff_t>(k) * (out.stride + 1)] += a;
      mirror_diagonal(q, row, rows);
    } else {
      multiply(c, left, Transpose::no, constant(part(r, 0, r.n, col, cols)), Transpose::no, b, out);
      mirror(q, row, rows, col, cols);
    }
  });
}

template <class T>
void symmetric_product(const Pieces& pieces, Square<T> a, Square<T> b, Square<T> c) {
  const Cuts cuts(a.n, a.n < kLeastCut ? 1 : std::clamp(a.n / 64, 2, 8));  // in any case: this is what saves half
  const auto rows_of = [&](std::size_t piece) {
    const int row = (cuts.count - 1 - static_cast<int>(piece)) * cuts.part;  // the longest first
    const int rows = std::min(cuts.part, a.n - row), cols = row + rows;
    multiply(T(1), constant(part(a, row, rows, 0, a.n)), Transpose::no, constant(part(b, 0, a.n, 0, cols)), Transpose::no, T(0),
             part(c, row, rows, 0, cols));
    mirror(c, row, rows, 0, row);
    mirror_diagonal(c, row, rows);
  };
  pieces(cuts.count, std::cref(rows_of));
}

template <class T>
void apply(const Pieces& pieces, T alpha, Square<T> p, Oblong<T> x, Oblong<T> y) {
  const Cuts cuts(x.m, parts_of(pieces, x.m, 384));
  const Block<const T> factor = constant(part(p, 0, p.n, 0, p.n));
  const auto strip = [&](std::size_t piece) {
    const int at = static_cast<int>(piece) * cuts.part, length = std::min(cuts.part, x.m - at);
    if (x.tall) {
      const std::ptrdiff_t offset = static_cast<std::ptrdiff_t>(at) * x.n;
      multiply(alpha, {x.data + offset, length, x.n, x.n}, Transpose::no, factor, Transpose::yes, T(0),
               {y.data + offset, length, x.n, x.n});
    } else {
      multiply(alpha, factor, Transpose::no, {x.data + at, x.n, length, x.m}, Transpose::no, T(0),
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
