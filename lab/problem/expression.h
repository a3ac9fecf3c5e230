// A formula of x1, x2, ..., xn as a user types it, with exact first and second derivatives (automatic differentiation: one
// forward and one backward sweep over the list of operations; the second derivative is the same with dual numbers).
//   numbers, pi, + - * / ^, unary -, ( ), and abs atan cos cosh exp log sin sinh sqrt tan tanh of one argument
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <cautious/error.h>

#include "lab/numbers.h"

namespace cautious::lab {

// "f, character 9: found '*', but ..."
class ExpressionError : public Error {
 public:
  ExpressionError(std::string_view what, std::size_t character, std::string words);
  std::size_t character() const { return character_; }  // from 1
  const std::string& words() const { return words_; }   // what was found and what may be there

 private:
  std::size_t character_;
  std::string words_;
};

class Expression {
 public:
  static constexpr std::size_t kLongest = 65536;  // characters
  static constexpr std::size_t kMostVariables = 1000;
  static constexpr std::size_t kDeepest = 256;  // brackets, powers and signs inside each other

  // Throws an ExpressionError (Fault::usage) that says what was found, what may be there and at which character; `what`
  // names the formula in it. Variables count without gaps: a formula of x1 and x3 alone has three variables.
  static Expression parse(std::string_view text, std::string_view what = "f");

  std::size_t variables() const { return variables_; }

  // x has at least, g exactly variables() numbers. Where f is not defined the result is NaN or infinite. abs has derivative 0
  // at 0, x^0 is 1 everywhere.
  double value(PointView x) const;
  double gradient(PointView x, std::span<double> g) const;  // returns the value
  void hessian(PointView x, Matrix& h) const;

  enum class Code : unsigned char;
  struct Operation {
    Code code;
    std::size_t left = 0, right = 0;  // earlier operations; of a variable, its number from 0
    double constant = 0;
  };

 private:
  std::vector<Operation> operations_;
  std::size_t variables_ = 0;
};

}  // namespace cautious::lab
