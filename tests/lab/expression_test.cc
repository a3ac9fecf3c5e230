// Formulas: precedence, derivatives against hand-derived ones, errors by whole lines.
#include "lab/problem/expression.h"

#include <cmath>
#include <limits>
#include <numbers>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "usage_message.h"

namespace cautious::lab {
namespace expression_test {

double value(std::string_view text, const Point& x = {}) { return Expression::parse(text).value(x); }

TEST(Expression, PrecedenceAndAssociativity) {
  const double x1 = 1.5, x2 = -0.25;
  const std::vector<std::pair<std::string_view, double>> table{
      {"1", 1},
      {".5", 0.5},
      {"5.", 5},
      {"2.5e-3", 2.5e-3},
      {"2E+2", 200},
      {"pi", std::numbers::pi},
      {"1 + 2*3", 7},
      {"(1 + 2)*3", 9},
      {"8 - 3 - 2", 3},
      {"8 - (3 - 2)", 7},
      {"8/4/2", 1},
      {"8/4*2", 4},
      {"8/(4*2)", 1},
      {"2^3^2", 512},
      {"(2^3)^2", 64},
      {"-2^2", -4},
      {"(-2)^2", 4},
      {"(-2)^3", -8},
      {"2^-1", 0.5},
      {"2^-2^2", 1.0 / 16},
      {"--3", 3},
      {"2--3", 5},
      {"2*-3", -6},
      {"-2*3", -6},
      {"6/-3", -2},
      {"-3^2*2", -18},
      {" \t2\n*\r3 ", 6},
      {"-x1^2", -2.25},
      {"x1^2*x2", 2.25 * -0.25},
      {"x1*x2^2", 1.5 * 0.0625},
      {"x1 - x2 - 1", 0.75},
      {"x1/x2/2", -3},
      {"2^x1^2", std::pow(2.0, 2.25)},
      {"x2^3", -0.015625},
      {"x2^-1", -4},
      {"x2^0", 1},
      {"x2^(1 + 1)", 0.0625},
      {"sin(x1)^2 + cos(x1)^2", 1},
      {"-abs(x2)", -0.25},
      {"atan(x1)", std::atan(x1)},
      {"cosh(x1) - sinh(x1)", std::exp(-x1)},
      {"log(exp(x2))", x2},
      {"sqrt(x1)", std::sqrt(x1)},
      {"tan(x1)", std::tan(x1)},
      {"tanh(x2)", std::tanh(x2)},
  };
  for (const auto& [text, expected] : table) {
    EXPECT_NEAR(value(text, {x1, x2}), expected, 1e-15 * (1 + std::abs(expected))) << text;
  }
}

TEST(Expression, VariablesCountWithoutGaps) {
  EXPECT_EQ(Expression::parse("3").variables(), 0u);
  EXPECT_EQ(Expression::parse("x1 + x3").variables(), 3u);
  EXPECT_EQ(Expression::parse("x1000").variables(), 1000u);
  EXPECT_EQ(Expression::parse("x2^0").variables(), 2u);
}

// f, f' and f'' of one variable by hand, at places where a careless rule gives NaN or the wrong sign.
TEST(Expression, DerivativesAtDelicatePlaces) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  struct Case {
    std::string_view text;
    double x, f, first, second;
  };
  const std::vector<Case> cases{
      {"x1^2", 0, 0, 0, 2},
      {"x1^1", 0, 0, 1, 0},
      {"x1^0", 0, 1, 0, 0},
      {"x1^3", 0, 0, 0, 0},
      {"x1^3", -2, -8, 12, -12},
      {"x1^5", -2, -32, 80, -160},
      {"x1^-1", -2, -0.5, -0.25, -0.25},
      {"x1^-2", 2, 0.25, -0.25, 0.375},
      {"x1^1.5", 0, 0, 0, kInfinity},
      {"x1^2.5", 0, 0, 0, 0},
      {"x1^(4/2)", -3, 9, -6, 2},
      {"x1^x1", 1, 1, 1, 2},
      {"2^x1", 0, 1, std::numbers::ln2, std::numbers::ln2 * std::numbers::ln2},
      {"0^x1", 2, 0, 0, 0},
      {"exp(0^x1)", 2, 1, 0, 0},
      {"abs(x1)", 0, 0, 0, 0},
      {"abs(x1)", -2, 2, -1, 0},
      {"abs(x1)*x1", 0, 0, 0, 0},
      {"x1/x1", 3, 1, 0, 0},
      {"1/x1", 2, 0.5, -0.25, 0.25},
      {"x1 - x1", 5, 0, 0, 0},
      {"0*sqrt(x1)", 0, 0, 0, 0},
      {"sqrt(x1)", 4, 2, 0.25, -1.0 / 32},
      {"log(x1)", 2, std::numbers::ln2, 0.5, -0.25},
      {"exp(2*x1)", 0, 1, 2, 4},
      {"sin(x1)", 0, 0, 1, 0},
      {"cos(x1)", 0, 1, 0, -1},
      {"tan(x1)", 0, 0, 1, 0},
      {"atan(x1)", 1, std::numbers::pi / 4, 0.5, -0.5},
      {"sinh(x1)", 0, 0, 1, 0},
      {"cosh(x1)", 0, 1, 0, 1},
      {"tanh(x1)", 0, 0, 1, 0},
      {"tanh(x1)", 800, 1, 0, 0},
      {"7", 1, 7, 0, 0},
  };
  for (const Case& c : cases) {
    const Expression f = Expression::parse(fmt::format("{} + 0*x1", c.text));
    const Point x{c.x};
    Point g(1);
    Matrix h;
    EXPECT_NEAR(f.gradient(x, g), c.f, 1e-15 * (1 + std::abs(c.f))) << c.text;
    EXPECT_EQ(f.value(x), f.gradient(x, g));
    f.hessian(x, h);
    EXPECT_NEAR(g[0], c.first, 1e-15 * (1 + std::abs(c.first))) << c.text << " at " << c.x;
    if (std::isinf(c.second)) {
      EXPECT_EQ(h(0, 0), c.second) << c.text;
    } else {
      EXPECT_NEAR(h(0, 0), c.second, 1e-15 * (1 + std::abs(c.second))) << c.text << " at " << c.x;
    }
  }
}

// f = x1^x2: fx = x2 x1^(x2-1), fy = f log x1, fxy = x1^(x2-1) (1 + x2 log x1); also where x2 = 0.
TEST(Expression, PowerOfTwoVariables) {
  const Expression f = Expression::parse("x1^x2");
  for (const Point& x : {Point{2, 0}, Point{0.5, 3}, Point{3, -1.5}}) {
    Point g(2);
    Matrix h;
    const double log = std::log(x[0]), power = std::pow(x[0], x[1]), lower = std::pow(x[0], x[1] - 1);
    EXPECT_NEAR(f.gradient(x, g), power, 1e-14);
    EXPECT_NEAR(g[0], x[1] * lower, 1e-14);
    EXPECT_NEAR(g[1], power * log, 1e-14);
    f.hessian(x, h);
    EXPECT_NEAR(h(0, 0), x[1] * (x[1] - 1) * lower / x[0], 1e-14);
    EXPECT_NEAR(h(0, 1), lower * (1 + x[1] * log), 1e-14);
    EXPECT_EQ(h(0, 1), h(1, 0));
    EXPECT_NEAR(h(1, 1), power * log * log, 1e-14);
  }
  Point g(2);
  EXPECT_EQ(f.gradient(Point{0, 2}, g), 0);
  EXPECT_EQ(g, (Point{0, 0}));
  EXPECT_EQ(f.gradient(Point{0, 0}, g), 1);
  EXPECT_EQ(g[0], 0);
  Matrix h;
  Expression::parse("exp(x1^x2)").hessian(Point{0, 0}, h);
  EXPECT_EQ(h(0, 0), 0);
}

// An infinite slope along x1 is nothing along x2.
TEST(Expression, InfiniteSlopesStayWhereTheyAre) {
  const Expression f = Expression::parse("x1*sqrt(x1) + x1^1.5 + x2^2");
  Point g(2);
  Matrix h;
  EXPECT_EQ(f.gradient(Point{0, 1}, g), 1);
  EXPECT_EQ(g, (Point{0, 2}));
  f.hessian(Point{0, 1}, h);
  EXPECT_EQ(h(0, 1), 0);
  EXPECT_EQ(h(1, 1), 2);
}

TEST(Expression, ErrorsNameTheCharacter) {
  const std::string operand = "an operand is expected here: a number, pi, x1, x2, ..., a function or '('";
  const std::string choices =
      "choices: pi, abs, atan, cos, cosh, exp, log, sin, sinh, sqrt, tan, tanh; variables are x1, x2, ...";
  const std::string behind = "an operator is expected here: + - * / ^ or ";
  const std::vector<std::pair<std::string, std::string>> table{
      {"", "1: found the end, but " + operand},
      {"   ", "4: found the end, but " + operand},
      {"x1 + 2 ** 3", "9: found '*', but " + operand},
      {"x1 +", "5: found the end, but " + operand},
      {"()", "2: found ')', but " + operand},
      {"x1 + .", "6: found '.', but " + operand},
      {"+x1", "1: found '+', but " + operand},
      {"x1^", "4: found the end, but " + operand},
      {"x1 ! 2", "4: found '!', but " + behind + "the end"},
      {"2x1", "2: found 'x1', but " + behind + "the end; a product is written with *"},
      {"(x1 + 1)(x2)", "9: found '(', but " + behind + "the end; a product is written with *"},
      {"sin(x1 x2)", "8: found 'x2', but " + behind + "')'; a product is written with *"},
      {"x1 \xe2\x88\x92 2", "4: found '\xe2\x88\x92', but " + behind + "the end"},
      {"x1\xff", "3: found '\\xff', but " + behind + "the end"},
      {std::string("x1\0", 3), "3: found '\\x00', but " + behind + "the end"},
      {"1.2.3", "4: found '.', but " + behind + "the end"},
      {"sin(x1, x2)", "7: found ',', but " + behind + "')'"},
      {"x1)", "3: found ')', but no '(' is open"},
      {"((x1)", "6: found the end, but ')' is expected here for the '(' at character 1"},
      {"2*sin x1", "7: found 'x1', but '(' is expected here, after sin"},
      {"sine(x1)", "1: no function or constant named 'sine'; did you mean 'sin'? " + choices},
      {"1 + Pi", "5: no function or constant named 'Pi'; did you mean 'pi'? " + choices},
      {"x1 + bessel(x1)", "6: no function or constant named 'bessel'; " + choices},
      {"1 + x", "5: found 'x', but variables are x1, x2, ..."},
      {"y^2", "1: found 'y', but variables are x1, x2, ..."},
      {"x0", "1: found 'x0', but variables are x1, x2, ..."},
      {"x01", "1: found 'x01', but variables are x1, x2, ..."},
      {"X2", "1: found 'X2', but variables are x1, x2, ..."},
      {"x1 + x1001", "6: found 'x1001', but the last variable is x1000"},
      {"x99999999999999999999999", "1: found 'x99999999999999999999999', but the last variable is x1000"},
      {"2*1e999", "3: the number '1e999' is too large or too small"},
  };
  for (const auto& [text, expected] : table) {
    EXPECT_EQ(message([&] { Expression::parse(text); }), "f, character " + expected) << text;
  }
  EXPECT_EQ(message([] { Expression::parse("x", "goal"); }), "goal, character 1: found 'x', but variables are x1, x2, ...");
}

TEST(Expression, SizeIsLimited) {
  const std::string deep = "brackets, powers and signs are nested more than 256 deep";
  const auto repeated = [](std::string_view part, std::size_t times) {
    std::string text;
    for (std::size_t i = 0; i < times; ++i) text += part;
    return text;
  };
  EXPECT_EQ(value(repeated("(", 255) + "7" + repeated(")", 255)), 7);
  EXPECT_EQ(message([&] { Expression::parse(repeated("(", 60000)); }), "f, character 257: " + deep);
  EXPECT_EQ(message([&] { Expression::parse(repeated("-", 60000)); }), "f, character 257: " + deep);
  EXPECT_EQ(message([&] { Expression::parse(repeated("x1^", 20000)); }), "f, character 769: " + deep);
  EXPECT_EQ(message([&] { Expression::parse(repeated("sin(", 10000)); }), "f, character 1025: " + deep);
  EXPECT_EQ(message([&] { Expression::parse(repeated("(", 100000)); }),
            "f, character 65537: the formula has 100000 characters; at most 65536");
  const std::string longest = "x1" + repeated("+x1", 21844);
  EXPECT_EQ(value(longest, {1}), 21845);  // a long sum is not a deep one
}

// Formulas of any length in one thread share the scratch memory.
TEST(Expression, ALongFormulaDoesNotDisturbAShortOne) {
  const Expression small = Expression::parse("x1*x2"),
                   large = Expression::parse("x1 + x2*sin(x1)^2 - exp(x2)*x1/x2 + x1*x2*x1*x2");
  Point g(2);
  small.gradient(Point{2, 3}, g);
  large.gradient(Point{5, 7}, g);
  EXPECT_EQ(small.gradient(Point{2, 3}, g), 6);
  EXPECT_EQ(g, (Point{3, 2}));
}

}  // namespace expression_test
}  // namespace cautious::lab
