// Runs a chat template. Loops and macros have names of their own; what they set is gone behind them.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "data/tokenizer/template_syntax.h"

namespace cautious::data {
namespace {

constexpr int kDeepestCall = 20;                  // of macros within each other
constexpr int kDeepestValue = 50;                 // lists within lists
constexpr std::uint64_t kStep = 10, kTurn = 100;  // work of a statement or an expression, and of a loop's turn

using TemplateNames = std::map<std::string, TemplateValue, std::less<>>;

class TemplateRun {
  using Expression = TemplateExpression;
  using Statement = TemplateStatement;
  using Value = TemplateValue;
  enum class Flow { on, leave, next };

 public:
  TemplateRun(TemplateWork& work, const TemplateDict& names) : work_(work) {
    scopes_.emplace_back();
    for (const auto& [name, value] : names) scopes_[0][name] = value;
  }

  std::string run(const Statement::Body& body) {
    std::string out;
    run(body, out);
    return out;
  }

 private:
  // Statements.

  Flow run(const Statement::Body& body, std::string& out) {
    for (const Statement& statement : body) {
      work_.line = statement.line;
      work_.spend(kStep);
      if (const Flow flow = run(statement, out); flow != Flow::on) return flow;
    }
    return Flow::on;
  }

  Flow run(const Statement& statement, std::string& out) {
    using Kind = Statement::Kind;
    switch (statement.kind) {
      case Kind::text:
        work_.spend(statement.text.size());
        out += statement.text;
        return Flow::on;
      case Kind::output:
        out += written_text(work_, value_of(statement.expressions[0]));
        return Flow::on;
      case Kind::branches:
        return run_branches(statement, out);
      case Kind::loop:
        return run_loop(statement, out);
      case Kind::set:
        set(statement, value_of(statement.expressions[0]));
        return Flow::on;
      case Kind::set_block: {
        std::string text;
        const Flow flow = run(statement.bodies[0], text);
        set(statement, Value(std::move(text)));
        return flow;
      }
      case Kind::macro:
        scopes_.back()[statement.text] = Value(&statement);
        return Flow::on;
      case Kind::leave:
        return Flow::leave;
      case Kind::next:
        return Flow::next;
      case Kind::block:
        return run(statement.bodies[0], out);
    }
    return Flow::on;
  }

  Flow run_branches(const Statement& statement, std::string& out) {
    std::size_t branch = 0;
    while (branch < statement.expressions.size() && !is_true(value_of(statement.expressions[branch]))) ++branch;
    return branch < statement.bodies.size() ? run(statement.bodies[branch], out) : Flow::on;
  }

  // All elements are looked at by the loop's own condition first: loop.last and loop.length know.
  TemplateList looped(const Statement& statement) {
    TemplateList all = elements(work_, value_of(statement.expressions[0]));
    if (statement.expressions.size() == 1) return all;
    TemplateList out;
    for (const Value& element : all) {
      work_.spend(kTurn);
      scopes_.emplace_back();
      assign(statement.names, element);
      if (is_true(value_of(statement.expressions[1]))) out.push_back(element);
      scopes_.pop_back();
    }
    return out;
  }

  Flow run_loop(const Statement& statement, std::string& out) {
    const TemplateList all = looped(statement);
    if (all.empty() && statement.bodies.size() > 1) return run(statement.bodies[1], out);
    for (std::size_t i = 0; i < all.size(); ++i) {
      work_.spend(kTurn);
      scopes_.emplace_back();
      assign(statement.names, all[i]);
      scopes_.back()["loop"] = loop_value(all, i);
      const Flow flow = run(statement.bodies[0], out);
      scopes_.pop_back();
      if (flow == Flow::leave) break;
    }
    return Flow::on;
  }

  static Value loop_value(const TemplateList& all, std::size_t i) {
    const auto at = static_cast<std::int64_t>(i), size = static_cast<std::int64_t>(all.size());
    return TemplateDict{{"index", at + 1},
                        {"index0", at},
                        {"revindex", size - at},
                        {"revindex0", size - at - 1},
                        {"first", at == 0},
                        {"last", at + 1 == size},
                        {"length", size},
                        {"previtem", at == 0 ? Value() : all[i - 1]},
                        {"nextitem", at + 1 == size ? Value() : all[i + 1]}};
  }

