// Truth, equality, order, arithmetic, text and JSON as Python has them. Texts are sequences of code points.
#include "data/tokenizer/template_values.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/files.h"
#include "base/text.h"
#include "base/utf8_stream.h"

namespace cautious::data {
namespace {

std::vector<std::string_view> characters_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const std::size_t size = std::max<std::size_t>(1, base::utf8_character(text));
    out.push_back(text.substr(0, size));
    text.remove_prefix(size);
  }
  return out;
}

std::string float_text(double value) {
  std::string out = base::to_text(value);
  if (out.find_first_not_of("-0123456789") == out.npos) out += ".0";
  return out;
}

void add_json_text(TemplateWork& work, const std::string& text, std::string& out) {
  work.spend(text.size() + 2);
  out += '"';
  for (const char c : text) {
    constexpr std::string_view kEscaped = "\"\\\n\r\t\b\f", kLetters = "\"\\nrtbf";
    if (const std::size_t at = kEscaped.find(c); at != kEscaped.npos) {
      out += '\\';
      out += kLetters[at];
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  out += '"';
}

class JsonText {
 public:
  JsonText(TemplateWork& work, std::optional<std::int64_t> indent) : work_(work), indent_(indent) {}

  void add(const TemplateValue& value, std::size_t depth) {
    work_.spend(10);
    if (const std::string* text = value.text()) {
      add_json_text(work_, *text, out);
    } else if (const TemplateList* list = value.list()) {
      add_all("[]", list->size(), depth, [&](std::size_t i) { add((*list)[i], depth + 1); });
    } else if (const TemplateDict* dict = value.dict()) {
      add_all("{}", dict->size(), depth, [&](std::size_t i) {
        add_json_text(work_, (*dict)[i].first, out);
        out += ": ";
        add((*dict)[i].second, depth + 1);
      });
    } else if (value.is<bool>()) {
      out += value.get<bool>() ? "true" : "false";
    } else if (value.is<TemplateNone>()) {
      out += "null";
    } else if (value.is_number()) {
      out += written_text(work_, value);
    } else {
      work_.fail(fmt::format("{} cannot be written as JSON", value.kind()));
    }
  }

  std::string out;

 private:
  template <class Add>
  void add_all(std::string_view brackets, std::size_t count, std::size_t depth, const Add& add_one) {
    out += brackets[0];
    for (std::size_t i = 0; i < count; ++i) {
      if (i > 0) out += indent_ ? "," : ", ";
      new_line(depth + 1);
      add_one(i);
    }
    if (count > 0) new_line(depth);
    out += brackets[1];
  }

  void new_line(std::size_t depth) {
    if (!indent_) return;
    const std::size_t spaces = depth * static_cast<std::size_t>(*indent_);
    work_.spend(spaces + 1);
    out += '\n' + std::string(spaces, ' ');
  }

  TemplateWork& work_;
  std::optional<std::int64_t> indent_;
};

// Python's: rounds down, and the rest has the sign of the divisor.
std::int64_t divided(std::int64_t a, std::int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0); }

TemplateValue integer_result(TemplateWork& work, char op, std::int64_t a, std::int64_t b) {
  std::int64_t out = 0;
  bool fits = true;
  if (op == '+') fits = !__builtin_add_overflow(a, b, &out);
  if (op == '-') fits = !__builtin_sub_overflow(a, b, &out);
  if (op == '*') fits = !__builtin_mul_overflow(a, b, &out);
  if (op == '/' || op == '%') {
    fits = b != 0 && b != -1;  // the smallest number divided by -1 has no place
    if (fits) out = op == '/' ? divided(a, b) : a - b * divided(a, b);
    if (b == -1) return op == '%' ? TemplateValue(std::int64_t{0}) : integer_result(work, '-', 0, a);
  }
  if (!fits) work.fail(b == 0 && (op == '/' || op == '%') ? "division by zero" : "a number is too large");
  return out;
}

TemplateValue float_result(TemplateWork& work, char op, double a, double b) {
  if ((op == '/' || op == '%' || op == 'd') && b == 0) work.fail("division by zero");
  if (op == '+') return a + b;
  if (op == '-') return a - b;
  if (op == '*') return a * b;
  if (op == 'd') return a / b;
  return op == '/' ? std::floor(a / b) : a - b * std::floor(a / b);
}

}  // namespace

void TemplateWork::fail(const std::string& what) const { base::refuse_content(where, fmt::format("line {}: {}", line, what)); }

TemplateValue::TemplateValue(TemplateList value) : depth_(1) {
  for (const TemplateValue& element : value) depth_ = std::max(depth_, 1 + element.depth_);
  held_ = std::make_shared<const TemplateList>(std::move(value));
}

