#include "linear/blas.h"

#include <algorithm>
#include <cstddef>
#include <limits>

#include <omp.h>

#include <cblas.h>

#include "linear/multiply.h"

// LAPACK's own name; the last argument is Fortran's length of the first.
// NOLINTBEGIN(readability-identifier-naming)
extern "C" void dgesdd_(const char* job, const int* m, const int* n, double* a, const int* lda, double* s, double* u,
                        const int* ldu, double* vt, const int* ldvt, double* work, const int* lwork, int* iwork, int* info,
                        std::size_t);
// NOLINTEND(readability-identifier-naming)

namespace cautious::linear {
namespace {

// Makes BLAS calls of this thread single-threaded for the scope: OpenBLAS and BLIS built on OpenMP ask the calling thread for
// its number of threads.
class OnThisThread {
 public:
  OnThisThread() : saved_(omp_get_max_threads()) { omp_set_num_threads(1); }
  ~OnThisThread() { omp_set_num_threads(saved_); }
  OnThisThread(const OnThisThread&) = delete;
  OnThisThread& operator=(const OnThisThread&) = delete;

 private:
  int saved_;
};

// a = u diag(s) vt, all column by column. What is row after row to us is the transpose to LAPACK; the factor's transpose is the
// transpose's factor, so nothing needs turning round.
struct Decomposition {
  int m, n, k;
  std::vector<double> s, u, vt;
  bool found = false;
};

Decomposition decompose(std::vector<double> a, int m, int n, char job) {
  const OnThisThread only;
  Decomposition d{m, n, std::min(m, n), {}, {}, {}};
  const auto size = [](int rows, int cols) { return static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols); };
  d.s.resize(static_cast<std::size_t>(d.k));
  d.u.resize(job == 'S' ? size(m, d.k) : 1);
  d.vt.resize(job == 'S' ? size(d.k, n) : 1);
  std::vector<int> integers(8 * static_cast<std::size_t>(d.k));
  const int ldvt = job == 'S' ? d.k : 1, ldu = m;
  double best = 0;
  int info = 0, query = -1;
  dgesdd_(&job, &m, &n, a.data(), &m, d.s.data(), d.u.data(), &ldu, d.vt.data(), &ldvt, &best, &query, integers.data(), &info,
          1);
  if (info != 0) return d;
  const int length = static_cast<int>(best) + 1;
  std::vector<double> work(static_cast<std::size_t>(length));
  dgesdd_(&job, &m, &n, a.data(), &m, d.s.data(), d.u.data(), &ldu, d.vt.data(), &ldvt, work.data(), &length, integers.data(),
          &info, 1);
  d.found = info == 0;
  return d;
}

}  // namespace

const char* blas_name() {
#ifdef OPENBLAS_VERSION
  return openblas_get_config();
#else
  return "CBLAS";
#endif
}

template <class T>
void polar_by_svd(std::span<T> matrix, int rows, int cols, double factor) {
  Decomposition d = decompose({matrix.begin(), matrix.end()}, cols, rows, 'S');
  if (!d.found) {
    std::fill(matrix.begin(), matrix.end(), std::numeric_limits<T>::quiet_NaN());
    return;
  }
  const double least = std::max(rows, cols) * static_cast<double>(std::numeric_limits<T>::epsilon()) * d.s.front();
  for (int i = 0; i < d.k; ++i) {
    double* column = d.u.data() + static_cast<std::ptrdiff_t>(i) * d.m;
    const double weight = d.s[static_cast<std::size_t>(i)] > least ? factor : 0;
    for (int j = 0; j < d.m; ++j) column[j] *= weight;
  }
  // u vt column by column is vt^T u^T row by row.
  std::vector<double> product(matrix.size());
  multiply(1.0, {d.vt.data(), rows, d.k, d.k}, Transpose::no, {d.u.data(), d.k, cols, cols}, Transpose::no, Into::set,
           {product.data(), rows, cols, cols});
  std::transform(product.begin(), product.end(), matrix.begin(), [](double entry) { return static_cast<T>(entry); });
}

std::vector<double> singular_values(std::span<const double> matrix, int rows, int cols) {
  Decomposition d = decompose({matrix.begin(), matrix.end()}, cols, rows, 'N');
  if (!d.found) d.s.clear();
  return d.s;
}

template void polar_by_svd(std::span<float>, int, int, double);
template void polar_by_svd(std::span<double>, int, int, double);

}  // namespace cautious::linear
