// Expressions of chat templates, by Jinja's precedence: if, or, and, not, comparisons, + -, ~, * / // %, signs, and behind a
// value attributes, elements, calls, filters and tests.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "base/files.h"
#include "base/text.h"
#include "data/tokenizer/template_syntax.h"

namespace cautious::data {

TemplateToken TemplateTokens::take() {
  TemplateToken out = peek();
  if (at_ + 1 < tokens_.size()) ++at_;  // the end stays
  return out;
}

bool TemplateTokens::skip(std::string_view sign) {
  if (!is(sign)) return false;
  ++at_;
  return true;
}

bool TemplateTokens::skip_name(std::string_view name) {
  if (!is_name(name)) return false;
  ++at_;
  return true;
}

void TemplateTokens::expect(std::string_view sign) {
  if (!skip(sign)) fail(fmt::format("{} instead of {}", base::in_quotes(peek().text), sign));
}

std::string TemplateTokens::expect_name() {
  if (peek().kind != TemplateToken::Kind::name) fail(fmt::format("{} instead of a name", base::in_quotes(peek().text)));
  return take().text;
}

void TemplateTokens::fail(const std::string& what) const {
  base::refuse_content(where_, fmt::format("line {}: {}", peek().line, what));
}

namespace {

class TemplateExpressionParser {
  using Expression = TemplateExpression;
  using Kind = TemplateExpression::Kind;

 public:
  explicit TemplateExpressionParser(TemplateTokens& tokens) : tokens_(tokens) {}

  Expression conditional() {
    const TemplateTokens::Level level(tokens_);
    Expression out = disjunction();
    while (tokens_.skip_name("if")) {
      Expression condition = disjunction();
      Expression other = tokens_.skip_name("else") ? conditional() : node(Kind::constant, {});
      out = node(Kind::condition, {std::move(out), std::move(condition), std::move(other)});
    }
    return out;
  }

  Expression disjunction() {
    Expression out = conjunction();
    while (tokens_.skip_name("or")) out = node(Kind::disjunction, {std::move(out), conjunction()});
    return out;
  }

 private:
  // The tree is walked by functions that call themselves, so its depth has a limit.
  Expression node(Kind kind, std::vector<Expression> parts, std::string name = "") const {
    Expression out{kind, tokens_.peek().line, std::move(name), std::move(parts)};
    for (const Expression& part : out.parts) out.depth = std::max(out.depth, 1 + part.depth);
    if (out.depth > TemplateTokens::kDeepest) tokens_.fail("an expression nested too deeply");
    return out;
  }

  Expression constant(TemplateValue value) const {
    Expression out = node(Kind::constant, {});
    out.constant = std::move(value);
    return out;
  }

  Expression conjunction() {
    Expression out = inversion();
    while (tokens_.skip_name("and")) out = node(Kind::conjunction, {std::move(out), inversion()});
    return out;
  }

  Expression inversion() {
    const TemplateTokens::Level level(tokens_);
    if (tokens_.skip_name("not")) return node(Kind::inversion, {inversion()});
    return comparison();
  }

  // The operator of a comparison; none if there is none.
  std::string comparing() {
    for (const std::string_view sign : {"==", "!=", "<", "<=", ">", ">="}) {
      if (tokens_.skip(sign)) return std::string(sign);
    }
    if (tokens_.skip_name("in")) return "in";
    if (!tokens_.skip_name("not")) return "";
    if (!tokens_.skip_name("in")) tokens_.fail(fmt::format("{} instead of in", base::in_quotes(tokens_.peek().text)));
    return "not in";
  }

  Expression comparison() {
    std::vector<Expression> parts{sum()};
    std::vector<std::string> operators;
    for (std::string sign = comparing(); !sign.empty(); sign = comparing()) {
      operators.push_back(std::move(sign));
      parts.push_back(sum());
    }
    if (operators.empty()) return std::move(parts[0]);
    Expression out = node(Kind::comparison, std::move(parts));
    out.names = std::move(operators);
    return out;
  }

  template <class Operand>
  Expression calculation(std::initializer_list<std::string_view> signs, const Operand& operand) {
    Expression out = operand();
    for (;;) {
      const auto found = std::find_if(signs.begin(), signs.end(), [&](std::string_view sign) { return tokens_.is(sign); });
      if (found == signs.end()) return out;
      tokens_.take();
      out = node(Kind::calculation, {std::move(out), operand()}, std::string(*found));
    }
  }

  Expression sum() {
    return calculation({"+", "-"}, [&] { return concatenation(); });
  }
  Expression concatenation() {
    return calculation({"~"}, [&] { return product(); });
  }
  Expression product() {
    return calculation({"*", "/", "//", "%"}, [&] { return with_sign(true); });
  }

  Expression with_sign(bool with_filters) {
    const TemplateTokens::Level level(tokens_);
    Expression out = tokens_.skip("-")   ? node(Kind::negative, {with_sign(false)})
                     : tokens_.skip("+") ? with_sign(false)
                                         : with_elements(primary());
    while (with_filters && (tokens_.is("|") || tokens_.is_name("is"))) {
      out = tokens_.skip("|") ? filter(std::move(out)) : test(std::move(out));
    }
    return out;
  }

