// The operations of a formula and their values, for double and Dual.
#pragma once

#include <array>
#include <string_view>

#include "lab/problem/expression.h"
#include "lab/problem/expression_dual.h"

namespace cautious::lab {

// The functions stand at the end in the order of kFunctions.
enum class Expression::Code : unsigned char {
  constant,
  variable,
  add,
  subtract,
  multiply,
  divide,
  negate,
  power,        // the exponent is an operation
  fixed_power,  // the exponent is `constant`
  abs,
  atan,
  cos,
  cosh,
  exp,
  log,
  sin,
  sinh,
  sqrt,
  tan,
  tanh,
};

inline constexpr std::array<std::string_view, 11> kFunctions{"abs", "atan", "cos",  "cosh", "exp", "log",
                                                             "sin", "sinh", "sqrt", "tan",  "tanh"};

inline Expression::Code function_code(std::size_t index) {
  return static_cast<Expression::Code>(static_cast<std::size_t>(Expression::Code::abs) + index);
}

template <class Number>
Number sign_of(Number x) {
  return static_cast<double>((real(x) > 0) - (real(x) < 0));
}

// The value of an operation on operands; a is the left or only one. Not of a variable.
template <class Number>
Number apply(const Expression::Operation& operation, Number a, Number b) {
  using Code = Expression::Code;
  using std::atan, std::cos, std::cosh, std::exp, std::log, std::sin, std::sinh, std::sqrt, std::tan, std::tanh;
  switch (operation.code) {
    case Code::constant:
    case Code::variable:
      break;
    case Code::add:
      return a + b;
    case Code::subtract:
      return a - b;
    case Code::multiply:
      return a * b;
    case Code::divide:
      return a / b;
    case Code::negate:
      return -a;
    case Code::power:
      return power(a, b);
    case Code::fixed_power:
      return fixed_power(a, operation.constant);
    case Code::abs:
      return sign_of(a) * a;
    case Code::atan:
      return atan(a);
    case Code::cos:
      return cos(a);
    case Code::cosh:
      return cosh(a);
    case Code::exp:
      return exp(a);
    case Code::log:
      return log(a);
    case Code::sin:
      return sin(a);
    case Code::sinh:
      return sinh(a);
    case Code::sqrt:
      return sqrt(a);
    case Code::tan:
      return tan(a);
    case Code::tanh:
      return tanh(a);
  }
  return operation.constant;
}

}  // namespace cautious::lab
