// Every Newton-Schulz step multiplies X by a polynomial Q of its Gram matrix R = X X^T, and R by Q^2. So several steps need
// X only at their beginning and end:
//   R = X X^T;   for each step: Q = a I + b R + c R^2,  P <- Q P,  R <- Q R Q;   X <- P X.
// R, Q and P are symmetric and commute: half of each product is enough. On n x m matrices with n < m this saves most of the
// work. R loses the small singular values as steps multiply its rounding errors by a^2, so it is made anew before that hurts.
#include "linear/orthogonal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "linear/blas.h"
#include "linear/norm.h"
#include "linear/products.h"

namespace cautious::linear {
namespace {

// Below this ratio of the sides a step by itself is cheaper than steps on the Gram matrix.
constexpr double kOblong = 1.3;
// How far rounding errors of the Gram matrix may grow before it is made anew.
constexpr double kGrowth = 150;

// Numbers of consecutive steps between two looks at X.
std::vector<int> runs_of(const std::vector<Quintic>& steps, int n, int m) {
  std::vector<int> runs;
  double growth = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const double grown = i == 0 ? 0 : growth * steps[i - 1].a * steps[i - 1].a;
    if (runs.empty() || m < kOblong * n || grown > kGrowth) {
      runs.push_back(0);
      growth = 1;
    } else {
      growth = grown;
    }
    ++runs.back();
  }
  return runs;
}

// A stride that is not a multiple of 256 bytes, so that a column does not fall into one set of the cache.
int padded(int n) {
  const int rounded = (n + 15) / 16 * 16;
  return rounded % 64 == 0 ? rounded + 16 : rounded;
}

std::size_t square_size(int n) { return static_cast<std::size_t>(n) * static_cast<std::size_t>(padded(n)); }

template <class T>
struct Scratch {
  Square<T> r, q, p, v;
  T *d, *x;
  Scratch(std::span<T> memory, int n) {
    T* next = memory.data();
    for (Square<T>* each : {&r, &q, &p, &v}) {
      *each = {next, n, padded(n)};
      next += square_size(n);
    }
    d = next;
    x = next + n;
  }
};

// The preconditioner: r <- D r D with D = diag(1 / sqrt(row sums of |r|)). Empty rows stay empty.
template <class T>
void precondition(Square<T> r, double least, T* d) {
  for (int i = 0; i < r.n; ++i) {
    double sum = 0;
    for (int j = 0; j < r.n; ++j) sum += std::abs(r.data[static_cast<std::ptrdiff_t>(i) * r.stride + j]);
    sum = std::max(sum, least);
    d[i] = sum > 0 ? static_cast<T>(1 / std::sqrt(sum)) : T(0);
  }
  for (int i = 0; i < r.n; ++i) {
    T* row = r.data + static_cast<std::ptrdiff_t>(i) * r.stride;
    for (int j = 0; j < r.n; ++j) row[j] *= d[i] * d[j];
  }
}

// The steps of one run on the Gram matrix s.r; returns the polynomial in R that X is to be multiplied by.
template <class T>
Square<T> polynomial(const Pieces& pieces, std::span<const Quintic> steps, Scratch<T>& s) {
  for (std::size_t i = 0; i < steps.size(); ++i) {
    const bool first = i == 0, last = i + 1 == steps.size();
    quadratic(pieces, static_cast<T>(steps[i].a), static_cast<T>(steps[i].b), static_cast<T>(steps[i].c), s.r, s.q);
    if (!last) {
      symmetric_product(pieces, s.r, s.q, s.v);
      symmetric_product(pieces, s.v, s.q, s.r);
    }
    if (first) {
      std::swap(s.p, s.q);
    } else {
      symmetric_product(pieces, s.q, s.p, s.v);
      std::swap(s.p, s.v);
    }
  }
  return s.p;
}

template <class T>
void newton_schulz(const Pieces& pieces, const Task<T>& task, Size size, std::span<T> memory) {
  const Polar& how = *task.how;
  const bool tall = task.rows > task.cols;
  const int n = std::min(task.rows, task.cols), m = std::max(task.rows, task.cols);
  const std::vector<int>& runs = task.runs;
  Scratch<T> scratch(memory, n);
  Oblong<T> x{task.data, n, m, tall}, y{scratch.x, n, m, tall};
  if (runs.size() % 2 == 1) {  // each run goes from x to y, and the last must end in the task's own memory
    std::copy_n(x.data, static_cast<std::size_t>(n) * static_cast<std::size_t>(m), y.data);
    std::swap(x, y);
  }

  const Beginning begins = beginning(how.schedule);
  const double divisor = std::max(size.norm, how.eps * size.factor) * begins.factor;
  const bool by_rows = begins.start == Start::rows;
  const double least = how.eps * size.factor / divisor * (how.eps * size.factor / divisor);  // row sum, after the division
  double alpha = 1 / divisor;
  std::size_t step = 0;
  for (std::size_t run = 0; run < runs.size(); ++run) {
    gram(pieces, static_cast<T>(alpha * alpha), x, scratch.r);
    if (run == 0 && by_rows) precondition(scratch.r, least, scratch.d);
    const Square<T> p = polynomial(pieces, std::span(task.steps).subspan(step, static_cast<std::size_t>(runs[run])), scratch);
    for (int i = 0; i < n && run == 0 && by_rows; ++i) {
      for (int j = 0; j < n; ++j) p.data[static_cast<std::ptrdiff_t>(i) * p.stride + j] *= scratch.d[j];
    }
    if (run + 1 == runs.size()) alpha *= shape_factor(task.how->scale, task.rows, task.cols);
    apply(pieces, static_cast<T>(alpha), p, x, y);
    std::swap(x, y);
    alpha = 1;
    step += static_cast<std::size_t>(runs[run]);
  }
}

}  // namespace

