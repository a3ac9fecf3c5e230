// Statements of chat templates: text, {{ output }}, if, for, set, macro, break, continue.
#include <fmt/format.h>

#include "base/text.h"
#include "data/tokenizer/template_syntax.h"

namespace cautious::data {
namespace {

class TemplateStatementParser {
  using Statement = TemplateStatement;
  using Kind = TemplateStatement::Kind;

 public:
  explicit TemplateStatementParser(TemplateTokens& tokens) : tokens_(tokens) {}

  // Up to the end, or to a statement that ends or divides the block around it; its {% has been taken then.
  Statement::Body body() {
    const TemplateTokens::Level level(tokens_);
    Statement::Body out;
    for (;;) {
      const int line = tokens_.peek().line;
      if (tokens_.peek().kind == TemplateToken::Kind::end) return out;
      if (tokens_.peek().kind == TemplateToken::Kind::text) {
        out.push_back({Kind::text, line, tokens_.take().text});
      } else if (tokens_.skip("{{")) {
        out.push_back({Kind::output, line, "", {}, {parsed_expression(tokens_)}});
        tokens_.expect("}}");
      } else {
        tokens_.expect("{%");
        if (is_ending()) return out;
        out.push_back(statement(line));
      }
    }
  }

 private:
  bool is_ending() const {
    for (const char* name : {"elif", "else", "endif", "endfor", "endset", "endmacro", "endgeneration"}) {
      if (tokens_.is_name(name)) return true;
    }
    return false;
  }

  void end() { tokens_.expect("%}"); }

  void end(std::string_view name) {
    if (!tokens_.skip_name(name)) tokens_.fail(fmt::format("{} instead of {}", base::in_quotes(tokens_.peek().text), name));
    end();
  }

  Statement statement(int line) {
    const std::string name = tokens_.expect_name();
    if (name == "if") return branches(line);
    if (name == "for") return loop(line);
    if (name == "set") return setting(line);
    if (name == "macro") return macro(line);
    if (name == "generation") {  // marks what an assistant says
      end();
      Statement out{Kind::block, line, "", {}, {}, {body()}};
      end("endgeneration");
      return out;
    }
    if (name != "break" && name != "continue")
      tokens_.fail(fmt::format("the statement {} is not supported", base::in_quotes(name)));
    if (loops_ == 0) tokens_.fail(fmt::format("{} outside of a loop", name));
    end();
    return {name == "break" ? Kind::leave : Kind::next, line};
  }

  Statement branches(int line) {
    Statement out{Kind::branches, line};
    do {
      out.expressions.push_back(parsed_expression(tokens_));
      end();
      out.bodies.push_back(body());
    } while (tokens_.skip_name("elif"));
    if (tokens_.skip_name("else")) {
      end();
      out.bodies.push_back(body());
    }
    end("endif");
    return out;
  }

  std::vector<std::string> targets() {
    std::vector<std::string> out;
    const bool in_parentheses = tokens_.skip("(");
    do {
      out.push_back(tokens_.expect_name());
    } while (tokens_.skip(","));
    if (in_parentheses) tokens_.expect(")");
    return out;
  }

  Statement loop(int line) {
    Statement out{Kind::loop, line, "", targets()};
    if (!tokens_.skip_name("in")) tokens_.fail(fmt::format("{} instead of in", base::in_quotes(tokens_.peek().text)));
    out.expressions.push_back(parsed_expression(tokens_, false));
    if (tokens_.skip_name("if")) out.expressions.push_back(parsed_expression(tokens_));
    end();
    ++loops_;
    out.bodies.push_back(body());
    --loops_;
    if (tokens_.skip_name("else")) {
      end();
      out.bodies.push_back(body());
    }
    end("endfor");
    return out;
  }

  Statement setting(int line) {
    Statement out{Kind::set, line, "", targets()};
    if (out.names.size() == 1 && tokens_.skip(".")) {
      out.text = out.names[0];
      out.names[0] = tokens_.expect_name();
    }
    if (tokens_.skip("=")) {
      out.expressions.push_back(parsed_expression(tokens_));
      end();
      return out;
    }
    if (!out.text.empty() || out.names.size() > 1) tokens_.fail("set without =");
    out.kind = Kind::set_block;
    end();
    out.bodies.push_back(body());
    end("endset");
    return out;
  }

  Statement macro(int line) {
    Statement out{Kind::macro, line, tokens_.expect_name()};
    tokens_.expect("(");
    while (!tokens_.skip(")")) {
      out.names.push_back(tokens_.expect_name());
      if (tokens_.skip("=")) {
        out.expressions.push_back(parsed_expression(tokens_));
      } else if (!out.expressions.empty()) {
        tokens_.fail("a parameter without a default behind one with it");
      }
      if (!tokens_.is(")")) tokens_.expect(",");
    }
    end();
    const int around = std::exchange(loops_, 0);
    out.bodies.push_back(body());
    loops_ = around;
    end("endmacro");
    return out;
  }

  TemplateTokens& tokens_;
  int loops_ = 0;
};

}  // namespace

TemplateStatement::Body parsed_template(TemplateTokens& tokens) {
  TemplateStatement::Body out = TemplateStatementParser(tokens).body();
  if (tokens.peek().kind != TemplateToken::Kind::end)
    tokens.fail(fmt::format("{} without what it belongs to", base::in_quotes(tokens.peek().text)));
  return out;
}

}  // namespace cautious::data