  Expression primary() {
    const TemplateToken token = tokens_.take();
    if (token.kind == TemplateToken::Kind::literal) {
      if (!token.literal.text()) return constant(token.literal);
      std::string text = *token.literal.text();  // neighbours are one text
      while (tokens_.peek().kind == TemplateToken::Kind::literal && tokens_.peek().literal.text())
        text += *tokens_.take().literal.text();
      return constant(TemplateValue(std::move(text)));
    }
    if (token.kind == TemplateToken::Kind::name) {
      if (token.text == "true" || token.text == "True") return constant(TemplateValue(true));
      if (token.text == "false" || token.text == "False") return constant(TemplateValue(false));
      if (token.text == "none" || token.text == "None") return constant(TemplateValue(TemplateNone{}));
      return node(Kind::name, {}, token.text);
    }
    if (token.text == "[") return node(Kind::list, items("]"));
    if (token.text == "{") return dict();
    if (token.text == "(") return in_parentheses();
    tokens_.fail(fmt::format("{} instead of a value", base::in_quotes(token.text)));
  }

  std::vector<Expression> items(std::string_view end) {
    std::vector<Expression> out;
    while (!tokens_.skip(end)) {
      out.push_back(conditional());
      if (!tokens_.is(end)) tokens_.expect(",");
    }
    return out;
  }

  // A tuple is a list here: nothing tells them apart.
  Expression in_parentheses() {
    if (tokens_.skip(")")) return node(Kind::list, {});
    Expression first = conditional();
    if (tokens_.skip(")")) return first;
    tokens_.expect(",");
    std::vector<Expression> all = items(")");
    all.insert(all.begin(), std::move(first));
    return node(Kind::list, std::move(all));
  }

  Expression dict() {
    std::vector<Expression> all;
    while (!tokens_.skip("}")) {
      all.push_back(conditional());
      tokens_.expect(":");
      all.push_back(conditional());
      if (!tokens_.is("}")) tokens_.expect(",");
    }
    return node(Kind::dict, std::move(all));
  }

  Expression with_elements(Expression out) {
    for (;;) {
      if (tokens_.skip(".")) {
        const bool number = tokens_.peek().kind == TemplateToken::Kind::literal && !tokens_.peek().literal.text();
        out = number ? node(Kind::item, {std::move(out), constant(tokens_.take().literal)})
                     : node(Kind::attribute, {std::move(out)}, tokens_.expect_name());
      } else if (tokens_.skip("[")) {
        out = element(std::move(out));
      } else if (tokens_.is("(")) {
        out = with_arguments(node(Kind::call, {std::move(out)}));
      } else {
        return out;
      }
    }
  }

  Expression element(Expression of) {
    std::vector<Expression> parts{std::move(of)};
    const auto part = [&] {
      parts.push_back(tokens_.is(":") || tokens_.is("]") ? constant({}) : conditional());
      return tokens_.skip(":");
    };
    if (!part()) {
      tokens_.expect("]");
      return node(Kind::item, std::move(parts));
    }
    if (part()) part();
    parts.resize(4, constant({}));
    tokens_.expect("]");
    return node(Kind::slice, std::move(parts));
  }

  // Adds what is in parentheses, if anything is.
  Expression with_arguments(Expression call) {
    std::vector<Expression> parts = std::move(call.parts);
    std::vector<std::string> names;
    for (bool more = tokens_.skip("("); more && !tokens_.skip(")");) {
      Expression argument = conditional();
      if (tokens_.skip("=")) {
        if (argument.kind != Kind::name) tokens_.fail("a value instead of an argument's name before =");
        names.push_back(argument.name);
        argument = conditional();
      } else if (!names.empty()) {
        tokens_.fail("an argument without a name behind one with it");
      }
      parts.push_back(std::move(argument));
      if (!tokens_.is(")")) tokens_.expect(",");
    }
    Expression out = node(call.kind, std::move(parts), std::move(call.name));
    out.names = std::move(names);
    return out;
  }

  Expression filter(Expression value) {
    std::string name = tokens_.expect_name();
    if (!is_template_filter(name)) tokens_.fail(fmt::format("the filter {} is not supported", base::in_quotes(name)));
    return with_arguments(node(Kind::filter, {std::move(value)}, std::move(name)));
  }

  Expression test(Expression value) {
    tokens_.take();  // is
    const bool negated = tokens_.skip_name("not");
    std::string name = tokens_.expect_name();
    if (!is_template_test(name)) tokens_.fail(fmt::format("the test {} is not supported", base::in_quotes(name)));
    std::vector<Expression> parts{std::move(value)};
    const TemplateToken& next = tokens_.peek();
    constexpr std::array<std::string_view, 5> kBehind{"else", "or", "and", "is", "if"};
    const bool word =
        next.kind == TemplateToken::Kind::name && std::find(kBehind.begin(), kBehind.end(), next.text) == kBehind.end();
    const bool in_brackets = tokens_.is("[") || tokens_.is("{");
    const bool argument = in_brackets || word || next.kind == TemplateToken::Kind::literal;
    if (argument) parts.push_back(with_elements(primary()));
    Expression out = node(Kind::test, std::move(parts), std::move(name));
    if (!argument) out = with_arguments(std::move(out));
    return negated ? node(Kind::inversion, {std::move(out)}) : out;
  }

  TemplateTokens& tokens_;
};

}  // namespace

TemplateExpression parsed_expression(TemplateTokens& tokens, bool conditional) {
  TemplateExpressionParser parser(tokens);
  return conditional ? parser.conditional() : parser.disjunction();
}

}  // namespace cautious::data
