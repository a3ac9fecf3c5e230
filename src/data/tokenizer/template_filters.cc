// The filters and tests of chat templates.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>
#include <map>

#include "base/text.h"
#include "base/utf8_stream.h"
#include "data/tokenizer/template_values.h"

namespace cautious::data {
namespace {

// A filter's value, and what to ask for arguments.
struct Filtering {
  TemplateWork& work;
  const TemplateValue& value;
  TemplateParameters& parameters;

  const std::string& text() const { return as_text(work, value, "what is filtered"); }
  TemplateList elements() const { return data::elements(work, value); }
};

std::size_t length_of(TemplateWork& work, const TemplateValue& value) {
  if (value.dict()) return value.dict()->size();
  if (value.list()) return value.list()->size();
  if (!value.text()) return elements(work, value).size();
  std::string_view text = *value.text();
  work.spend(text.size());
  std::size_t characters = 0;
  for (; !text.empty(); ++characters) text.remove_prefix(std::max<std::size_t>(1, base::utf8_character(text)));
  return characters;
}

// "a.b" of attribute=; undefined where an element has none.
TemplateValue attribute_in(TemplateWork& work, TemplateValue value, std::string_view path) {
  for (;;) {
    const std::size_t dot = path.find('.');
    value = item_of(work, value, TemplateValue(path.substr(0, dot)));
    if (dot == path.npos) return value;
    path.remove_prefix(dot + 1);
  }
}

TemplateValue join_filter(const Filtering& f) {
  const TemplateValue separator = f.parameters.take("d"), attribute = f.parameters.take("attribute");
  const std::string between = separator.is<TemplateUndefined>() ? "" : as_text(f.work, separator, "join's separator");
  std::string out;
  bool first = true;
  for (const TemplateValue& element : f.elements()) {
    if (!std::exchange(first, false)) {
      f.work.spend(between.size());
      out += between;
    }
    out += written_text(f.work, attribute.text() ? attribute_in(f.work, element, *attribute.text()) : element);
  }
  return out;
}

TemplateValue default_filter(const Filtering& f) {
  const TemplateValue other = f.parameters.take("default_value"), also_false = f.parameters.take("boolean");
  const bool replaces = f.value.is<TemplateUndefined>() || (is_true(also_false) && !is_true(f.value));
  if (!replaces) return f.value;
  return other.is<TemplateUndefined>() ? TemplateValue(std::string()) : other;
}

TemplateValue integer_filter(const Filtering& f) {
  const TemplateValue other = f.parameters.take("default");
  if (f.value.is<double>() && std::abs(f.value.get<double>()) < 9e18) return static_cast<std::int64_t>(f.value.get<double>());
  if (f.value.is<std::int64_t>() || f.value.is<bool>()) return as_integer(f.work, f.value, "");
  const auto parsed = f.value.text() ? base::parsed<std::int64_t>(stripped(f.work, *f.value.text(), true, true)) : std::nullopt;
  if (parsed) return *parsed;
  return other.is<TemplateUndefined>() ? TemplateValue(std::int64_t{0}) : other;
}

TemplateValue json_filter(const Filtering& f) {
  const TemplateValue ascii = f.parameters.take("ensure_ascii"), indent = f.parameters.take("indent");
  if (is_true(ascii)) f.work.fail("tojson with ensure_ascii is not supported");
  const bool given = !indent.is<TemplateUndefined>() && !indent.is<TemplateNone>();
  return written_json(f.work, f.value, given ? std::optional(as_integer(f.work, indent, "tojson's indent")) : std::nullopt);
}

TemplateValue map_filter(const Filtering& f) {
  const TemplateValue attribute = f.parameters.take("attribute");
  const std::string& path = as_text(f.work, attribute, "map's argument");
  TemplateList out;
  for (const TemplateValue& element : f.elements()) out.push_back(attribute_in(f.work, element, path));
  return out;
}

// selectattr("role", "equalto", "user")
TemplateValue select_filter(const Filtering& f, bool keep) {
  const TemplateValue attribute = f.parameters.take("attribute"), test = f.parameters.take("test");
  const TemplateList rest = f.parameters.take_rest();
  const std::string& path = as_text(f.work, attribute, "the attribute");
  if (!test.is<TemplateUndefined>() && !is_template_test(as_text(f.work, test, "the test")))
    f.work.fail(fmt::format("no test {}", base::in_quotes(*test.text())));
  TemplateList out;
  for (const TemplateValue& element : f.elements()) {
    const TemplateValue value = attribute_in(f.work, element, path);
    const bool holds = test.text() ? tested(f.work, *test.text(), value, {rest, {}}) : is_true(value);
    if (holds == keep) out.push_back(element);
  }
  return out;
}

TemplateValue trim_filter(const Filtering& f) {
  return stripped(f.work, written_text(f.work, f.value), true, true, f.parameters.take("chars"));
}

TemplateValue replace_filter(const Filtering& f) {
  const TemplateValue old = f.parameters.take("old"), by = f.parameters.take("new"), count = f.parameters.take("count");
  const std::int64_t most = count.is<TemplateUndefined>() || count.is<TemplateNone>() ? -1 : as_integer(f.work, count, "count");
  return replaced(f.work, written_text(f.work, f.value), as_text(f.work, old, "what is replaced"),
                  as_text(f.work, by, "the replacement"), most);
}

TemplateValue items_filter(const Filtering& f) {
  if (f.value.is<TemplateUndefined>()) return TemplateList();
  return method_result(f.work, f.value, "items", {});
}

TemplateValue reverse_filter(const Filtering& f) {
  if (f.value.text()) return slice_of(f.work, f.value, {}, {}, -1);
  TemplateList out = f.elements();
  std::reverse(out.begin(), out.end());
  return out;
}

TemplateValue first_of(TemplateList all) { return all.empty() ? TemplateValue() : all.front(); }
TemplateValue last_of(TemplateList all) { return all.empty() ? TemplateValue() : all.back(); }

using Filter = TemplateValue (*)(const Filtering&);

const std::map<std::string_view, Filter>& filters() {
  static const std::map<std::string_view, Filter> all = {
      {"count", [](const Filtering& f) -> TemplateValue { return static_cast<std::int64_t>(length_of(f.work, f.value)); }},
      {"d", default_filter},
      {"default", default_filter},
      {"first", [](const Filtering& f) -> TemplateValue { return first_of(f.elements()); }},
      {"int", integer_filter},
      {"items", items_filter},
      {"join", join_filter},
      {"last", [](const Filtering& f) -> TemplateValue { return last_of(f.elements()); }},
      {"length", [](const Filtering& f) -> TemplateValue { return static_cast<std::int64_t>(length_of(f.work, f.value)); }},
      {"list", [](const Filtering& f) -> TemplateValue { return f.elements(); }},
      {"lower", [](const Filtering& f) -> TemplateValue { return in_case(written_text(f.work, f.value), false); }},
      {"map", map_filter},
      {"rejectattr", [](const Filtering& f) -> TemplateValue { return select_filter(f, false); }},
      {"replace", replace_filter},
      {"reverse", reverse_filter},
      {"safe", [](const Filtering& f) -> TemplateValue { return written_text(f.work, f.value); }},
      {"selectattr", [](const Filtering& f) -> TemplateValue { return select_filter(f, true); }},
      {"string", [](const Filtering& f) -> TemplateValue { return written_text(f.work, f.value); }},
      {"title", [](const Filtering& f) -> TemplateValue { return in_title_case(written_text(f.work, f.value), false); }},
      {"tojson", json_filter},
      {"trim", trim_filter},
      {"upper", [](const Filtering& f) -> TemplateValue { return in_case(written_text(f.work, f.value), true); }}};
  return all;
}

using Test = bool (*)(TemplateWork& work, const TemplateValue& value, const TemplateValue& other);

std::int64_t remainder(TemplateWork& work, const TemplateValue& value, std::int64_t divisor) {
  if (divisor == 0) work.fail("division by zero");
  return divisor == -1 ? 0 : as_integer(work, value, "what is tested") % divisor;
}

const std::map<std::string_view, Test>& tests() {
  using Work = TemplateWork;
  using Value = TemplateValue;
  static const Test equal = [](Work& work, const Value& a, const Value& b) { return are_equal(work, a, b); };
  static const std::map<std::string_view, Test> all = {
      {"==", equal},
      {"boolean", [](Work&, const Value& a, const Value&) { return a.is<bool>(); }},
      {"defined", [](Work&, const Value& a, const Value&) { return !a.is<TemplateUndefined>(); }},
      {"divisibleby",
       [](Work& work, const Value& a, const Value& b) { return remainder(work, a, as_integer(work, b, "divisibleby")) == 0; }},
      {"eq", equal},
      {"equalto", equal},
      {"even", [](Work& work, const Value& a, const Value&) { return remainder(work, a, 2) == 0; }},
      {"false", [](Work&, const Value& a, const Value&) { return a.is<bool>() && !a.get<bool>(); }},
      {"float", [](Work&, const Value& a, const Value&) { return a.is<double>(); }},
      {"in", [](Work& work, const Value& a, const Value& b) { return is_in(work, a, b); }},
      {"integer", [](Work&, const Value& a, const Value&) { return a.is<std::int64_t>(); }},
      {"iterable",
       [](Work&, const Value& a, const Value&) { return a.list() || a.dict() || a.text() || a.is<TemplateUndefined>(); }},
      {"mapping", [](Work&, const Value& a, const Value&) { return a.dict() != nullptr; }},
      {"ne", [](Work& work, const Value& a, const Value& b) { return !are_equal(work, a, b); }},
      {"none", [](Work&, const Value& a, const Value&) { return a.is<TemplateNone>(); }},
      {"number", [](Work&, const Value& a, const Value&) { return a.is_number(); }},
      {"odd", [](Work& work, const Value& a, const Value&) { return remainder(work, a, 2) != 0; }},
      {"sequence",
       [](Work&, const Value& a, const Value&) { return a.list() || a.dict() || a.text() || a.is<TemplateUndefined>(); }},
      {"string", [](Work&, const Value& a, const Value&) { return a.text() != nullptr; }},
      {"true", [](Work&, const Value& a, const Value&) { return a.is<bool>() && a.get<bool>(); }},
      {"undefined", [](Work&, const Value& a, const Value&) { return a.is<TemplateUndefined>(); }}};
  return all;
}

bool takes_another(std::string_view test) {
  constexpr std::array<std::string_view, 6> kOf{"==", "divisibleby", "eq", "equalto", "in", "ne"};
  return std::find(kOf.begin(), kOf.end(), test) != kOf.end();
}

}  // namespace

TemplateValue TemplateParameters::take(std::string_view name) {
  if (!given_.positional.empty()) {
    TemplateValue out = given_.positional.front();
    given_.positional.erase(given_.positional.begin());
    return out;
  }
  const auto found =
      std::find_if(given_.named.begin(), given_.named.end(), [&](const auto& entry) { return entry.first == name; });
  if (found == given_.named.end()) return {};
  TemplateValue out = found->second;
  given_.named.erase(found);
  return out;
}

void TemplateParameters::finish() const {
  if (!given_.positional.empty()) work_.fail(fmt::format("{} has too many arguments", of_));
  if (!given_.named.empty()) work_.fail(fmt::format("{} has no argument {}", of_, base::in_quotes(given_.named.front().first)));
}

bool is_template_filter(std::string_view name) { return filters().contains(name); }
bool is_template_test(std::string_view name) { return tests().contains(name); }

TemplateValue filtered(TemplateWork& work, std::string_view name, const TemplateValue& value, TemplateArguments arguments) {
  TemplateParameters parameters(work, name, std::move(arguments));
  TemplateValue out = filters().find(name)->second({work, value, parameters});
  parameters.finish();
  return out;
}

bool tested(TemplateWork& work, std::string_view name, const TemplateValue& value, TemplateArguments arguments) {
  TemplateParameters parameters(work, name, std::move(arguments));
  const TemplateValue other = takes_another(name) ? parameters.take("other") : TemplateValue();
  parameters.finish();
  return tests().find(name)->second(work, value, other);
}

}  // namespace cautious::data
