#include "lab/problem/problem_file.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <toml++/toml.h>

#include <cautious/error.h>

#include "base/text.h"
#include "lab/problem/expression.h"

namespace cautious::lab {
namespace {

constexpr std::array<std::string_view, 5> kKeys{"f", "start", "title", "least", "view"};
constexpr Range kNumbers{-1e100, 1e100, false, false};  // far from where sums overflow
constexpr std::string_view kNeeds = "a problem needs f = \"formula of x1, x2, ...\" and start = [one number per variable]";

std::string content_of(const std::filesystem::path& file) {
  constexpr std::size_t kLargest = 1 << 20;
  const auto refuse_file = [&](const std::string& why) {
    throw Error(Fault::usage, fmt::format("{}: cannot read the problem: {}", file.string(), why));
  };
  std::error_code error;
  const auto status = std::filesystem::status(file, error);
  if (std::filesystem::exists(status) && !std::filesystem::is_regular_file(status)) refuse_file("it is not a regular file");
  std::ifstream in(file, std::ios::binary);
  if (!in) refuse_file(std::generic_category().message(errno));
  std::string text(kLargest + 1, '\0');
  in.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (in.bad()) refuse_file(std::generic_category().message(errno));
  text.resize(static_cast<std::size_t>(in.gcount()));
  if (text.size() > kLargest) refuse_file(fmt::format("more than {} bytes", kLargest));
  return text;
}

std::string described(const toml::node& node) {
  if (const auto* string = node.as_string()) return "the string " + base::in_quotes(string->get());
  if (const auto* whole = node.as_integer()) return fmt::format("{}", whole->get());
  if (const auto* number = node.as_floating_point()) return base::to_text(number->get());
  if (const auto* boolean = node.as_boolean()) return boolean->get() ? "true" : "false";
  return node.is_table() ? "a table" : node.is_array() ? "an array" : "a date or a time";
}

bool has_control_characters(std::string_view text) {
  return std::ranges::any_of(text, [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; });
}

class Reader {
 public:
  Reader(std::filesystem::path file, const toml::table& table) : file_(std::move(file)), table_(table) {}

  Problem read() {
    check_keys();
    problem_.file = file_.string();
    problem_.name = problem_.title = file_.stem().string();
    read_formula();
    read_start();
    if (const toml::node* title = table_.get("title")) read_title(*title);
    if (const toml::node* least = table_.get("least")) read_least(*least);
    read_view();
    return std::move(problem_);
  }

 private:
  [[noreturn]] void refuse(const toml::source_position& at, std::string_view words) const {
    throw Error(Fault::usage, fmt::format("{}:{}:{}: {}", file_.string(), at.line, at.column, words));
  }
  [[noreturn]] void refuse(const toml::node& at, std::string_view words) const { refuse(at.source().begin, words); }

  void check_keys() const {
    for (const auto& [key, node] : table_) {
      if (std::ranges::find(kKeys, key.str()) != kKeys.end()) continue;
      refuse(key.source().begin, base::unknown("key of a problem", key.str(), kKeys));
    }
  }

  const toml::node& needed(std::string_view key) const {
    if (const toml::node* node = table_.get(key)) return *node;
    throw Error(Fault::usage, fmt::format("{}: {} is missing; {}", file_.string(), key, kNeeds));
  }

  void read_formula() {
    const toml::node& node = needed("f");
    if (!node.is_string()) refuse(node, fmt::format("f is {}, not a string with a formula", described(node)));
    const std::string& text = node.as_string()->get();
    try {
      formula_ = std::make_shared<const Expression>(Expression::parse(text));
    } catch (const ExpressionError& error) {
      refuse_formula(node, text, error);
    }
    if (formula_->variables() == 0) refuse(node, "f has no variable; variables are x1, x2, ...");
    problem_.formula = text;
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

  // In a string on one line, without escapes, the file's column of a character is known; otherwise its place in f is told.
  [[noreturn]] void refuse_formula(const toml::node& node, std::string_view text, const ExpressionError& error) const {
    toml::source_position at = node.source().begin;
    const toml::source_position end = node.source().end;
    const auto characters = std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; });
    const bool plain = end.line == at.line && end.column == at.column + characters + 2;  // and the quotes
    if (!plain) refuse(at, error.what());
    at.column += static_cast<toml::source_index>(error.character());
    refuse(at, fmt::format("f: {}", error.words()));
  }

