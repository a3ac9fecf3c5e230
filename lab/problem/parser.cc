// The text of a formula as a list of operations, by recursive descent. What holds no variable is computed here.
//   sum    = term { ('+' | '-') term }
//   term   = factor { ('*' | '/') factor }
//   factor = '-' factor | power
//   power  = operand [ '^' factor ]            right-associative; binds tighter than the sign before it
//   operand = number | 'pi' | variable | function '(' sum ')' | '(' sum ')'
#include <algorithm>
#include <array>
#include <charconv>
#include <numbers>
#include <optional>

#include <fmt/format.h>

#include "base/text.h"
#include "lab/problem/operations.h"

namespace cautious::lab {
namespace {

using Code = Expression::Code;

constexpr std::string_view kOperand = "an operand is expected here: a number, pi, x1, x2, ..., a function or '('";
constexpr std::string_view kVariables = "variables are x1, x2, ...";

// As in the C locale, whatever the program's.
bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// Bytes of the UTF-8 character at the start, 1 if it is none.
std::size_t bytes_of_character(std::string_view text) {
  const auto first = static_cast<unsigned char>(text[0]);
  const std::size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc0 ? 2 : 1;
  if (text.size() < bytes) return 1;
  for (std::size_t i = 1; i < bytes; ++i) {
    if ((static_cast<unsigned char>(text[i]) & 0xc0) != 0x80) return 1;
  }
  return bytes;
}

class Parser {
 public:
  Parser(std::string_view text, std::string_view what) : text_(text), what_(what) {}

  ParsedExpression parse() {
    if (text_.size() > Expression::kLongest) {
      refuse(Expression::kLongest,
             fmt::format("the formula has {} characters; at most {}", text_.size(), Expression::kLongest));
    }
    sum();
    if (next() == ')') refuse(at_, "found ')', but no '(' is open");
    if (at_ < text_.size()) refuse_operator("the end");
    return std::move(parsed_);
  }

 private:
  // Each of these appends the operations of what it reads; the last one is its value, whose place it returns.
  std::size_t sum() {
    std::size_t left = term();
    for (char c; (c = next()) == '+' || c == '-';) {
      ++at_;
      left = operation(c == '+' ? Code::add : Code::subtract, left, term());
    }
    return left;
  }

  std::size_t term() {
    std::size_t left = factor();
    for (char c; (c = next()) == '*' || c == '/';) {
      ++at_;
      left = operation(c == '*' ? Code::multiply : Code::divide, left, factor());
    }
    return left;
  }

  std::size_t factor() {
    next();
    if (++depth_ > Expression::kDeepest) {
      refuse(at_, fmt::format("brackets, powers and signs are nested more than {} deep", Expression::kDeepest));
    }
    std::size_t place;
    if (next() == '-') {
      ++at_;
      place = operation(Code::negate, factor());
    } else {
      place = power();
    }
    --depth_;
    return place;
  }

  std::size_t power() {
    const std::size_t base = operand();
    if (next() != '^') return base;
    ++at_;
    const std::size_t exponent = factor();
    if (!is_constant(exponent) || is_constant(base)) return operation(Code::power, base, exponent);
    const double constant = parsed_.operations[exponent].constant;
    parsed_.operations.pop_back();
    return append({Code::fixed_power, base, base, constant});
  }

  std::size_t operand() {
    const char c = next();
    const bool number_follows = is_digit(c) || (c == '.' && at_ + 1 < text_.size() && is_digit(text_[at_ + 1]));
    if (number_follows) return number();
    if (is_letter(c)) return named();
    if (c != '(') refuse_found(kOperand);
    return in_brackets();
  }

  std::size_t number() {
    double value = 0;
    const char* const begin = text_.data() + at_;
    const auto [end, fault] = std::from_chars(begin, text_.data() + text_.size(), value);
    const std::string_view digits(begin, static_cast<std::size_t>(end - begin));
    if (fault != std::errc{}) refuse(at_, fmt::format("the number {} is too large or too small", base::in_quotes(digits)));
    at_ += digits.size();
    return append({Code::constant, 0, 0, value});
  }

  std::size_t named() {
    const std::string_view name = word();
    if (name == "pi") {
      at_ += name.size();
      return append({Code::constant, 0, 0, std::numbers::pi});
    }
    if (name[0] == 'x' && std::ranges::all_of(name.substr(1), is_digit)) return variable(name);
    const auto function = std::ranges::find(kFunctions, name);
    if (function == kFunctions.end()) refuse_name(name);
    at_ += name.size();
    if (next() != '(') refuse_found(fmt::format("'(' is expected here, after {}", name));
    return operation(function_code(static_cast<std::size_t>(function - kFunctions.begin())), in_brackets());
  }

