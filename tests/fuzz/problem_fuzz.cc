// libFuzzer over the laboratory's problem files and formulas. An input that begins with '=' is a formula, any other a file. At
// the start of a problem that is accepted f and its gradient are finite; the sweeps of a formula agree about its value.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "lab/problem/expression.h"
#include "lab/problem/problem.h"
#include "reader_fuzz.h"

namespace {

using namespace cautious;

constexpr std::size_t kFew = 16;  // variables, of a Hessian that is looked at

void check_symmetric(const lab::Matrix& h, std::size_t n) {
  demand(h.rows() == static_cast<Eigen::Index>(n) && h.cols() == h.rows());
  for (Eigen::Index i = 0; i < h.rows(); ++i) {
    for (Eigen::Index j = 0; j < i; ++j) demand(h(i, j) == h(j, i) || std::isnan(h(i, j)));
  }
}

void check_formula(std::string_view text) {
  const auto formula = read_or_refuse([&] { return lab::Expression::parse(text, "file"); }, "file, character ", Fault::usage);
  if (!formula) return;
  const std::size_t n = formula->variables();
  demand(n <= lab::Expression::kMostVariables);
  for (const double at : {0.0, 0.75, -3.0}) {
    const lab::Point x(n, at);
    lab::Point g(n);
    const double value = formula->value(x), again = formula->gradient(x, g);
    demand(value == again || (std::isnan(value) && std::isnan(again)));
    if (n > kFew) continue;
    lab::Matrix h;
    formula->hessian(x, h);
    check_symmetric(h, n);
  }
}

void check_problem(std::string_view text) {
  write_bytes(memory_file(), text);
  const auto problem = read_or_refuse([&] { return lab::read_problem(memory_file()); }, memory_file() + ":", Fault::usage);
  if (!problem) return;
  const double f = problem->value(problem->start);
  demand(std::isfinite(f) && problem->size() > 0 && problem->view_low < problem->view_high);
  demand(!problem->least || *problem->least <= f);
  for (const double slope : lab::gradient(*problem, problem->start)) demand(std::isfinite(slope));
  if (problem->size() <= kFew) check_symmetric(lab::hessian(*problem, problem->start), problem->size());
  demand(!problem->title.empty() && problem->title.find('\n') == problem->title.npos);
  demand(problem->formula.find('\n') == problem->formula.npos);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('=')) {
    check_formula(text.substr(1));
  } else {
    check_problem(text);
  }
  return 0;
}
