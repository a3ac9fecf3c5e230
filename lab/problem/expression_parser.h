// The text of a formula as a list of operations, by recursive descent. What holds no variable is computed here.
//   sum    = term { ('+' | '-') term }
//   term   = factor { ('*' | '/') factor }
//   factor = '-' factor | power
//   power  = operand [ '^' factor ]            right-associative; binds tighter than the sign before it
//   operand = number | 'pi' | variable | function '(' sum ')' | '(' sum ')'
#pragma once

#include <string_view>
#include <vector>

#include "lab/problem/expression.h"

namespace cautious::lab {

struct ParsedExpression {
  std::vector<Expression::Operation> operations;  // never empty
  std::size_t variables = 0;
};

// Throws an ExpressionError.
ParsedExpression parse_expression(std::string_view text, std::string_view what);

}  // namespace cautious::lab