  void assign(const std::vector<std::string>& names, const Value& value) {
    if (names.size() == 1) {
      scopes_.back()[names[0]] = value;
      return;
    }
    const TemplateList values = elements(work_, value);
    if (values.size() != names.size()) work_.fail(fmt::format("{} values for {} names", values.size(), names.size()));
    for (std::size_t i = 0; i < names.size(); ++i) scopes_.back()[names[i]] = values[i];
  }

  void set(const Statement& statement, const Value& value) {
    if (statement.text.empty()) return assign(statement.names, value);
    const Value space = lookup(statement.text);
    if (!space.is<Value::Namespace>()) work_.fail(fmt::format("{} is no namespace", base::in_quotes(statement.text)));
    (*space.get<Value::Namespace>())[statement.names[0]] = inner(value);
  }

  // A value that another may hold.
  const Value& inner(const Value& value) const {
    if (value.is<Value::Namespace>()) work_.fail("a namespace within another value is not supported");
    if (value.depth() >= kDeepestValue) work_.fail("values nested too deeply");
    return value;
  }

  Value lookup(std::string_view name) const {
    for (std::size_t i = scopes_.size(); i > outermost_; --i) {
      if (const auto found = scopes_[i - 1].find(name); found != scopes_[i - 1].end()) return found->second;
    }
    const auto found = scopes_[0].find(name);
    return found == scopes_[0].end() ? Value() : found->second;
  }

  // Expressions.

  Value value_of(const Expression& expression) {
    using Kind = Expression::Kind;
    work_.line = expression.line;
    work_.spend(kStep);
    const auto part = [&](std::size_t i) { return value_of(expression.parts[i]); };
    switch (expression.kind) {
      case Kind::constant:
        return expression.constant;
      case Kind::name:
        return lookup(expression.name);
      case Kind::list: {
        TemplateList out;
        for (const Expression& element : expression.parts) out.push_back(inner(value_of(element)));
        return out;
      }
      case Kind::dict:
        return dict_of(expression);
      case Kind::attribute:
        return item_of(work_, part(0), Value(expression.name));
      case Kind::item:
        return item_of(work_, part(0), part(1));
      case Kind::slice:
        return slice_value(expression);
      case Kind::call:
        return call(expression);
      case Kind::filter:
        return filtered(work_, expression.name, part(0), arguments(expression));
      case Kind::test:
        return tested(work_, expression.name, part(0), arguments(expression));
      case Kind::negative:
        return calculated(work_, "-", Value(std::int64_t{0}), part(0));
      case Kind::inversion:
        return !is_true(part(0));
      case Kind::conjunction: {
        const Value left = part(0);
        return is_true(left) ? part(1) : left;
      }
      case Kind::disjunction: {
        const Value left = part(0);
        return is_true(left) ? left : part(1);
      }
      case Kind::calculation: {
        const Value left = part(0), right = part(1);
        return calculated(work_, expression.name, left, right);
      }
      case Kind::comparison:
        return holds(expression);
      case Kind::condition:
        return is_true(part(1)) ? part(0) : part(2);
    }
    return {};
  }

  Value dict_of(const Expression& expression) {
    TemplateDict out;
    for (std::size_t i = 0; i < expression.parts.size(); i += 2) {
      const Value key = value_of(expression.parts[i]), value = inner(value_of(expression.parts[i + 1]));
      const std::string& name = as_text(work_, key, "a mapping's key");
      work_.spend(out.size());
      const auto found = std::find_if(out.begin(), out.end(), [&](const auto& entry) { return entry.first == name; });
      if (found == out.end()) {
        out.emplace_back(name, value);
      } else {
        found->second = value;
      }
    }
    return out;
  }

  Value slice_value(const Expression& expression) {
    const Value of = value_of(expression.parts[0]);
    const auto end = [&](std::size_t i) -> std::optional<std::int64_t> {
      const Value value = value_of(expression.parts[i]);
      if (value.is<TemplateUndefined>() || value.is<TemplateNone>()) return std::nullopt;
      return as_integer(work_, value, "the end of a slice");
    };
    const auto begin = end(1), last = end(2), step = end(3);
    return slice_of(work_, of, begin, last, step.value_or(1));
  }

