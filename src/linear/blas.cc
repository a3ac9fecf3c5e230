#include "linear/blas.h"

#include <omp.h>

#include <cblas.h>

namespace cautious::linear {
namespace {

CBLAS_TRANSPOSE word(Transpose transpose) { return transpose == Transpose::yes ? CblasTrans : CblasNoTrans; }

template <class T>
int inner(Block<const T> a, Transpose of_a) {
  return of_a == Transpose::yes ? a.rows : a.cols;
}

}  // namespace

// OpenBLAS and BLIS built on OpenMP ask the calling thread for its number of threads.
OnThisThread::OnThisThread() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
OnThisThread::~OnThisThread() { omp_set_num_threads(saved_); }

void multiply(float alpha, Block<const float> a, Transpose of_a, Block<const float> b, Transpose of_b, float beta,
              Block<float> c) {
  cblas_sgemm(CblasRowMajor, word(of_a), word(of_b), c.rows, c.cols, inner(a, of_a), alpha, a.data, a.stride, b.data, b.stride,
              beta, c.data, c.stride);
}

void multiply(double alpha, Block<const double> a, Transpose of_a, Block<const double> b, Transpose of_b, double beta,
              Block<double> c) {
  cblas_dgemm(CblasRowMajor, word(of_a), word(of_b), c.rows, c.cols, inner(a, of_a), alpha, a.data, a.stride, b.data, b.stride,
              beta, c.data, c.stride);
}

void square(float alpha, Block<const float> a, Transpose of_a, float beta, Block<float> c) {
  cblas_ssyrk(CblasRowMajor, CblasLower, word(of_a), c.rows, inner(a, of_a), alpha, a.data, a.stride, beta, c.data, c.stride);
}

void square(double alpha, Block<const double> a, Transpose of_a, double beta, Block<double> c) {
  cblas_dsyrk(CblasRowMajor, CblasLower, word(of_a), c.rows, inner(a, of_a), alpha, a.data, a.stride, beta, c.data, c.stride);
}

const char* blas_name() {
#ifdef OPENBLAS_VERSION
  return openblas_get_config();
#else
  return "CBLAS";
#endif
}

}  // namespace cautious::linear
