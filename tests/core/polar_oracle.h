// The oracle of polar factors, in double precision and as naive as it gets: Newton-Schulz by triple loops on an explicitly
// transposed matrix, and a singular value decomposition by one-sided Jacobi rotations. It shares no line with the library, and
// the published coefficients are typed in again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace polar_oracle {

struct Matrix {
  int rows = 0, cols = 0;
  std::vector<double> data;
  Matrix(int r, int c) : rows(r), cols(c), data(static_cast<std::size_t>(r) * static_cast<std::size_t>(c)) {}
  double* row(int i) { return data.data() + static_cast<std::ptrdiff_t>(i) * cols; }
  const double* row(int i) const { return data.data() + static_cast<std::ptrdiff_t>(i) * cols; }
  double& operator()(int i, int j) { return row(i)[j]; }
  double operator()(int i, int j) const { return row(i)[j]; }
};

inline Matrix transposed(const Matrix& m) {
  Matrix t(m.cols, m.rows);
  for (int i = 0; i < m.rows; ++i) {
    for (int j = 0; j < m.cols; ++j) t(j, i) = m(i, j);
  }
  return t;
}

inline Matrix product(const Matrix& a, const Matrix& b) {
  Matrix c(a.rows, b.cols);
  for (int i = 0; i < a.rows; ++i) {
    for (int k = 0; k < a.cols; ++k) {
      const double factor = a(i, k), *from = b.row(k);
      double* to = c.row(i);
      for (int j = 0; j < b.cols; ++j) to[j] += factor * from[j];
    }
  }
  return c;
}

inline Matrix times(double factor, Matrix m) {
  for (double& entry : m.data) entry *= factor;
  return m;
}

inline double norm(const Matrix& m) {
  double sum = 0;
  for (const double entry : m.data) sum += entry * entry;
  return std::sqrt(sum);
}

// |a - b| / |b| in the Frobenius norm; NaN where either has one.
inline double distance(const Matrix& a, const Matrix& b) {
  if (a.rows != b.rows || a.cols != b.cols) throw std::logic_error("matrices of different shapes");
  Matrix difference = a;
  for (std::size_t i = 0; i < a.data.size(); ++i) difference.data[i] -= b.data[i];
  return norm(difference) / norm(b);
}

struct Step {
  double a, b, c;
};

// A schedule's own steps, cut off or with the last repeated if `count` is not 0.
inline std::vector<Step> steps_of(std::string_view schedule, int count = 0) {
  const std::vector<Step> quintic{{4.0848, -6.8946, 2.9270},
                                  {3.9505, -6.3029, 2.6377},
                                  {3.7418, -5.5913, 2.3037},
                                  {2.8769, -3.1427, 1.2046},
                                  {2.8366, -3.0525, 1.2012}};
  std::vector<Step> steps;
  if (schedule == "paper") steps.assign(5, {3.4445, -4.7750, 2.0315});
  if (schedule == "quintic") steps = quintic;
  if (schedule == "turbo") steps.assign(quintic.begin() + 1, quintic.end());
  if (schedule == "polar-express") {
    steps = {{8.156554524902461, -22.48329292557795, 15.878769915207462},
             {4.042929935166739, -2.808917465908714, 0.5000178451051316},
             {3.8916678022926607, -2.772484153217685, 0.5060648178503393},
             {3.285753657755655, -2.3681294933425376, 0.46449024233003106},
             {2.3465413258596377, -1.7097828382687081, 0.42323551169305323}};
  }
  if (schedule == "polar-express-8") {
    steps = {{8.2051, -22.9019, 16.4607}, {4.0664, -2.8612, .5184}, {3.9096, -2.8234, .5250}, {3.2856, -2.4153, .4853},
             {2.2779, -1.6198, .3985},    {1.8726, -1.2307, .3585}, {1.8564, -1.2132, .3568}, {1.875, -1.25, .375}};
  }
  if (schedule == "cans") {
    steps = {{8.4703, -25.1081, 18.6293},
             {4.1828, -3.1087, .5806},
             {3.9619, -2.9541, .5630},
             {3.2866, -2.4647, .5074},
             {2.2737, -1.6447, .4162}};
  }
  if (steps.empty()) throw std::logic_error("no such schedule");
  if (count > 0) steps.resize(static_cast<std::size_t>(count), steps.back());
  return steps;
}