  bool holds(const Expression& chain) {
    Value left = value_of(chain.parts[0]);
    for (std::size_t i = 0; i < chain.names.size(); ++i) {
      Value right = value_of(chain.parts[i + 1]);
      if (!holds(chain.names[i], left, right)) return false;
      left = std::move(right);
    }
    return true;
  }

  bool holds(std::string_view sign, const Value& a, const Value& b) {
    if (sign == "==" || sign == "!=") return are_equal(work_, a, b) == (sign == "==");
    if (sign == "in" || sign == "not in") return is_in(work_, a, b) == (sign == "in");
    const int order = compared(work_, a, b);
    return sign == "<" ? order < 0 : sign == "<=" ? order <= 0 : sign == ">" ? order > 0 : order >= 0;
  }

  TemplateArguments arguments(const Expression& call) {
    TemplateArguments out;
    const std::size_t unnamed = call.parts.size() - call.names.size();
    for (std::size_t i = 1; i < call.parts.size(); ++i) {
      Value value = value_of(call.parts[i]);
      if (i < unnamed) {
        out.positional.push_back(std::move(value));
      } else {
        out.named.emplace_back(call.names[i - unnamed], std::move(value));
      }
    }
    return out;
  }

  Value call(const Expression& expression) {
    const Expression& callee = expression.parts[0];
    if (callee.kind == Expression::Kind::attribute) {
      const Value of = value_of(callee.parts[0]);
      TemplateArguments given = arguments(expression);
      work_.line = expression.line;
      return method_result(work_, of, callee.name, std::move(given));
    }
    const Value value = value_of(callee);
    TemplateArguments given = arguments(expression);
    work_.line = expression.line;
    if (value.is<Value::Macro>()) return call_macro(*value.get<Value::Macro>(), std::move(given));
    if (callee.kind != Expression::Kind::name || !value.is<TemplateUndefined>())
      work_.fail(fmt::format("{} cannot be called", value.kind()));
    return call_function(callee.name, std::move(given));
  }

  Value call_function(const std::string& name, TemplateArguments given) {
    if (name == "namespace" && given.positional.empty()) {
      auto out = std::make_shared<TemplateNamespace>();
      for (const auto& [key, value] : given.named) (*out)[key] = inner(value);
      return out;
    }
    TemplateParameters parameters(work_, name, std::move(given));
    if (name == "raise_exception") {
      const Value message = parameters.take("message");
      work_.fail(fmt::format("the template refuses the conversation: {}", base::in_one_line(written_text(work_, message))));
    }
    if (name != "range") work_.fail(fmt::format("the function {} is not supported", base::in_quotes(name)));
    TemplateList out = range_of(work_, parameters);
    parameters.finish();
    return out;
  }

  Value call_macro(const Statement& macro, TemplateArguments given) {
    if (++calls_ > kDeepestCall) work_.fail("macros call each other too deeply");
    TemplateParameters parameters(work_, macro.text, std::move(given));
    TemplateNames names;
    const std::size_t required = macro.names.size() - macro.expressions.size();
    for (std::size_t i = 0; i < macro.names.size(); ++i) {
      Value value = parameters.take(macro.names[i]);
      if (value.is<TemplateUndefined>() && i >= required) value = value_of(macro.expressions[i - required]);
      names[macro.names[i]] = std::move(value);
    }
    parameters.finish();
    const std::size_t around = std::exchange(outermost_, scopes_.size());
    scopes_.push_back(std::move(names));
    std::string out;
    run(macro.bodies[0], out);
    scopes_.pop_back();
    outermost_ = around;
    --calls_;
    return out;
  }

  TemplateWork& work_;
  std::vector<TemplateNames> scopes_;
  std::size_t outermost_ = 0;  // of the scopes that the running macro sees, but for the first
  int calls_ = 0;
};

}  // namespace

std::string run_template(const TemplateStatement::Body& body, const TemplateDict& names, TemplateWork& work) {
  return TemplateRun(work, names).run(body);
}

}  // namespace cautious::data
