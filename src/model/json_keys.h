// Reading and writing the descriptions of models: objects of JSON whose keys are required, optional or fixed.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::model {

using Json = nlohmann::ordered_json;

template <class Value>
Json to_json(const Value& value) {
  if constexpr (std::is_enum_v<Value>) {
    return std::string(cautious::name_of(value));
  } else {
    return value;
  }
}

// One object of the file. null counts as absent. Errors have no file yet; read_described() adds it.
class Keys {
 public:
  explicit Keys(const Json& object) : object_(object) {
    if (!object.is_object()) refuse(fmt::format("it is {}, not an object", base::in_quotes(object.dump())));
  }

  const Json* find(const char* key) const {
    asked_.insert(key);
    const auto at = object_.find(key);
    return at == object_.end() || at->is_null() ? nullptr : &*at;
  }
  // null too.
  bool contains(const char* key) const { return object_.contains(key); }

  // A missing key leaves the value as it is.
  void maybe(const char* key, std::int64_t& value, const Range& range = kSize) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    const bool inside = found->is_number_integer() && range.contains(found->get<double>());
    if (!inside) wrong(key, *found, "a whole number in " + to_string(range));
    value = found->get<std::int64_t>();
  }
  void maybe(const char* key, double& value) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number()) wrong(key, *found, "a number");
    value = found->get<double>();
  }
  void maybe(const char* key, bool& value) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) wrong(key, *found, "true or false");
    value = found->get<bool>();
  }
  void maybe(const char* key, std::string& value) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_string()) wrong(key, *found, "a text");
    value = found->get<std::string>();
  }
  template <class Enum>
  requires std::is_enum_v<Enum>
  void maybe(const char* key, Enum& value) const {
    std::string name = std::string(cautious::name_of(value));
    maybe(key, name);
    value = base::named<Enum>(key, name);
  }

  template <class Value>
  void maybe(const char* key, std::vector<Value>& values) const {
    const Json* found = find(key);
    if (found == nullptr) return;
    constexpr bool texts = std::is_same_v<Value, std::string>;
    const auto fits = [&](const Json& value) { return texts ? value.is_string() : value.is_number(); };
    if (!found->is_array() || !std::all_of(found->begin(), found->end(), fits))
      wrong(key, *found, texts ? "a list of texts" : "a list of numbers");
    values = found->get<std::vector<Value>>();
  }

  void demand(const char* key) const {
    if (find(key) == nullptr) refuse(fmt::format("there is no key '{}'", key));
  }
  template <class Value>
  void require(const char* key, Value& value) const {
    demand(key);
    maybe(key, value);
  }

  // Throws an Error that names the first key which was neither asked for above nor is one of these; `what` has the keys.
  void no_others(std::string_view what, std::span<const std::string_view> passed_over) const {
    for (const auto& item : object_.items()) {
      const bool known = asked_.contains(item.key()) || std::ranges::find(passed_over, item.key()) != passed_over.end();
      if (known || item.value().is_null()) continue;
      refuse(fmt::format("{} is not a key of {} that we know; remove it if the model computes the same without it",
                         base::in_quotes(item.key()), what));
    }
  }

  // Every key with its value.
  auto items() const { return object_.items(); }

  // Throws an Error that names the first key which is none of these.
  void all_among(std::span<const std::string_view> names) const {
    for (const auto& item : object_.items()) (void)base::index_of_name("key", item.key(), names);
  }

  // Absent, or the one value that means what our model does.
  void only(const char* key, const Json& valid) const {
    const Json* found = find(key);
    if (found != nullptr && *found != valid) unsupported(key, *found, valid.is_null() ? "absent" : valid.dump());
  }

  [[noreturn]] static void refuse(const std::string& what) { throw Error(Fault::usage, what); }
  [[noreturn]] static void unsupported(const char* key, const Json& value, const std::string& valid) {
    refuse(fmt::format("'{}' is {}, which our models do not have; valid: {}", key, base::in_quotes(value.dump()), valid));
  }

  [[noreturn]] static void wrong(const char* key, const Json& value, const std::string& valid) {
    refuse(fmt::format("'{}' is {}; valid: {}", key, base::in_quotes(value.dump()), valid));
  }

 private:
  static constexpr Range kSize{1, 1e9, false, false};

  const Json& object_;
  mutable std::set<std::string, std::less<>> asked_;
};

// read(keys) of the object that a file's text is. Whatever is wrong is an Error(Fault::data) that begins with `file`.
template <class Described, class Read>
Described read_described(std::string_view text, const std::string& file, const Read& read) {
  static constexpr int kDeepest = 64;  // printing a value takes stack by its depth
  const auto not_too_deep = [](int depth, Json::parse_event_t, const Json&) {
    if (depth > kDeepest) Keys::refuse(fmt::format("values are nested deeper than {}", kDeepest));
    return true;
  };
  try {
    const Json json = Json::parse(text, not_too_deep);
    return read(Keys(json));
  } catch (const nlohmann::json::exception& error) {
    std::string_view what = error.what();  // "[json.exception.parse_error.101] parse error at line 1, ..."
    what.remove_prefix(what.find(']') + 2);
    throw Error(Fault::data, fmt::format("{}: not JSON: {}", file, base::in_quotes(what)));
  } catch (const Error& error) {
    throw Error(Fault::data, fmt::format("{}: {}", file, error.what()));
  }
}

}  // namespace cautious::model