TemplateValue::TemplateValue(TemplateDict value) : depth_(1) {
  for (const auto& [key, element] : value) depth_ = std::max(depth_, 1 + element.depth_);
  held_ = std::make_shared<const TemplateDict>(std::move(value));
}

std::string_view TemplateValue::kind() const {
  constexpr std::string_view kNames[] = {"an undefined value", "none",   "a boolean", "a number",
                                         "a number",           "a text", "a list",    "a mapping",
                                         "a namespace",        "a macro"};
  return kNames[held_.index()];
}

bool is_true(const TemplateValue& value) {
  if (value.is<TemplateUndefined>() || value.is<TemplateNone>()) return false;
  if (value.is_number()) return as_double(value) != 0;
  if (value.text()) return !value.text()->empty();
  if (value.list()) return !value.list()->empty();
  return !value.dict() || !value.dict()->empty();
}

double as_double(const TemplateValue& number) {
  if (number.is<bool>()) return number.get<bool>() ? 1 : 0;
  return number.is<double>() ? number.get<double>() : static_cast<double>(number.get<std::int64_t>());
}

std::int64_t as_integer(TemplateWork& work, const TemplateValue& value, std::string_view what) {
  if (value.is<bool>()) return value.get<bool>() ? 1 : 0;
  if (!value.is<std::int64_t>()) work.fail(fmt::format("{} is {} instead of a whole number", what, value.kind()));
  return value.get<std::int64_t>();
}

const std::string& as_text(TemplateWork& work, const TemplateValue& value, std::string_view what) {
  if (!value.text()) work.fail(fmt::format("{} is {} instead of a text", what, value.kind()));
  return *value.text();
}

bool are_equal(TemplateWork& work, const TemplateValue& a, const TemplateValue& b) {
  work.spend(10);
  if (a.is_number() && b.is_number()) return as_double(a) == as_double(b);
  if (a.text() && b.text()) {
    work.spend(std::min(a.text()->size(), b.text()->size()));
    return *a.text() == *b.text();
  }
  if (a.list() && b.list()) {
    return std::equal(a.list()->begin(), a.list()->end(), b.list()->begin(), b.list()->end(),
                      [&](const auto& x, const auto& y) { return are_equal(work, x, y); });
  }
  if (a.dict() && b.dict()) {
    return a.dict()->size() == b.dict()->size() && std::all_of(a.dict()->begin(), a.dict()->end(), [&](const auto& entry) {
             const TemplateValue* other = find_key(work, *b.dict(), entry.first);
             return other && are_equal(work, entry.second, *other);
           });
  }
  return (a.is<TemplateNone>() && b.is<TemplateNone>()) || (a.is<TemplateUndefined>() && b.is<TemplateUndefined>());
}

bool is_in(TemplateWork& work, const TemplateValue& item, const TemplateValue& container) {
  if (container.text()) {
    const std::string& part = as_text(work, item, "what is looked for in a text");
    work.spend(container.text()->size() * (1 + part.size() / 64));
    return container.text()->find(part) != std::string::npos;
  }
  if (container.dict()) return item.text() && find_key(work, *container.dict(), *item.text());
  const TemplateList all = elements(work, container);
  return std::any_of(all.begin(), all.end(), [&](const auto& one) { return are_equal(work, one, item); });
}

int compared(TemplateWork& work, const TemplateValue& a, const TemplateValue& b) {
  if (a.is_number() && b.is_number()) return as_double(a) < as_double(b) ? -1 : as_double(a) > as_double(b) ? 1 : 0;
  if (!a.text() || !b.text()) work.fail(fmt::format("{} cannot be compared with {}", a.kind(), b.kind()));
  work.spend(std::min(a.text()->size(), b.text()->size()));
  return a.text()->compare(*b.text());
}

std::string written_text(TemplateWork& work, const TemplateValue& value) {
  if (const std::string* text = value.text()) {
    work.spend(text->size());
    return *text;
  }
  if (value.is<TemplateUndefined>()) return "";
  if (value.is<TemplateNone>()) return "None";
  if (value.is<bool>()) return value.get<bool>() ? "True" : "False";
  if (value.is<std::int64_t>()) return fmt::format("{}", value.get<std::int64_t>());
  if (value.is<double>()) return float_text(value.get<double>());
  work.fail(fmt::format("{} is written as text; use tojson or join", value.kind()));
}

std::string written_json(TemplateWork& work, const TemplateValue& value, std::optional<std::int64_t> indent) {
  if (indent && (*indent < 0 || *indent > 16)) work.fail(fmt::format("tojson: indent {}; valid: [0, 16]", *indent));
  JsonText json(work, indent);
  json.add(value, 0);
  return std::move(json.out);
}