inline double divisor(std::string_view schedule) {
  return schedule == "polar-express" ? 1.02 : schedule == "polar-express-8" ? 1.01 : 1;
}

// Where a singular value goes that is `sigma` after the division.
inline double composite(const std::vector<Step>& steps, double sigma) {
  for (const Step& step : steps) sigma = step.a * sigma + step.b * std::pow(sigma, 3) + step.c * std::pow(sigma, 5);
  return sigma;
}

// How many units of rounding error, at most, a singular value that starts at `sigma` ends with: each step adds those of its own
// terms and multiplies the earlier ones by its slope. A polynomial that is steep at 1, as cans's, makes many of them.
inline double errors(const std::vector<Step>& steps, double sigma) {
  double units = sigma;
  for (const Step& step : steps) {
    const double s3 = std::pow(sigma, 3), s5 = std::pow(sigma, 5);
    units *= std::abs(step.a + 3 * step.b * std::pow(sigma, 2) + 5 * step.c * std::pow(sigma, 4));
    units += std::abs(step.a) * sigma + std::abs(step.b) * s3 + std::abs(step.c) * s5;
    sigma = step.a * sigma + step.b * s3 + step.c * s5;
  }
  return units;
}

// The wide matrix x divided as the schedule says. turbo's "almost orthogonal" preconditioner divides each row by the root of
// its row sum of |x x^T|, after which no singular value exceeds 1.
inline Matrix normalised(Matrix x, std::string_view schedule, double eps = 0) {
  if (schedule != "turbo") return times(1 / (divisor(schedule) * std::max(norm(x), eps)), x);
  const Matrix a = product(x, transposed(x));
  for (int i = 0; i < x.rows; ++i) {
    double sum = 0;
    for (int j = 0; j < x.rows; ++j) sum += std::abs(a(i, j));
    sum = std::max(sum, eps * eps);
    for (int j = 0; j < x.cols; ++j) x(i, j) *= sum > 0 ? 1 / std::sqrt(sum) : 0;
  }
  return x;
}

// X <- a X + (b A + c A^2) X with A = X X^T.
inline Matrix newton_schulz(const Matrix& m, std::string_view schedule, int count = 0, double eps = 0) {
  if (m.rows > m.cols) return transposed(newton_schulz(transposed(m), schedule, count, eps));
  Matrix x = normalised(m, schedule, eps);
  for (const Step& step : steps_of(schedule, count)) {
    const Matrix a = product(x, transposed(x));
    Matrix q = product(a, a);
    for (std::size_t i = 0; i < q.data.size(); ++i) q.data[i] = step.b * a.data[i] + step.c * q.data[i];
    const Matrix more = product(q, x);
    for (std::size_t i = 0; i < x.data.size(); ++i) x.data[i] = step.a * x.data[i] + more.data[i];
  }
  return x;
}

struct Svd {
  std::vector<double> values;  // in descending order
  Matrix polar;                // U V^T without the directions whose singular value is zero up to rounding
};

