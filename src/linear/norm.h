// Frobenius norms that neither overflow nor underflow.
#pragma once

#include <span>

namespace cautious::linear {

// The largest |z|; NaN entries are passed over.
template <class T>
double largest(std::span<const T> z);

template <class T>
double norm(std::span<const T> z);

// The norm of a matrix after it was multiplied by `factor`, a power of two that makes squares of its entries safe in T.
struct Size {
  double norm, factor;
};
template <class T>
Size into_range(std::span<T> matrix);

}  // namespace cautious::linear