TemplateList elements(TemplateWork& work, const TemplateValue& value) {
  TemplateList out;
  if (value.is<TemplateUndefined>()) return out;
  if (const TemplateList* list = value.list()) {
    work.spend(20 * list->size());
    out = *list;
  } else if (const TemplateDict* dict = value.dict()) {
    for (const auto& [key, unused] : *dict) {
      work.spend(key.size() + 10);
      out.emplace_back(key);
    }
  } else if (const std::string* text = value.text()) {
    work.spend(20 * text->size());
    for (const std::string_view character : characters_of(*text)) out.emplace_back(character);
  } else {
    work.fail(fmt::format("{} has no elements", value.kind()));
  }
  return out;
}

const TemplateValue* find_key(TemplateWork& work, const TemplateDict& dict, std::string_view key) {
  work.spend(1 + dict.size());
  const auto found = std::find_if(dict.begin(), dict.end(), [&](const auto& entry) { return entry.first == key; });
  return found == dict.end() ? nullptr : &found->second;
}

TemplateValue item_of(TemplateWork& work, const TemplateValue& value, const TemplateValue& key) {
  if (value.is<TemplateUndefined>()) {
    work.fail(key.text() ? fmt::format("{} of an undefined value", base::in_quotes(*key.text()))
                         : "an element of an undefined value");
  }
  if (value.dict() && key.text()) {
    const TemplateValue* found = find_key(work, *value.dict(), *key.text());
    return found ? *found : TemplateValue();
  }
  if (value.is<TemplateValue::Namespace>() && key.text()) {
    const TemplateNamespace& names = *value.get<TemplateValue::Namespace>();
    const auto found = names.find(*key.text());
    return found == names.end() ? TemplateValue() : found->second;
  }
  if ((!value.list() && !value.text()) || !key.is<std::int64_t>()) return {};
  const std::int64_t index = key.get<std::int64_t>();
  const TemplateList all = value.list() ? TemplateList() : elements(work, value);
  const TemplateList& list = value.list() ? *value.list() : all;
  const auto size = static_cast<std::int64_t>(list.size());
  if (index < -size || index >= size) return {};
  return list[static_cast<std::size_t>(index < 0 ? index + size : index)];
}

TemplateValue slice_of(TemplateWork& work, const TemplateValue& value, std::optional<std::int64_t> begin,
                       std::optional<std::int64_t> end, std::int64_t step) {
  if (step != 1 && step != -1) work.fail(fmt::format("a slice with step {}; valid: 1, -1", step));
  if (!value.list() && !value.text()) work.fail(fmt::format("a slice of {}", value.kind()));
  const TemplateList all = elements(work, value);
  const auto size = static_cast<std::int64_t>(all.size());
  // Backwards the ends are one lower: [::-1] goes from the last to before the first.
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? size : size - 1;
  const auto within = [&](std::int64_t at) { return std::clamp(at < 0 ? std::max(at, -size - 1) + size : at, low, high); };
  const std::int64_t first = begin ? within(*begin) : step > 0 ? low : high, last = end ? within(*end) : step > 0 ? high : low;
  TemplateList out;
  for (std::int64_t at = first; step > 0 ? at < last : at > last; at += step) out.push_back(all[static_cast<std::size_t>(at)]);
  if (value.list()) return out;
  std::string text;
  for (const TemplateValue& character : out) text += *character.text();
  return text;
}

// ops: + - * / % as Python's, "//" and "~".
TemplateValue calculated(TemplateWork& work, std::string_view op, const TemplateValue& a, const TemplateValue& b) {
  if (op == "~" || (op == "+" && a.text() && b.text())) {
    std::string out = written_text(work, a);
    return out += written_text(work, b);
  }
  if (op == "+" && a.list() && b.list()) {
    TemplateList out = elements(work, a);
    for (const TemplateValue& value : elements(work, b)) out.push_back(value);
    return out;
  }
  if (op == "*" && a.text() && b.is<std::int64_t>()) {
    std::string out;
    for (std::int64_t i = 0; i < b.get<std::int64_t>(); ++i) {
      work.spend(a.text()->size() + 1);
      out += *a.text();
    }
    return out;
  }
  if (!a.is_number() || !b.is_number()) work.fail(fmt::format("{} {} {} has no meaning", a.kind(), op, b.kind()));
  if (op == "/") return float_result(work, 'd', as_double(a), as_double(b));
  const char letter = op[0];
  if (a.is<double>() || b.is<double>()) return float_result(work, letter, as_double(a), as_double(b));
  return integer_result(work, letter, as_integer(work, a, ""), as_integer(work, b, ""));
}

}  // namespace cautious::data
