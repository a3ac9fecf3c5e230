// Problems from files: what is read, and what is refused, in whole lines with the place in the file.
#include "lab/problem/problem.h"

#include <cmath>

#include <fmt/format.h>

#include "run_fixture.h"
#include "usage_message.h"

namespace cautious::lab {
namespace problem_file_test {

class ProblemFile : public RunFiles {
 protected:
  Problem read(const std::string& text) const {
    store(directory_ / "saddle.toml", text);
    return read_problem(directory_ / "saddle.toml");
  }

  // The Error's line, with the directory taken away.
  std::string refused(const std::string& text) const {
    std::string line = message([&] { read(text); });
    EXPECT_EQ(line.find('\n'), std::string::npos) << line;
    const std::string folder = directory_.string() + "/";
    if (line.starts_with(folder)) line.erase(0, folder.size());
    return line;
  }
};

constexpr std::string_view kOperand = "an operand is expected here: a number, pi, x1, x2, ..., a function or '('";
constexpr std::string_view kNeeds = "a problem needs f = \"formula of x1, x2, ...\" and start = [one number per variable]";

TEST_F(ProblemFile, EverythingIsRead) {
  const Problem problem = read(R"(# a comment
f     = "(x1*x2 - 4)^2 + 0.1*(x3 - x1)^2"
start = [5, 0.5, 2.0]
title = "Sättel"
least = 0
view = [-1, 6.5]
)");
  EXPECT_EQ(problem.name, "saddle");
  EXPECT_EQ(problem.title, "Sättel");
  EXPECT_EQ(problem.formula, "(x1*x2 - 4)^2 + 0.1*(x3 - x1)^2");
  EXPECT_EQ(problem.start, (Point{5, 0.5, 2}));
  ASSERT_EQ(problem.tensors.size(), 1u);
  EXPECT_EQ(problem.tensors[0].name, "x");
  EXPECT_EQ(problem.tensors[0].shape, std::vector<std::int64_t>{3});
  EXPECT_EQ(problem.least, 0);
  EXPECT_EQ(problem.view_low, -1);
  EXPECT_EQ(problem.view_high, 6.5);
  const Point x{1, 2, 4};  // f = 4 + 0.9, by hand: fx1 = 2 (-2) 2 - 0.2 * 3, fx2 = 2 (-2) 1, fx3 = 0.2 * 3
  EXPECT_DOUBLE_EQ(problem.value(x), 4.9);
  const Point g = gradient(problem, x);
  EXPECT_DOUBLE_EQ(g[0], -8.6);
  EXPECT_DOUBLE_EQ(g[1], -4);
  EXPECT_DOUBLE_EQ(g[2], 0.6);
  const Matrix h = hessian(problem, x);
  EXPECT_DOUBLE_EQ(h(0, 0), 8.2);
  EXPECT_DOUBLE_EQ(h(0, 1), 0);  // 2 (2 x1 x2 - 4)
  EXPECT_DOUBLE_EQ(h(0, 2), -0.2);
  EXPECT_DOUBLE_EQ(h(1, 1), 2);
}

TEST_F(ProblemFile, TitleLeastAndViewMayBeLeftOut) {
  const Problem problem = read("f = '''x1^2 +\n x2^2'''\nstart = [-4, 8]\n");
  EXPECT_EQ(problem.title, "saddle");
  EXPECT_EQ(problem.formula, "x1^2 +  x2^2");
  EXPECT_FALSE(problem.least.has_value());
  EXPECT_EQ(problem.view_low, -7);
  EXPECT_EQ(problem.view_high, 11);
}

TEST_F(ProblemFile, UnreadableFiles) {
  EXPECT_EQ(message([] { read_problem("no/such.toml"); }), "no/such.toml: cannot read the problem: No such file or directory");
  EXPECT_EQ(message([&] { read_problem(directory_); }), directory_.string() + ": cannot read the problem: is a directory");
  EXPECT_EQ(message([] { read_problem("/dev/zero"); }), "/dev/zero: cannot read the problem: not a regular file");
  EXPECT_EQ(refused(""), fmt::format("saddle.toml: f is missing; {}", kNeeds));
  EXPECT_EQ(refused("f = 'x1'\n"), fmt::format("saddle.toml: start is missing; {}", kNeeds));
  EXPECT_TRUE(refused("f = \n").starts_with("saddle.toml:1:5: not TOML: ")) << refused("f = \n");
  EXPECT_TRUE(refused("f = 'x1'\ntitle = 'a\xff'\n").starts_with("saddle.toml:2:")) << refused("f = 'x1'\ntitle = 'a\xff'\n");
  EXPECT_TRUE(refused(std::string("f = 'x1\0'", 10)).starts_with("saddle.toml:1:"));
  store(directory_ / "secret.toml", "f = 'x1'");
  std::filesystem::permissions(directory_ / "secret.toml", std::filesystem::perms::none);
  const NotRoot nobody;
  EXPECT_EQ(message([&] { read_problem(directory_ / "secret.toml"); }),
            (directory_ / "secret.toml").string() + ": cannot read the problem: Permission denied");
}

TEST_F(ProblemFile, KeysAndTypes) {
  EXPECT_EQ(refused("f = 'x1'\nstat = [1]\n"),
            "saddle.toml:2:1: no key of a problem named 'stat'; did you mean 'start'? choices: f, start, title, least, view");
  EXPECT_EQ(refused("start = [1]\n[f]\n"), "saddle.toml:2:1: f is a table, not a string with a formula");
  EXPECT_EQ(refused("f = 3\nstart = [1]\n"), "saddle.toml:1:5: f is 3, not a string with a formula");
  EXPECT_EQ(refused("f = 'x1'\nstart = 1\n"), "saddle.toml:2:9: start is 1, not an array of numbers, one per variable of f");
  EXPECT_EQ(refused("f = 'x1'\nstart = ['1']\n"), "saddle.toml:2:10: number 1 of start is the string '1', not a number");
  EXPECT_EQ(refused("f = 'x1'\nstart = [1]\ntitle = 1979-05-27\n"), "saddle.toml:3:9: title is a date or a time, not a string");
  EXPECT_EQ(refused("f = 'x1'\nstart = [1]\ntitle = \"a\\nb\"\n"),
            "saddle.toml:3:9: title is the string 'a\\x0ab'; valid: one line of text");
  EXPECT_EQ(refused("f = 'x1'\nstart = [1]\nleast = true\n"), "saddle.toml:3:9: least is true, not a number");
  EXPECT_EQ(refused("f = 'x1'\nstart = [1]\nleast = 2\n"), "saddle.toml:3:9: least is 2, but f at start is 1, which is less");
  EXPECT_EQ(refused("f = 'x1'\nstart = [1]\nview = [1]\n"),
            "saddle.toml:3:8: the length of view is 1; valid: an array of two numbers, the lower first");
  EXPECT_EQ(refused("f = 'x1'\nstart = [1]\nview = [2, 1.5]\n"),
            "saddle.toml:3:8: view is from 2 to 1.5; valid: an array of two numbers, the lower first");
  EXPECT_EQ(refused("f = 'x1'\nstart = [1]\nview = 3\n"),
            "saddle.toml:3:8: view is 3, not an array of two numbers, the lower first");
}

// The column is that of the character in the file wherever the string shows it as it is.
TEST_F(ProblemFile, FormulaErrorsPointAtTheCharacter) {
  EXPECT_EQ(refused("start = [1]\nf = \"x1 + * 2\"\n"), fmt::format("saddle.toml:2:11: f: found '*', but {}", kOperand));
  EXPECT_EQ(refused("  f='x1 + * 2'\n"), fmt::format("saddle.toml:1:11: f: found '*', but {}", kOperand));
  EXPECT_EQ(refused("f = \"\"\n"), fmt::format("saddle.toml:1:6: f: found the end, but {}", kOperand));
  EXPECT_EQ(refused("f = 'x1 − é'\n"), "saddle.toml:1:9: f: found '−', but an operator is expected here: + - * / ^ or the end");
  EXPECT_EQ(refused("f = \"\"\"\nx1 +\n * 2\"\"\"\n"),
            fmt::format("saddle.toml:1:5: f, character 7: found '*', but {}", kOperand));
  EXPECT_EQ(refused("f = \"x1\\t+ * 2\"\n"), fmt::format("saddle.toml:1:5: f, character 6: found '*', but {}", kOperand));
  EXPECT_EQ(refused("f = \"\\t* é\"\n"), fmt::format("saddle.toml:1:5: f, character 2: found '*', but {}", kOperand));
  EXPECT_EQ(refused("f = 'x1 + y'\n"), "saddle.toml:1:11: f: found 'y', but variables are x1, x2, ...");
  EXPECT_EQ(refused("f = '1 + 2'\nstart = []\n"), "saddle.toml:1:5: f has no variable; variables are x1, x2, ...");
}

TEST_F(ProblemFile, StartMustFitTheFormula) {
  EXPECT_EQ(refused("f = 'x1*x3'\nstart = [1, 2]\n"),
            "saddle.toml:2:9: the length of start is 2, but the last variable that f uses is x3; valid: 3");
  EXPECT_EQ(refused("f = 'x1*x2'\nstart = [1, 2, 3]\n"),
            "saddle.toml:2:9: the length of start is 3, but the last variable that f uses is x2; valid: 2");
  EXPECT_EQ(refused("f = 'x1*x2'\nstart = [1,\n  nan]\n"),
            "saddle.toml:3:3: number 2 of start is nan; valid: [-1e+100, 1e+100]");
  EXPECT_EQ(refused("f = 'x1*x2'\nstart = [-inf, 1]\n"),
            "saddle.toml:2:10: number 1 of start is -inf; valid: [-1e+100, 1e+100]");
  EXPECT_EQ(refused("f = 'log(x1)'\nstart = [-1]\n"),
            "saddle.toml:2:9: start: f is nan there; valid: a point where f and its derivatives are finite");
  EXPECT_EQ(
      refused("f = 'x1 + sqrt(x2)'\nstart = [1, 0]\n"),
      "saddle.toml:2:9: start: the derivative of f by x2 is inf there; valid: a point where f and its derivatives are finite");
}

}  // namespace problem_file_test
}  // namespace cautious::lab