  double number_in(const toml::node& node, std::string_view what) const {
    if (!node.is_number()) refuse(node, fmt::format("{} is {}, not a number", what, described(node)));
    const double number = *node.value<double>();
    if (!kNumbers.contains(number))
      refuse(node, fmt::format("{} is {}; valid: {}", what, described(node), to_string(kNumbers)));
    return number;
  }

  const toml::array& array(const toml::node& node, std::string_view what, std::string_view wanted) const {
    if (!node.is_array()) refuse(node, fmt::format("{} is {}, not {}", what, described(node), wanted));
    return *node.as_array();
  }

  void read_start() {
    const toml::node& node = needed("start");
    const toml::array& numbers = array(node, "start", "an array of numbers, one per variable of f");
    for (const toml::node& item : numbers) {
      problem_.start.push_back(number_in(item, fmt::format("number {} of start", problem_.start.size() + 1)));
    }
    const std::size_t variables = formula_->variables();
    if (problem_.size() != variables) {
      refuse(node, fmt::format("the length of start is {}, but the last variable that f uses is x{}; valid: {}",
                               problem_.size(), variables, variables));
    }
    problem_.tensors = {{"x", {static_cast<std::int64_t>(variables)}}};
    try {
      check_point(problem_, "start", problem_.start);
    } catch (const Error& error) {
      refuse(node, error.what());
    }
  }

  void read_title(const toml::node& node) {
    if (!node.is_string()) refuse(node, fmt::format("title is {}, not a string", described(node)));
    problem_.title = node.as_string()->get();
    const bool bad = problem_.title.empty() || has_control_characters(problem_.title);
    if (bad) refuse(node, fmt::format("title is {}; valid: one line of text", described(node)));
  }

  void read_least(const toml::node& node) {
    problem_.least = number_in(node, "least");
    const double f = problem_.value(problem_.start);
    if (*problem_.least > f) refuse(node, fmt::format("least is {}, but f at start is {}, which is less", described(node), f));
  }

  void read_view() {
    const toml::node* node = table_.get("view");
    if (!node) return view_of_start();
    constexpr std::string_view kWanted = "an array of two numbers, the lower first";
    const toml::array& ends = array(*node, "view", kWanted);
    if (ends.size() != 2) refuse(*node, fmt::format("the length of view is {}; valid: {}", ends.size(), kWanted));
    problem_.view_low = number_in(ends[0], "number 1 of view");
    problem_.view_high = number_in(ends[1], "number 2 of view");
    if (problem_.view_low < problem_.view_high) return;
    refuse(*node, fmt::format("view is from {} to {}; valid: {}", problem_.view_low, problem_.view_high, kWanted));
  }

  void view_of_start() {
    const auto [least, largest] = std::ranges::minmax(problem_.start);
    const double low = std::min(0.0, least), high = std::max(0.0, largest);
    const double margin = std::max(1.0, (high - low) / 4);
    problem_.view_low = low - margin;
    problem_.view_high = high + margin;
  }

  std::filesystem::path file_;
  const toml::table& table_;
  Problem problem_;
  std::shared_ptr<const Expression> formula_;
};

}  // namespace

Problem read_problem(const std::filesystem::path& file) {
  const std::string text = content_of(file), name = file.string();
  try {
    const toml::table table = toml::parse(text, name);
    return Reader(file, table).read();
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw Error(Fault::usage,
                fmt::format("{}:{}:{}: not TOML: {}", name, at.line, at.column, base::in_quotes(error.description())));
  }
}

}  // namespace cautious::lab
