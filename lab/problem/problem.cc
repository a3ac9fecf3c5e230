// Problems from files, and what is checked of a point.
#include "lab/problem/problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"
#include "base/toml.h"
#include "lab/problem/expression.h"

namespace cautious::lab {
namespace {

std::size_t first_infinite(PointView numbers) {
  const auto found = std::ranges::find_if_not(numbers, [](double c) { return std::isfinite(c); });
  return static_cast<std::size_t>(found - numbers.begin());
}

// A NaN may have a sign, which says nothing.
std::string shown(double number) { return std::isnan(number) ? "nan" : base::to_text(number); }

}  // namespace

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

namespace {

using base::TomlValue;

constexpr std::array<std::string_view, 5> kKeys{"f", "start", "title", "least", "view"};
constexpr Range kNumbers{-1e100, 1e100, false, false};  // far from where sums overflow
constexpr std::string_view kNeeds = "a problem needs f = \"formula of x1, x2, ...\" and start = [one number per variable]";

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

class ProblemReader {
 public:
  explicit ProblemReader(const std::filesystem::path& file)
      : table_(base::read_toml(file, {.what = "the problem", .most = 1 << 20})) {
    problem_.file = file.string();
    problem_.name = problem_.title = file.stem().string();
  }

  Problem read() {
    check_keys();
    read_formula();
    read_start();
    if (const TomlValue* title = table_.get("title")) read_title(*title);
    if (const TomlValue* least = table_.get("least")) read_least(*least);
    read_view();
    return std::move(problem_);
  }

 private:
  void check_keys() const {
    for (const base::TomlEntry& entry : table_.entries) {
      if (std::ranges::find(kKeys, entry.key) != kKeys.end()) continue;
      throw Error(Fault::usage, base::unknown("key of a problem", entry.key, kKeys),
                  {.where = fmt::format("{}:{}:{}", problem_.file, entry.at.line, entry.at.column)});
    }
  }

  const TomlValue& needed(std::string_view key) const {
    if (const TomlValue* value = table_.get(key)) return *value;
    throw Error(Fault::usage, fmt::format("{} is missing; {}", key, kNeeds), {.where = problem_.file});
  }

  static void require(const TomlValue& value, std::string_view what, bool is_right, std::string_view wanted) {
    if (!is_right) value.refuse_at_column(fmt::format("{} is {}, not {}", what, value.described(), wanted));
  }

  void read_formula() {
    const TomlValue& value = needed("f");
    require(value, "f", value.kind == TomlValue::Kind::string, "a string with a formula");
    try {
      formula_ = std::make_shared<const Expression>(Expression::parse(value.text));
    } catch (const ExpressionError& error) {
      refuse_formula(value, error);
    }
    if (formula_->variables() == 0) value.refuse_at_column("f has no variable; variables are x1, x2, ...");
    problem_.formula = value.text;
    std::ranges::replace_if(
        problem_.formula,
        [](char c) {
          return has_control_characters({&c, 1});
        },
        ' ');
    problem_.value = [formula = formula_](PointView x) { return formula->value(x); };
    problem_.gradient = [formula = formula_](PointView x, std::span<double> g) { formula->gradient(x, g); };
    problem_.hessian = [formula = formula_](PointView x, Matrix& h) { formula->hessian(x, h); };
  }

  // In a string on one line, without escapes, the file's column of a character is known; otherwise its position in f is given.
  [[noreturn]] static void refuse_formula(const TomlValue& value, const ExpressionError& error) {
    const auto characters =
        std::ranges::count_if(value.text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
    const bool plain = value.end.line == value.begin.line && value.end.column == value.begin.column + characters + 2;  // quotes
    if (!plain) value.refuse_at_column(error.what());
    value.refuse_at_column(fmt::format("f: {}", error.words()), static_cast<unsigned>(error.character()));
  }

  static double number_in(const TomlValue& value, std::string_view what) {
    require(value, what, value.is_number(), "a number");
    if (kNumbers.contains(value.number)) return value.number;
    value.refuse_at_column(fmt::format("{} is {}; valid: {}", what, value.described(), to_string(kNumbers)));
  }

  void read_start() {
    const TomlValue& value = needed("start");
    require(value, "start", value.kind == TomlValue::Kind::array, "an array of numbers, one per variable of f");
    for (const TomlValue& item : value.items) {
      problem_.start.push_back(number_in(item, fmt::format("number {} of start", problem_.start.size() + 1)));
    }
    const std::size_t variables = formula_->variables();
    if (problem_.size() != variables) {
      value.refuse_at_column(fmt::format("the length of start is {}, but the last variable that f uses is x{}; valid: {}",
                                         problem_.size(), variables, variables));
    }
    problem_.tensors = {{"x", {static_cast<std::int64_t>(variables)}}};
    try {
      check_point(problem_, "start", problem_.start);
    } catch (const Error& error) {
      value.refuse_at_column(error.what());
    }
  }

  void read_title(const TomlValue& value) {
    require(value, "title", value.kind == TomlValue::Kind::string, "a string");
    problem_.title = value.text;
    const bool bad = problem_.title.empty() || has_control_characters(problem_.title);
    if (bad) value.refuse_at_column(fmt::format("title is {}; valid: one line of text", value.described()));
  }

  void read_least(const TomlValue& value) {
    problem_.least = number_in(value, "least");
    const double f = problem_.value(problem_.start);
    if (*problem_.least <= f) return;
    value.refuse_at_column(fmt::format("least is {}, but f at start is {}, which is less", value.described(), f));
  }

  void read_view() {
    const TomlValue* value = table_.get("view");
    if (!value) return view_of_start();
    constexpr std::string_view kWanted = "an array of two numbers, the lower first";
    require(*value, "view", value->kind == TomlValue::Kind::array, kWanted);
    if (value->items.size() != 2) {
      value->refuse_at_column(fmt::format("the length of view is {}; valid: {}", value->items.size(), kWanted));
    }
    problem_.view_low = number_in(value->items[0], "number 1 of view");
    problem_.view_high = number_in(value->items[1], "number 2 of view");
    if (problem_.view_low < problem_.view_high) return;
    value->refuse_at_column(fmt::format("view is from {} to {}; valid: {}", problem_.view_low, problem_.view_high, kWanted));
  }

  void view_of_start() {
    const auto [least, largest] = std::ranges::minmax(problem_.start);
    const double low = std::min(0.0, least), high = std::max(0.0, largest);
    const double margin = std::max(1.0, (high - low) / 4);
    problem_.view_low = low - margin;
    problem_.view_high = high + margin;
  }

  TomlValue table_;
  Problem problem_;
  std::shared_ptr<const Expression> formula_;
};

}  // namespace

Problem read_problem(const std::filesystem::path& file) { return ProblemReader(file).read(); }

}  // namespace cautious::lab
