// What is used of LAPACK: the singular value decomposition in double, on the calling thread alone.
#pragma once

#include <span>
#include <vector>

namespace cautious::linear {

// Which BLAS this is, as it calls itself.
const char* blas_name();

// Replaces the rows x cols matrix by factor * U V^T; directions whose singular value is rounding error of T are left out. NaN
// if LAPACK finds no decomposition.
template <class T>
void polar_by_svd(std::span<T> matrix, int rows, int cols, double factor);

// In descending order; empty if LAPACK finds no decomposition.
std::vector<double> singular_values(std::span<const double> matrix, int rows, int cols);

}  // namespace cautious::linear
