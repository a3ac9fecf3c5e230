// What the parser and the derivatives of a formula share: its operations, and their values for numbers and dual numbers.
#pragma once

#include <array>
#include <cmath>
#include <string_view>
#include <vector>

#include "lab/problem/expression.h"

namespace cautious::lab {

// A number and its derivative along one direction. Sweeps are written once for double and Dual; with duals they carry one more
// derivative along.
struct Dual {
  double v = 0, d = 0;
  Dual() = default;
  Dual(double value, double derivative = 0) : v(value), d(derivative) {}
};

// What does not move along the direction has no derivative along it, even where the slope is infinite.
inline Dual chain(double value, double slope, double d) { return {value, d == 0 ? 0 : slope * d}; }

inline Dual operator+(Dual a, Dual b) { return {a.v + b.v, a.d + b.d}; }
inline Dual operator-(Dual a, Dual b) { return {a.v - b.v, a.d - b.d}; }
inline Dual operator-(Dual a) { return {-a.v, -a.d}; }
inline Dual operator*(Dual a, Dual b) { return {a.v * b.v, a.d * b.v + a.v * b.d}; }
inline Dual operator/(Dual a, Dual b) { return {a.v / b.v, (a.d - a.v / b.v * b.d) / b.v}; }

inline Dual atan(Dual x) { return chain(std::atan(x.v), 1 / (1 + x.v * x.v), x.d); }
inline Dual cos(Dual x) { return chain(std::cos(x.v), -std::sin(x.v), x.d); }
inline Dual cosh(Dual x) { return chain(std::cosh(x.v), std::sinh(x.v), x.d); }
inline Dual exp(Dual x) { return chain(std::exp(x.v), std::exp(x.v), x.d); }
inline Dual log(Dual x) { return chain(std::log(x.v), 1 / x.v, x.d); }
inline Dual sin(Dual x) { return chain(std::sin(x.v), std::cos(x.v), x.d); }
inline Dual sinh(Dual x) { return chain(std::sinh(x.v), std::cosh(x.v), x.d); }
inline Dual sqrt(Dual x) { return chain(std::sqrt(x.v), 0.5 / std::sqrt(x.v), x.d); }
inline Dual tan(Dual x) { return chain(std::tan(x.v), 1 + std::tan(x.v) * std::tan(x.v), x.d); }
inline Dual tanh(Dual x) { return chain(std::tanh(x.v), 1 - std::tanh(x.v) * std::tanh(x.v), x.d); }

inline double real(double x) { return x; }
inline double real(Dual x) { return x.v; }
inline bool is_zero(double x) { return x == 0; }
inline bool is_zero(Dual x) { return x.v == 0 && x.d == 0; }

// x^y. x^0 is 1 everywhere, so it has no slope along x, not even at 0.
inline double power(double x, double y) { return std::pow(x, y); }
inline Dual power(Dual x, Dual y) {
  const double result = std::pow(x.v, y.v);
  const double by_x = x.d == 0 || y.v == 0 ? 0 : y.v * std::pow(x.v, y.v - 1) * x.d;
  const double by_y = y.d == 0 || (x.v == 0 && y.v > 0) ? 0 : result * std::log(x.v) * y.d;
  return {result, by_x + by_y};
}

// The slopes of result = x^y. On x = 0 that along y is 0 if y > 0, which is the limit of x^y log x.
template <class Number>
Number slope_of_base(Number x, Number y) {
  return is_zero(y) ? Number(0.0) : y * power(x, y - Number(1.0));
}
template <class Number>
Number slope_of_exponent(Number x, Number y, Number result) {
  using std::log;
  return real(x) == 0 && real(y) > 0 ? Number(0.0) : result * log(x);
}

// x^c for a constant c; small powers are products, which are faster.
template <class Number>
Number fixed_power(Number x, double c) {
  if (c == 0) return 1.0;
  if (c == 1) return x;
  if (c == 2) return x * x;
  if (c == 3) return x * x * x;
  return power(x, Number(c));
}

// The functions are at the end, in the order of kFunctions.
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

struct ParsedExpression {
  std::vector<Expression::Operation> operations;  // never empty
  std::size_t variables = 0;
};

// Throws an ExpressionError.
ParsedExpression parse_expression(std::string_view text, std::string_view what);

}  // namespace cautious::lab
