// What is used of BLAS and LAPACK: products, row-major, in f32 and f64, and the singular value decomposition in double. Always
// on the calling thread alone.
#pragma once

#include <span>
#include <vector>

namespace cautious::linear {

enum class Transpose { no, yes };

// Makes BLAS calls of this thread single-threaded for the scope: parallel pieces call it, never the other way round.
class OnThisThread {
 public:
  OnThisThread();
  ~OnThisThread();
  OnThisThread(const OnThisThread&) = delete;
  OnThisThread& operator=(const OnThisThread&) = delete;

 private:
  int saved_;
};

// A block of a row-major matrix; rows are `stride` apart.
template <class T>
struct Block {
  T* data;
  int rows, cols, stride;
};

// c = alpha op(a) op(b) + beta c.
void multiply(float alpha, Block<const float> a, Transpose of_a, Block<const float> b, Transpose of_b, float beta,
              Block<float> c);
void multiply(double alpha, Block<const double> a, Transpose of_a, Block<const double> b, Transpose of_b, double beta,
              Block<double> c);

// The lower triangle of c = alpha a a^T + beta c, or of a^T a where a is transposed.
void square(float alpha, Block<const float> a, Transpose of_a, float beta, Block<float> c);
void square(double alpha, Block<const double> a, Transpose of_a, double beta, Block<double> c);

// Which BLAS this is, as it calls itself.
const char* blas_name();

// Replaces the rows x cols matrix by factor * U V^T; directions whose singular value is rounding error of T are left out. NaN
// if LAPACK finds no decomposition.
template <class T>
void polar_by_svd(std::span<T> matrix, int rows, int cols, double factor);

// In descending order; empty if LAPACK finds no decomposition.
std::vector<double> singular_values(std::span<const double> matrix, int rows, int cols);

}  // namespace cautious::linear