// Rotates pairs of rows of the wide matrix until all are orthogonal: then J w = diag(values) V^T and w = J^T diag(values) V^T.
inline Svd svd(const Matrix& m) {
  if (m.rows > m.cols) {
    Svd other = svd(transposed(m));
    return {other.values, transposed(other.polar)};
  }
  const int n = m.rows;
  const double size = norm(m), nothing = 1e-30 * size * size;  // rows of rounding errors alone never get orthogonal
  Matrix w = m, turn(n, n);
  for (int i = 0; i < n; ++i) turn(i, i) = 1;
  const auto dot = [&w](int i, int j) {
    double sum = 0;
    for (int k = 0; k < w.cols; ++k) sum += w(i, k) * w(j, k);
    return sum;
  };
  const auto rotate = [](Matrix& z, int i, int j, double c, double s) {
    for (int k = 0; k < z.cols; ++k) {
      const double p = z(i, k), q = z(j, k);
      z(i, k) = c * p - s * q;
      z(j, k) = s * p + c * q;
    }
  };
  bool turned = true;
  for (int sweep = 0; turned && sweep < 60; ++sweep) {
    turned = false;
    for (int i = 0; i < n; ++i) {
      for (int j = i + 1; j < n; ++j) {
        const double ii = dot(i, i), jj = dot(j, j), ij = dot(i, j);
        if (std::min(ii, jj) <= nothing || std::abs(ij) <= 1e-15 * std::sqrt(ii * jj)) continue;
        const double zeta = (jj - ii) / (2 * ij);
        const double t = (zeta < 0 ? -1 : 1) / (std::abs(zeta) + std::sqrt(1 + zeta * zeta)), c = 1 / std::sqrt(1 + t * t);
        rotate(w, i, j, c, c * t);
        rotate(turn, i, j, c, c * t);
        turned = true;
      }
    }
  }
  if (turned) throw std::logic_error("Jacobi did not converge");
  Svd result{{}, Matrix(n, m.cols)};
  for (int i = 0; i < n; ++i) {
    const double sigma = std::sqrt(dot(i, i));
    result.values.push_back(sigma);
    for (int k = 0; k < w.cols; ++k) w(i, k) = sigma > 1e-13 * size ? w(i, k) / sigma : 0;
  }
  result.polar = product(transposed(turn), w);
  std::sort(result.values.rbegin(), result.values.rend());
  return result;
}

inline double scale_of(std::string_view scale, int rows, int cols) {
  const double r = rows, c = cols;
  if (scale == "jordan") return std::sqrt(std::max(1.0, r / c));
  if (scale == "rms") return 0.2 * std::sqrt(std::max(r, c));
  return 1;
}

// The same for a whole matrix, relative to its factor in the Frobenius norm.
inline double errors(const Matrix& m, std::string_view schedule) {
  const std::vector<Step> steps = steps_of(schedule);
  double units = 0, size = 0;
  for (const double sigma : svd(normalised(m.rows > m.cols ? transposed(m) : m, schedule)).values) {
    units += std::pow(errors(steps, sigma), 2);
    size += std::pow(composite(steps, sigma), 2);
  }
  return std::sqrt(units / size);
}

// Entries from `uniform` in (0, 1), spread over (-1, 1) and rounded to float, so that both types can start from the same.
template <class Values>
Matrix random(int rows, int cols, Values&& values) {
  Matrix m(rows, cols);
  for (double& entry : m.data) entry = static_cast<double>(static_cast<float>(2 * values.uniform() - 1));
  return m;
}

// A random matrix with orthonormal rows, by Gram-Schmidt twice; rows <= cols.
template <class Values>
Matrix orthonormal(int rows, int cols, Values&& values) {
  Matrix q = random(rows, cols, values);
  for (int i = 0; i < rows; ++i) {
    for (int pass = 0; pass < 2; ++pass) {
      for (int j = 0; j < i; ++j) {
        double along = 0;
        for (int k = 0; k < cols; ++k) along += q(i, k) * q(j, k);
        for (int k = 0; k < cols; ++k) q(i, k) -= along * q(j, k);
      }
      double sum = 0;
      for (int k = 0; k < cols; ++k) sum += q(i, k) * q(i, k);
      for (int k = 0; k < cols; ++k) q(i, k) /= std::sqrt(sum);
    }
  }
  return q;
}

// u^T diag(values) v for orthonormal rows u and v.
inline Matrix assembled(Matrix u, const std::vector<double>& values, const Matrix& v) {
  for (int i = 0; i < u.rows; ++i) {
    for (int j = 0; j < u.cols; ++j) u(i, j) *= values[static_cast<std::size_t>(i)];
  }
  return product(transposed(u), v);
}

}  // namespace polar_oracle
