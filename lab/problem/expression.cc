// A formula is a list of operations, operands before what uses them and the result last. The forward sweep fills in values, the
// backward sweep adjoints: how much the result moves with each of them.
#include "lab/problem/expression.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "lab/problem/operations.h"

namespace cautious::lab {
namespace {

using Code = Expression::Code;
using Operations = std::vector<Expression::Operation>;

template <class Number>
Number variable(PointView x, std::size_t i, std::size_t direction);
template <>
double variable<double>(PointView x, std::size_t i, std::size_t) {
  return x[i];
}
template <>
Dual variable<Dual>(PointView x, std::size_t i, std::size_t direction) {
  return {x[i], i == direction ? 1.0 : 0.0};
}

// Kept from call to call, so that none of them allocates.
template <class Number>
struct Scratch {
  std::vector<Number> values, adjoints;
};

template <class Number>
Scratch<Number>& scratch_for(std::size_t operations) {
  thread_local Scratch<Number> scratch;
  if (scratch.values.size() < operations) {
    scratch.values.resize(operations);
    scratch.adjoints.resize(operations);
  }
  return scratch;
}

// `direction` is the variable along which duals are derived.
template <class Number>
void sweep_forward(const Operations& operations, PointView x, std::size_t direction, Number* values) {
  for (std::size_t i = 0; i < operations.size(); ++i) {
    const Expression::Operation& operation = operations[i];
    if (operation.code == Code::variable) {
      values[i] = variable<Number>(x, operation.left, direction);
    } else {
      values[i] = apply(operation, values[operation.left], values[operation.right]);
    }
  }
}

// The slope of an operation of one operand a.
template <class Number>
Number slope(const Expression::Operation& operation, Number a, Number result) {
  using std::cos, std::cosh, std::sin, std::sinh;
  const Number one = 1.0;
  switch (operation.code) {
    case Code::fixed_power:
      return operation.constant == 0 ? Number(0.0) : Number(operation.constant) * fixed_power(a, operation.constant - 1);
    case Code::abs:
      return sign_of(a);
    case Code::atan:
      return one / (one + a * a);
    case Code::cos:
      return -sin(a);
    case Code::cosh:
      return sinh(a);
    case Code::exp:
      return result;
    case Code::log:
      return one / a;
    case Code::sin:
      return cos(a);
    case Code::sinh:
      return cosh(a);
    case Code::sqrt:
      return Number(0.5) / result;
    case Code::tan:
      return one + result * result;
    case Code::tanh:
      return one - result * result;
    default:
      return -one;  // negate
  }
}

// `each` gets the number of a variable and its adjoint, for every place where the formula has one.
template <class Number, class Each>
void sweep_backward(const Operations& operations, const Number* values, Number* adjoints, const Each& each) {
  std::fill_n(adjoints, operations.size(), Number(0.0));
  adjoints[operations.size() - 1] = 1.0;
  for (std::size_t i = operations.size(); i-- > 0;) {
    const Expression::Operation& operation = operations[i];
    const Number adjoint = adjoints[i];
    if (operation.code == Code::variable) each(operation.left, adjoint);
    if (operation.code <= Code::variable || is_zero(adjoint)) continue;  // 0 times an infinite slope is nothing, too
    const Number a = values[operation.left], b = values[operation.right];
    Number& left = adjoints[operation.left];
    Number& right = adjoints[operation.right];
    switch (operation.code) {
      case Code::add:
        left = left + adjoint;
        right = right + adjoint;
        break;
      case Code::subtract:
        left = left + adjoint;
        right = right - adjoint;
        break;
      case Code::multiply:
        left = left + adjoint * b;
        right = right + adjoint * a;
        break;
      case Code::divide:
        left = left + adjoint / b;
        right = right - adjoint * values[i] / b;
        break;
      case Code::power:
        left = left + adjoint * slope_of_base(a, b);
        right = right + adjoint * slope_of_exponent(a, b, values[i]);
        break;
      default:
        left = left + adjoint * slope(operation, a, values[i]);
    }
  }
}

}  // namespace

ExpressionError::ExpressionError(std::string_view what, std::size_t character, std::string words)
    : Error(Fault::usage, fmt::format("{}, character {}: {}", what, character, words)),
      character_(character),
      words_(std::move(words)) {}

Expression Expression::parse(std::string_view text, std::string_view what) {
  ParsedExpression parsed = parse_expression(text, what);
  Expression result;
  result.operations_ = std::move(parsed.operations);
  result.variables_ = parsed.variables;
  return result;
}

double Expression::value(PointView x) const {
  Scratch<double>& scratch = scratch_for<double>(operations_.size());
  sweep_forward(operations_, x, 0, scratch.values.data());
  return scratch.values[operations_.size() - 1];
}

double Expression::gradient(PointView x, std::span<double> g) const {
  Scratch<double>& scratch = scratch_for<double>(operations_.size());
  sweep_forward(operations_, x, 0, scratch.values.data());
  std::ranges::fill(g, 0.0);
  sweep_backward(operations_, scratch.values.data(), scratch.adjoints.data(),
                 [&](std::size_t i, double adjoint) { g[i] += adjoint; });
  return scratch.values[operations_.size() - 1];
}

void Expression::hessian(PointView x, Matrix& h) const {
  const auto n = static_cast<Eigen::Index>(variables_);
  h.setZero(n, n);
  Scratch<Dual>& scratch = scratch_for<Dual>(operations_.size());
  for (std::size_t direction = 0; direction < variables_; ++direction) {
    sweep_forward(operations_, x, direction, scratch.values.data());
    sweep_backward(operations_, scratch.values.data(), scratch.adjoints.data(), [&](std::size_t i, Dual adjoint) {
      h(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(direction)) += adjoint.d;
    });
  }
  h = (0.5 * (h + h.transpose())).eval();  // the two differ in the last bits
}

}  // namespace cautious::lab
