// Products of whole matrices, where only half of a symmetric result is computed and the other half copied. For several threads
// they are cut into pieces, which changes no bits.
#pragma once

#include <cstddef>
#include <functional>

#include "linear/multiply.h"

namespace cautious::linear {

// Runs body(0) ... body(count - 1) in any order.
using Run = std::function<void(std::size_t count, const std::function<void(std::size_t)>& body)>;

// Who does the pieces of a product: the calling thread alone, or several threads. Without a `run` a product is not cut at all.
struct Pieces {
  Run run = {};
  bool several() const { return run != nullptr; }
  void operator()(int count, const std::function<void(std::size_t)>& body) const {
    if (several()) return run(static_cast<std::size_t>(count), body);
    for (int i = 0; i < count; ++i) body(static_cast<std::size_t>(i));
  }
};

// A square matrix; rows are `stride` apart.
template <class T>
struct Square {
  T* data;
  int n, stride;
};

// A matrix seen from its short side n; `tall` is stored as m x n, otherwise n x m, without gaps.
template <class T>
struct Oblong {
  T* data;
  int n, m;
  bool tall;
};

// c = alpha x x^T, the n x n one of x x^T and x^T x.
template <class T>
void gram(const Pieces& pieces, T alpha, Oblong<T> x, Square<T> c);

// q = a I + b r + c r^2 for a symmetric r.
template <class T>
void quadratic(const Pieces& pieces, T a, T b, T c, Square<T> r, Square<T> q);

// c = a b where a, b and a b are symmetric.
template <class T>
void symmetric_product(const Pieces& pieces, Square<T> a, Square<T> b, Square<T> c);

// y = alpha p x from the short side: x p for a tall x. p need not be symmetric; it is then meant for a wide x, and its
// transpose is used for a tall one.
template <class T>
void apply(const Pieces& pieces, T alpha, Square<T> p, Oblong<T> x, Oblong<T> y);

}  // namespace cautious::linear
