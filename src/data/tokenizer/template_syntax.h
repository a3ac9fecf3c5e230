// A chat template as a tree: what Jinja calls expressions and statements.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "data/tokenizer/template_values.h"

namespace cautious::data {

struct TemplateToken {
  // text: what stands outside of braces; the brackets {% %} {{ }} are signs, and so are operators.
  enum class Kind { text, sign, name, literal, end };
  Kind kind;
  std::string text;         // a sign's, a name's
  TemplateValue literal{};  // of a text in quotes or a number
  int line = 1;
};

struct TemplateExpression {
  enum class Kind {
    constant,
    name,
    list,
    dict,         // keys and values in turn
    attribute,    // of parts[0]
    item,         // parts[0][parts[1]]
    slice,        // parts[0][parts[1]:parts[2]:parts[3]], undefined where left out
    call,         // parts[0](the others)
    filter,       // parts[0]|name(the others)
    test,         // parts[0] is name(the others)
    negative,     // -parts[0]
    inversion,    // not
    conjunction,  // and
    disjunction,  // or
    calculation,  // name is the operator
    comparison,   // a chain: parts[0] names[0] parts[1] names[1] ...
    condition,    // parts[0] if parts[1] else parts[2]
  };
  Kind kind;
  int line;
  std::string name{};
  std::vector<TemplateExpression> parts{};
  std::vector<std::string> names{};  // of the last arguments of a call, filter or test; operators of a comparison
  TemplateValue constant{};
  int depth = 1;
};

struct TemplateStatement {
  using Body = std::vector<TemplateStatement>;
  enum class Kind {
    text,
    output,
    branches,   // if: a body per condition, and one more for else
    loop,       // for names in expressions[0], if expressions[1]: bodies[0]; else: bodies[1]
    set,        // names, or text.names[0] of a namespace
    set_block,  // names[0] to what bodies[0] writes
    macro,      // text(names); expressions are the defaults of the last names
    leave,      // break
    next,       // continue
    block,      // bodies[0], as it is
  };
  Kind kind;
  int line;
  std::string text{};
  std::vector<std::string> names{};
  std::vector<TemplateExpression> expressions{};
  std::vector<Body> bodies{};
};

// Errors are of Fault::data, "<where>: line 3: ...".
std::vector<TemplateToken> template_tokens(std::string_view text, const std::string& where);

// The tokens, and how far the parser has come.
class TemplateTokens {
 public:
  TemplateTokens(std::vector<TemplateToken> tokens, std::string where) : tokens_(std::move(tokens)), where_(std::move(where)) {}

  const TemplateToken& peek() const { return tokens_[at_]; }
  bool is(std::string_view sign) const { return peek().kind == TemplateToken::Kind::sign && peek().text == sign; }
  bool is_name(std::string_view name) const { return peek().kind == TemplateToken::Kind::name && peek().text == name; }
  TemplateToken take();
  bool skip(std::string_view sign);
  bool skip_name(std::string_view name);
  void expect(std::string_view sign);
  std::string expect_name();
  [[noreturn]] void fail(const std::string& what) const;

  // Counts how deep the parser is within itself.
  class Level {
   public:
    explicit Level(TemplateTokens& tokens) : tokens_(tokens) {
      if (++tokens_.depth_ > kDeepest) tokens_.fail("nested too deeply");
    }
    ~Level() { --tokens_.depth_; }
    Level(const Level&) = delete;
    Level& operator=(const Level&) = delete;

   private:
    TemplateTokens& tokens_;
  };
  static constexpr int kDeepest = 100;

 private:
  std::vector<TemplateToken> tokens_;
  std::string where_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

// `conditional`: with an if behind it, as everywhere but in a loop's head.
TemplateExpression parsed_expression(TemplateTokens& tokens, bool conditional = true);
TemplateStatement::Body parsed_template(TemplateTokens& tokens);

// What the statements write. `names` are the template's variables.
std::string run_template(const TemplateStatement::Body& body, const TemplateDict& names, TemplateWork& work);

}  // namespace cautious::data
