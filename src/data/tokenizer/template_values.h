// The values of a chat template, which are Python's, and what filters, tests and methods make of them. All work is counted: a
// template comes with a model from anywhere, and may be written to never end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace cautious::data {

struct TemplateStatement;
class TemplateValue;

using TemplateList = std::vector<TemplateValue>;
using TemplateDict = std::vector<std::pair<std::string, TemplateValue>>;  // in the order of adding

// What may still be done. Errors are of Fault::data, with the template's name and line.
struct TemplateWork {
  std::string where;
  std::uint64_t left;  // bytes written and, times ten, steps taken
  int line = 1;

  [[noreturn]] void fail(const std::string& what) const;
  void spend(std::uint64_t amount) {
    if (amount > left) fail("the template does not come to an end, or makes too much text");
    left -= amount;
  }
};

struct TemplateUndefined {};
struct TemplateNone {};
// What namespace() makes: the one thing that can change. Lists, dicts and namespaces cannot hold one, so nothing holds itself.
using TemplateNamespace = std::map<std::string, TemplateValue, std::less<>>;

class TemplateValue {
 public:
  using Text = std::shared_ptr<const std::string>;
  using List = std::shared_ptr<const TemplateList>;
  using Dict = std::shared_ptr<const TemplateDict>;
  using Namespace = std::shared_ptr<TemplateNamespace>;
  using Macro = const TemplateStatement*;

  TemplateValue() : held_(TemplateUndefined{}) {}
  TemplateValue(TemplateNone none) : held_(none) {}
  TemplateValue(bool value) : held_(value) {}
  TemplateValue(std::int64_t value) : held_(value) {}
  TemplateValue(double value) : held_(value) {}
  TemplateValue(std::string value) : held_(std::make_shared<const std::string>(std::move(value))) {}
  TemplateValue(std::string_view value) : TemplateValue(std::string(value)) {}
  TemplateValue(const char* value) = delete;  // would be a bool
  TemplateValue(TemplateList value);
  TemplateValue(TemplateDict value);
  TemplateValue(Namespace value) : held_(std::move(value)) {}
  TemplateValue(Macro value) : held_(value) {}

  template <class Kind>
  bool is() const {
    return std::holds_alternative<Kind>(held_);
  }
  template <class Kind>
  const Kind& get() const {
    return std::get<Kind>(held_);
  }
  const std::string* text() const { return is<Text>() ? get<Text>().get() : nullptr; }
  const TemplateList* list() const { return is<List>() ? get<List>().get() : nullptr; }
  const TemplateDict* dict() const { return is<Dict>() ? get<Dict>().get() : nullptr; }
  bool is_number() const { return is<bool>() || is<std::int64_t>() || is<double>(); }
  std::string_view kind() const;        // for messages
  int depth() const { return depth_; }  // of lists and mappings within each other

 private:
  std::variant<TemplateUndefined, TemplateNone, bool, std::int64_t, double, Text, List, Dict, Namespace, Macro> held_;
  int depth_ = 0;
};

bool is_true(const TemplateValue& value);
bool are_equal(TemplateWork& work, const TemplateValue& a, const TemplateValue& b);
bool is_in(TemplateWork& work, const TemplateValue& item, const TemplateValue& container);
// <0 where a is before b.
int compared(TemplateWork& work, const TemplateValue& a, const TemplateValue& b);
double as_double(const TemplateValue& number);
std::int64_t as_integer(TemplateWork& work, const TemplateValue& value, std::string_view what);
const std::string& as_text(TemplateWork& work, const TemplateValue& value, std::string_view what);
// What {{ value }} writes.
std::string written_text(TemplateWork& work, const TemplateValue& value);
std::string written_json(TemplateWork& work, const TemplateValue& value, std::optional<std::int64_t> indent);
// What a loop goes over: elements, keys, characters; nothing of what is undefined.
TemplateList elements(TemplateWork& work, const TemplateValue& value);
const TemplateValue* find_key(TemplateWork& work, const TemplateDict& dict, std::string_view key);
// The item of a dict or namespace, the element of a list or text; undefined if there is none.
TemplateValue item_of(TemplateWork& work, const TemplateValue& value, const TemplateValue& key);
TemplateValue slice_of(TemplateWork& work, const TemplateValue& value, std::optional<std::int64_t> begin,
                       std::optional<std::int64_t> end, std::int64_t step);
TemplateValue calculated(TemplateWork& work, std::string_view op, const TemplateValue& a, const TemplateValue& b);

struct TemplateArguments {
  TemplateList positional;
  TemplateDict named;
};

// An argument by position or name, in the order of asking; what was not asked for is refused at the end.
class TemplateParameters {
 public:
  TemplateParameters(TemplateWork& work, std::string_view of, TemplateArguments arguments)
      : work_(work), of_(of), given_(std::move(arguments)) {}
  // Undefined if it is not given.
  TemplateValue take(std::string_view name);
  TemplateList take_rest() { return std::exchange(given_.positional, {}); }
  void finish() const;

 private:
  TemplateWork& work_;
  std::string of_;
  TemplateArguments given_;
};

// template_filters.cc
bool is_template_filter(std::string_view name);
bool is_template_test(std::string_view name);
TemplateValue filtered(TemplateWork& work, std::string_view name, const TemplateValue& value, TemplateArguments arguments);
bool tested(TemplateWork& work, std::string_view name, const TemplateValue& value, TemplateArguments arguments);

// template_methods.cc
TemplateValue method_result(TemplateWork& work, const TemplateValue& value, std::string_view name, TemplateArguments arguments);
// Without white space, or the given characters, at its ends.
std::string stripped(TemplateWork& work, const std::string& text, bool left, bool right, const TemplateValue& characters = {});
TemplateList range_of(TemplateWork& work, TemplateParameters& parameters);
std::string in_case(std::string_view text, bool upper);
// Words begin behind anything but a letter, as the method has it, or behind spaces, hyphens and brackets, as the filter.
std::string in_title_case(std::string_view text, bool after_any);
std::string replaced(TemplateWork& work, const std::string& text, const std::string& old, const std::string& by,
                     std::int64_t most = -1);

}  // namespace cautious::data
