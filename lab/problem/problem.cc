#include "lab/problem/problem.h"

#include <algorithm>
#include <cmath>
#include <iterator>

#include <fmt/format.h>

#include <cautious/error.h>

#include "lab/problem/built_in.h"
#include "base/text.h"

namespace cautious::lab {
namespace {

std::size_t first_infinite(PointView numbers) {
  const auto found = std::ranges::find_if_not(numbers, [](double c) { return std::isfinite(c); });
  return static_cast<std::size_t>(found - numbers.begin());
}

// A NaN may have a sign, which says nothing.
std::string shown(double number) { return std::isnan(number) ? "nan" : base::to_text(number); }

}  // namespace

const std::vector<Problem>& problems() {
  static const std::vector<Problem> all = [] {
    std::vector<Problem> found = plane_problems();
    std::ranges::move(matrix_problems(), std::back_inserter(found));
    return found;
  }();
  return all;
}

const Problem& problem(std::string_view name) {
  std::vector<std::string_view> names;
  for (const Problem& known : problems()) names.push_back(known.name);
  return problems()[base::index_of_name("problem", name, names)];
}

Point gradient(const Problem& problem, PointView x) {
  Point g(x.size());
  problem.gradient(x, g);
  return g;
}

Matrix hessian(const Problem& problem, PointView x) {
  Matrix h;
  problem.hessian(x, h);
  return h;
}

void check_point(const Problem& problem, std::string_view what, PointView x) {
  if (x.size() != problem.size()) {
    throw Error(Fault::usage, fmt::format("{}: the number of coordinates is {}; valid for {}: {}", what, x.size(), problem.name,
                                          problem.size()));
  }
  if (const std::size_t i = first_infinite(x); i < x.size()) {
    throw Error(Fault::usage, fmt::format("{}: x{} is {}; valid: finite numbers", what, i + 1, shown(x[i])));
  }
  constexpr std::string_view kValid = "valid: a point where f and its derivatives are finite";
  if (const double f = problem.value(x); !std::isfinite(f)) {
    throw Error(Fault::usage, fmt::format("{}: f is {} there; {}", what, shown(f), kValid));
  }
  const Point g = gradient(problem, x);
  if (const std::size_t i = first_infinite(g); i < g.size()) {
    throw Error(Fault::usage, fmt::format("{}: the derivative of f by x{} is {} there; {}", what, i + 1, shown(g[i]), kValid));
  }
}

}  // namespace cautious::lab
