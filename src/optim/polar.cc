// The public functions of polar.h, and tensors as matrices.
#include <cautious/polar.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cautious/error.h>
#include <cautious/recipe.h>

#include "base/text.h"
#include "linear/blas.h"
#include "linear/orthogonal.h"
#include "optim/polar.h"
#include "optim/work.h"

namespace cautious {
namespace {

void check_size(std::size_t size, std::int64_t rows, std::int64_t cols) {
  if (rows < 0 || cols < 0 || (rows > 0 && static_cast<std::size_t>(cols) != size / static_cast<std::size_t>(rows)) ||
      static_cast<std::size_t>(rows) * static_cast<std::size_t>(cols) != size) {
    throw Error(Fault::usage, fmt::format("a matrix of {} x {} does not have {} entries", rows, cols, size));
  }
}

template <class T>
void polar_of_matrix(std::span<T> matrix, std::int64_t rows, std::int64_t cols, const Polar& how, int threads) {
  const Options options{.threads = threads};
  check(options);
  check(Recipe{.rule = Muon{.polar = how}});
  check_size(matrix.size(), rows, cols);
  const std::array shape{rows, cols};
  const optim::Matrices cut = optim::matrices_of("matrix", shape, how.blocks);
  if (matrix.empty()) return;
  linear::Batch<T> batch;
  for (std::int64_t i = 0; i < cut.count; ++i) {
    batch.add(matrix.data() + i * cut.rows * cut.cols, static_cast<int>(cut.rows), static_cast<int>(cut.cols), how);
  }
  batch.plan(optim::thread_count(options));
  const optim::FlushDenormals flush;
  batch.run([&options](std::size_t count, const auto& body) { optim::parallel(options, count, body); });
}

}  // namespace

namespace optim {

Matrices matrices_of(std::string_view name, std::span<const std::int64_t> shape, std::int64_t blocks) {
  const auto refuse = [&](std::string_view why) {
    throw Error(Fault::usage, fmt::format("tensor {} of shape [{}] {}", base::in_quotes(name), fmt::join(shape, ", "), why));
  };
  if (shape.size() < 2) refuse("is no matrix; route vectors to another recipe, as matrices_and_rest() does");
  if (shape.front() % blocks != 0) refuse(fmt::format("cannot be cut into {} blocks along its first side", blocks));
  std::int64_t rows = shape.front() / blocks;
  std::span<const std::int64_t> rest = shape.subspan(1);
  if (blocks > 1 && rows == 1 && rest.size() > 1) {
    rows = rest.front();
    rest = rest.subspan(1);
  }
  constexpr std::int64_t kMost = std::numeric_limits<int>::max();
  bool fits = rows <= kMost;
  std::int64_t cols = 1;
  for (const std::int64_t side : rest) {
    fits = fits && side <= kMost / std::max<std::int64_t>(cols, 1);
    cols = fits ? cols * side : 0;
  }
  if (!fits) refuse(fmt::format("is a matrix with a side above {}", kMost));
  return {blocks, rows, cols};
}

}  // namespace optim

void polar(std::span<float> matrix, std::int64_t rows, std::int64_t cols, const Polar& how, int threads) {
  polar_of_matrix(matrix, rows, cols, how, threads);
}

void polar(std::span<double> matrix, std::int64_t rows, std::int64_t cols, const Polar& how, int threads) {
  polar_of_matrix(matrix, rows, cols, how, threads);
}

double nuclear_norm(std::span<const double> matrix, std::int64_t rows, std::int64_t cols) {
  check_size(matrix.size(), rows, cols);
  if (matrix.empty()) return 0;
  if (std::max(rows, cols) > std::numeric_limits<int>::max()) {
    throw Error(Fault::usage,
                fmt::format("a matrix of {} x {} has a side above {}", rows, cols, std::numeric_limits<int>::max()));
  }
  if (!std::all_of(matrix.begin(), matrix.end(), [](double entry) { return std::isfinite(entry); })) {
    return std::numeric_limits<double>::quiet_NaN();
  }
  const std::vector<double> values = linear::singular_values(matrix, static_cast<int>(rows), static_cast<int>(cols));
  if (values.empty()) throw Error(Fault::failure, "LAPACK found no singular value decomposition");
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace cautious
