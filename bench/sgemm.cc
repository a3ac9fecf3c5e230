#include "bench/sgemm.h"

#include <omp.h>

#include <algorithm>

#include <cblas.h>

#include "bench/timing.h"

namespace cautious::bench {
namespace {

std::size_t entries(int n) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(n); }

}  // namespace

Sgemm::Sgemm(int n) : n_(n), a_(entries(n), 0.5f), b_(entries(n), 0.25f), c_(entries(n)) {}

void Sgemm::run(int threads) {
  omp_set_num_threads(threads);
  cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, n_, n_, n_, 1, a_.data(), n_, b_.data(), n_, 0, c_.data(), n_);
}

double Sgemm::gflops(int threads) {
  double best = 0;
  for (int i = 0; i < 5; ++i) {
    const auto start = Clock::now();
    run(threads);
    best = std::max(best, flops() / 1e9 / seconds_since(start));
  }
  return best;
}

double Sgemm::flops() const { return 2.0 * n_ * n_ * n_; }

}  // namespace cautious::bench
