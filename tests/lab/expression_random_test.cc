// Random formulas against an evaluation that knows nothing of the parser, and its central differences; random bytes.
#include <array>
#include <cmath>
#include <functional>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lab/numbers.h"
#include "lab/problem/expression.h"

namespace cautious::lab {
namespace expression_random_test {

// A random formula: its text with no more brackets than needed (and now and then one more), and what it means.
struct Formula {
  using Function = std::function<long double(std::span<const long double>)>;
  std::string text;
  int binding = 0;  // 1 sum, 2 product, 3 sign, 4 power, 5 operand
  Function f;
};

class Generator {
 public:
  Generator(std::uint64_t seed, std::size_t variables) : random_(seed), variables_(variables) {}

  Formula formula(int depth) {
    if (depth == 0 || random_.below(8) == 0) return leaf();
    Formula a = formula(depth - 1);
    switch (random_.below(8)) {
      case 0:
      case 1:
        return function(std::move(a));
      case 2:
        return {"-" + within(a, 3), 3, [f = a.f](auto x) { return -f(x); }};
      case 3: {
        const std::size_t exponent = random_.below(4);
        return {fmt::format("{}^{}", within(a, 5), exponent), 4,
                [f = a.f, exponent](auto x) { return std::pow(f(x), static_cast<long double>(exponent)); }};
      }
      default:
        return binary(std::move(a), formula(depth - 1));
    }
  }

 private:
  Formula leaf() {
    if (random_.below(3) == 0) {
      const double number = static_cast<double>(random_.below(40)) / 8;
      return {fmt::format("{}", number), 5, [number](auto) { return number; }};
    }
    const std::size_t i = random_.below(variables_);
    return {fmt::format("x{}", i + 1), 5, [i](auto x) { return x[i]; }};
  }

  // Arguments are kept where the function is smooth and of moderate size.
  Formula function(Formula a) {
    const std::string t = a.text;
    const auto f = a.f;
    switch (random_.below(11)) {
      case 0:
        return {fmt::format("sin({})", t), 5, [f](auto x) { return std::sin(f(x)); }};
      case 1:
        return {fmt::format("cos({})", t), 5, [f](auto x) { return std::cos(f(x)); }};
      case 2:
        return {fmt::format("tan(0.5*sin({}))", t), 5, [f](auto x) { return std::tan(0.5L * std::sin(f(x))); }};
      case 3:
        return {fmt::format("atan({})", t), 5, [f](auto x) { return std::atan(f(x)); }};
      case 4:
        return {fmt::format("tanh({})", t), 5, [f](auto x) { return std::tanh(f(x)); }};
      case 5:
        return {fmt::format("exp(sin({}))", t), 5, [f](auto x) { return std::exp(std::sin(f(x))); }};
      case 6:
        return {fmt::format("log(1.5 + ({})^2)", t), 5, [f](auto x) { return std::log(1.5L + f(x) * f(x)); }};
      case 7:
        return {fmt::format("sqrt(1 + ({})^2)", t), 5, [f](auto x) { return std::sqrt(1 + f(x) * f(x)); }};
      case 8:
        return {fmt::format("cosh(cos({}))", t), 5, [f](auto x) { return std::cosh(std::cos(f(x))); }};
      case 9:
        return {fmt::format("sinh(atan({}))", t), 5, [f](auto x) { return std::sinh(std::atan(f(x))); }};
      default:
        return {fmt::format("abs(3 + sin({}))", t), 5, [f](auto x) { return std::abs(3 + std::sin(f(x))); }};
    }
  }

  Formula binary(Formula a, Formula b) {
    const auto f = a.f, g = b.f;
    switch (random_.below(5)) {
      case 0:
        return {fmt::format("{} + {}", within(a, 1), within(b, 2)), 1, [f, g](auto x) { return f(x) + g(x); }};
      case 1:
        return {fmt::format("{}-{}", within(a, 1), within(b, 2)), 1, [f, g](auto x) { return f(x) - g(x); }};
      case 2:
        return {fmt::format("{}*{}", within(a, 2), within(b, 3)), 2, [f, g](auto x) { return f(x) * g(x); }};
      case 3:
        return {fmt::format("{} / (2 + ({})^2)", within(a, 2), b.text), 2, [f, g](auto x) { return f(x) / (2 + g(x) * g(x)); }};
      default:
        return {fmt::format("exp(tanh({}))^sin({})", a.text, b.text), 4,
                [f, g](auto x) { return std::pow(std::exp(std::tanh(f(x))), std::sin(g(x))); }};
    }
  }