  std::size_t variable(std::string_view name) {
    std::size_t number = 0;
    const auto [end, fault] = std::from_chars(name.data() + 1, name.data() + name.size(), number);
    if (name.size() == 1 || name[1] == '0') refuse(at_, fmt::format("found {}, but {}", base::in_quotes(name), kVariables));
    if (fault != std::errc{} || number > Expression::kMostVariables) {
      refuse(at_, fmt::format("found {}, but the last variable is x{}", base::in_quotes(name), Expression::kMostVariables));
    }
    at_ += name.size();
    parsed_.variables = std::max(parsed_.variables, number);
    return append({Code::variable, number - 1, 0});
  }

  std::size_t in_brackets() {
    const std::size_t open = at_++;
    const std::size_t place = sum();
    if (next() == '\0' && at_ >= text_.size()) {
      refuse(at_, fmt::format("found the end, but ')' is expected here for the '(' at character {}", open + 1));
    }
    if (next() != ')') refuse_operator("')'");
    ++at_;
    return place;
  }

  bool is_constant(std::size_t place) const { return parsed_.operations[place].code == Code::constant; }

  std::size_t append(const Expression::Operation& added) {
    parsed_.operations.push_back(added);
    return parsed_.operations.size() - 1;
  }

  // Constants are the last operations, if both operands are, and their value takes their place.
  std::size_t operation(Code code, std::size_t left, std::optional<std::size_t> other = {}) {
    const std::size_t right = other.value_or(left);
    const Expression::Operation added{code, left, right};
    if (!is_constant(left) || !is_constant(right)) return append(added);
    const double value = apply(added, parsed_.operations[left].constant, parsed_.operations[right].constant);
    parsed_.operations.resize(left);
    return append({Code::constant, 0, 0, value});
  }

  // The next character behind white space, where at_ then is; 0 at the end.
  char next() {
    while (at_ < text_.size() && is_space(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }

  std::string_view word() const {
    const std::string_view rest = text_.substr(at_);
    const auto end = std::ranges::find_if_not(rest, [](char c) { return is_letter(c) || is_digit(c); });
    return rest.substr(0, static_cast<std::size_t>(end - rest.begin()));
  }

  // What is at at_, for a message: a word, a number's first digits or a character.
  std::string found() const {
    if (at_ >= text_.size()) return "the end";
    const std::string_view rest = text_.substr(at_), letters = word();
    if (!letters.empty()) return base::in_quotes(letters);
    const std::size_t bytes = bytes_of_character(rest);
    if (bytes == 1 && static_cast<unsigned char>(rest[0]) >= 0x80) {
      return fmt::format("'\\x{:02x}'", static_cast<unsigned char>(rest[0]));
    }
    return base::in_quotes(rest.substr(0, bytes));
  }

  [[noreturn]] void refuse(std::size_t place, std::string words) const {
    throw ExpressionError(what_, place + 1, std::move(words));
  }

  [[noreturn]] void refuse_found(std::string_view valid) const { refuse(at_, fmt::format("found {}, but {}", found(), valid)); }

  [[noreturn]] void refuse_operator(std::string_view or_else) const {
    const char c = text_[at_];
    const bool product = is_letter(c) || is_digit(c) || c == '(';
    refuse_found(fmt::format("an operator is expected here: + - * / ^ or {}{}", or_else,
                             product ? "; a product is written with *" : ""));
  }

  [[noreturn]] void refuse_name(std::string_view name) const {
    constexpr std::string_view kAxes = "xyzXYZ";
    const bool axis = kAxes.find(name[0]) != kAxes.npos && std::ranges::all_of(name.substr(1), is_digit);
    if (axis) refuse(at_, fmt::format("found {}, but {}", base::in_quotes(name), kVariables));
    std::array<std::string_view, kFunctions.size() + 1> names{"pi"};
    std::ranges::copy(kFunctions, names.begin() + 1);
    refuse(at_, fmt::format("{}; {}", base::unknown("function or constant", name, names), kVariables));
  }

  std::string_view text_, what_;
  std::size_t at_ = 0;
  std::size_t depth_ = 0;
  ParsedExpression parsed_;
};

}  // namespace

ParsedExpression parse_expression(std::string_view text, std::string_view what) { return Parser(text, what).parse(); }

}  // namespace cautious::lab
