// Products of matrices, row-major, in f32 and f64, on the calling thread alone. Every entry of a result is summed up along the
// inner side in one order, whatever the rest of the matrix is: bits depend neither on how a product is cut into pieces nor on
// who computes which.
#pragma once

#include <cstddef>

namespace cautious::linear {

enum class Transpose { no, yes };

// A block of a row-major matrix; rows are `stride` apart.
template <class T>
struct Block {
  T* data;
  int rows, cols, stride;
};

enum class Into {
  set,  // c = the product
  add,  // c += the product
};

enum class Entries {
  all,
  lower,  // those below and on the diagonal; others may be written or not
};

// c = alpha op(a) op(b), or that added to c.
template <class T>
void multiply(T alpha, Block<const T> a, Transpose of_a, Block<const T> b, Transpose of_b, Into into, Block<T> c,
              Entries entries = Entries::all);

// Makes the memory that so many products at a time need; without it, they make it when they need it.
template <class T>
void have_rooms(int threads);

// to = from^T; they do not overlap.
template <class T>
void transpose(Block<const T> from, Block<T> to);

// For a right factor of several products: op(b) in the order in which a product reads it, of packed_size() numbers. Columns
// from a multiple of kPanel on can be packed by themselves, to `inner` times as many numbers further on.
constexpr int kPanel = 32;
constexpr std::size_t packed_size(int inner, int cols) {
  return static_cast<std::size_t>(inner) * static_cast<std::size_t>((cols + kPanel - 1) / kPanel * kPanel);
}
template <class T>
void pack(Block<const T> b, Transpose of_b, T* packed);

// The same with a packed op(b), which has c's number of columns.
template <class T>
void multiply_packed(T alpha, Block<const T> a, Transpose of_a, const T* packed, Into into, Block<T> c,
                     Entries entries = Entries::all);

}  // namespace cautious::linear