  std::string within(const Formula& part, int binding) {
    return part.binding < binding || random_.below(10) == 0 ? "(" + part.text + ")" : part.text;
  }

  Random random_;
  std::size_t variables_;
};

// Central difference of fourth order of a function of one number.
template <class Number, class Function>
Number slope(const Function& f, Number h) {
  return (8 * (f(h) - f(-h)) - (f(2 * h) - f(-2 * h))) / (12 * h);
}

TEST(RandomExpression, AgreesWithCentralDifferences) {
  constexpr std::size_t kVariables = 3;
  Random random(7);
  int compared = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const Formula formula = Generator(seed, kVariables).formula(4);
    const Expression expression = Expression::parse(formula.text + " + 0*x3");
    Point x(kVariables), g(kVariables);
    for (double& c : x) c = random.uniform(-1.5, 1.5);
    const std::vector<long double> exact(x.begin(), x.end());
    const auto f = static_cast<double>(formula.f(exact));
    if (std::abs(f) > 1e4) continue;  // products of powers; differences say little there
    ++compared;
    EXPECT_NEAR(expression.gradient(x, g), f, 1e-12 * (1 + std::abs(f))) << formula.text;
    Matrix h;
    expression.hessian(x, h);
    const double scale = 1 + std::abs(f) + as_vector(PointView(g)).cwiseAbs().maxCoeff();
    for (std::size_t i = 0; i < kVariables; ++i) {
      const auto along = [&](long double t) {
        std::vector<long double> moved = exact;
        moved[i] += t;
        return formula.f(moved);
      };
      EXPECT_NEAR(g[i], static_cast<double>(slope(along, 2e-4L)), 1e-8 * scale) << formula.text;
      for (std::size_t j = 0; j < kVariables; ++j) {
        const auto gradient_along = [&](double t) {
          Point moved = x, there(kVariables);
          moved[i] += t;
          expression.gradient(moved, there);
          return there[j];
        };
        const double second = h(static_cast<Eigen::Index>(i), static_cast<Eigen::Index>(j));
        EXPECT_NEAR(second, slope(gradient_along, 2e-4), 1e-7 * (scale + h.cwiseAbs().maxCoeff())) << formula.text;
      }
    }
  }
  EXPECT_GT(compared, 300);
}

// True if it parses; whatever it is, evaluating it ends, and an error is one line about a character that there is.
bool survives(const std::string& text) {
  try {
    const Expression f = Expression::parse(text);
    Point x(f.variables(), 0.5), g(f.variables());
    const double there = f.gradient(x, g);
    EXPECT_TRUE(there == f.value(x) || std::isnan(there)) << text;
    Matrix h;
    if (f.variables() <= 20) f.hessian(x, h);
    return true;
  } catch (const ExpressionError& error) {
    EXPECT_GE(error.character(), 1u);
    EXPECT_LE(error.character(), text.size() + 1);
    EXPECT_EQ(std::string_view(error.what()).find('\n'), std::string_view::npos);
    EXPECT_EQ(error.what(), fmt::format("f, character {}: {}", error.character(), error.words()));
    return false;
  }
}

TEST(RandomExpression, IsAFormulaOrAnError) {
  constexpr std::array<std::string_view, 22> kPieces{"x1", "x2", "x3", "1", "2.5", ".5e2", "pi",   "+",    "-", "*", "/",
                                                     "^",  "(",  "(",  ")", ")",   "sin(", "log(", "abs(", " ", "0", "e"};
  Random random(11);
  int formulas = 0, errors = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    const std::size_t length = random.below(16);
    for (std::size_t i = 0; i < length; ++i) {
      if (round % 4 == 0) {
        text += static_cast<char>(random.below(256));
      } else {
        text += kPieces[random.below(kPieces.size())];
      }
    }
    if (round % 4 == 1) {  // a formula with one wrong byte
      text = Generator(static_cast<std::uint64_t>(round), 3).formula(3).text;
      text[random.below(text.size())] = static_cast<char>(random.below(256));
    }
    ++(survives(text) ? formulas : errors);
  }
  EXPECT_GT(formulas, 300);
  EXPECT_GT(errors, 5000);
}

}  // namespace expression_random_test
}  // namespace cautious::lab