double shape_factor(MatrixScale scale, double rows, double cols) {
  switch (scale) {
    case MatrixScale::none:
      return 1;
    case MatrixScale::jordan:
      return std::sqrt(std::max(1.0, rows / cols));
    case MatrixScale::rms:
      return 0.2 * std::sqrt(std::max(rows, cols));
  }
  return 1;
}

template <class T>
Task<T> make_task(T* data, int rows, int cols, const Polar& how) {
  std::vector<Quintic> steps = quintics(how);
  std::vector<int> runs = runs_of(steps, std::min(rows, cols), std::max(rows, cols));
  return {data, rows, cols, &how, std::move(steps), std::move(runs)};
}

template <class T>
std::size_t scratch_size(const Task<T>& task) {
  if (task.how->schedule == NewtonSchulz::exact) return 0;
  return 4 * square_size(std::min(task.rows, task.cols)) + static_cast<std::size_t>(std::min(task.rows, task.cols)) +
         static_cast<std::size_t>(task.rows) * static_cast<std::size_t>(task.cols);
}

template <class T>
double cost(const Task<T>& task) {
  const double n = std::min(task.rows, task.cols), m = std::max(task.rows, task.cols);
  if (task.how->schedule == NewtonSchulz::exact) return 50 * n * n * m;
  double sum = 0;
  for (const int run : task.runs) sum += n * n * (3 * m + (4 * run - 3) * n);
  return sum;
}

template <class T>
void orthogonalise(const Pieces& pieces, const Task<T>& task, std::span<T> scratch) {
  const std::span<T> matrix(task.data, static_cast<std::size_t>(task.rows) * static_cast<std::size_t>(task.cols));
  const Size size = into_range(matrix);
  if (size.norm == 0) return;
  if (!std::isfinite(size.norm)) {
    std::fill(matrix.begin(), matrix.end(), std::numeric_limits<T>::quiet_NaN());
  } else if (task.how->schedule == NewtonSchulz::exact) {
    polar_by_svd(matrix, task.rows, task.cols, shape_factor(task.how->scale, task.rows, task.cols));
  } else {
    newton_schulz(pieces, task, size, scratch);
  }
}

template Task<float> make_task(float*, int, int, const Polar&);
template Task<double> make_task(double*, int, int, const Polar&);
template std::size_t scratch_size(const Task<float>&);
template std::size_t scratch_size(const Task<double>&);
template double cost(const Task<float>&);
template double cost(const Task<double>&);
template void orthogonalise(const Pieces&, const Task<float>&, std::span<float>);
template void orthogonalise(const Pieces&, const Task<double>&, std::span<double>);

}  // namespace cautious::linear
