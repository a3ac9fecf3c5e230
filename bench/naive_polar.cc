#include "bench/naive_polar.h"

#include <omp.h>

#include <algorithm>
#include <cmath>

#include <cblas.h>

namespace cautious::bench {
namespace {

std::size_t size(int rows, int cols) { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols); }

}  // namespace

NaivePolar::NaivePolar(int rows, int cols, std::vector<Quintic> steps)
    : n_(std::min(rows, cols)),
      m_(std::max(rows, cols)),
      tall_(rows > cols),
      steps_(std::move(steps)),
      gram_(size(n_, n_)),
      factor_(size(n_, n_)),
      other_(size(n_, m_)) {}

void NaivePolar::run(float* matrix, int threads) {
  omp_set_num_threads(threads);
  const float norm = cblas_snrm2(n_ * m_, matrix, 1);
  cblas_sscal(n_ * m_, 1 / norm, matrix, 1);
  float *x = matrix, *y = other_.data();
  for (const Quintic& step : steps_) {
    const auto a = static_cast<float>(step.a), b = static_cast<float>(step.b), c = static_cast<float>(step.c);
    if (tall_) {
      cblas_sgemm(CblasRowMajor, CblasTrans, CblasNoTrans, n_, n_, m_, 1, x, n_, x, n_, 0, gram_.data(), n_);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, n_, n_, m_, 1, x, m_, x, m_, 0, gram_.data(), n_);
    }
    std::copy(gram_.begin(), gram_.end(), factor_.begin());
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n_, n_, n_, c, gram_.data(), n_, gram_.data(), n_, b, factor_.data(),
                n_);
    std::copy_n(x, size(n_, m_), y);
    if (tall_) {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m_, n_, n_, 1, x, n_, factor_.data(), n_, a, y, n_);
    } else {
      cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n_, m_, n_, 1, factor_.data(), n_, x, m_, a, y, m_);
    }
    std::swap(x, y);
  }
  if (x != matrix) std::copy_n(x, size(n_, m_), matrix);
}

double NaivePolar::flops() const {
  const double n = n_, m = m_;
  return static_cast<double>(steps_.size()) * (4 * n * n * m + 2 * n * n * n);
}

}  // namespace cautious::bench
