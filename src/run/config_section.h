// From members to keys: how a field of a type, or a text, becomes a key of a section. For the files that list the keys.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/fields.h"
#include "base/text.h"
#include "run/config_table.h"

namespace cautious::run {

inline constexpr Range kCount{1, 0x1p63, false, true};
inline constexpr Range kEvery{0, 0x1p63, false, true};

// A text or a list of texts as a field.
template <class Owner, class Value>
struct Text {
  std::string_view name;
  Value Owner::*member;  // std::string or std::vector<std::string>
  std::string_view valid, help;
};
template <class Owner, class Value>
Text(std::string_view, Value Owner::*, std::string_view, std::string_view) -> Text<Owner, Value>;

using Set = std::function<void(RunConfig&, std::string_view what, const ConfigValue&)>;

inline std::string toml_of(const FieldInfo& field) {
  if (field.kind == FieldKind::numbers) return fmt::format("[{}]", field.value);
  return field.kind == FieldKind::choice ? to_toml(std::string_view(field.value)) : field.value;
}

// The value as set() takes it for the field.
inline std::string text_for(const FieldInfo& field, std::string_view what, const ConfigValue& given) {
  if (field.kind == FieldKind::choice) return to_word(what, given, field.valid);
  if (field.kind == FieldKind::flag) return to_boolean(what, given) ? "true" : "false";
  return to_numeric_text(what, given, field.valid);
}

// A field as a key without its section and without a way to set it.
template <class Owner, class Any>
Key key_of(const Owner& owner, const Any& field) {
  const FieldInfo info = base::fields::info(owner, field);
  return {{info.name, toml_of(info), info.valid, info.help}};
}
template <class Owner, class Value>
Key key_of(const Owner& owner, const Text<Owner, Value>& field) {
  return {{std::string(field.name), to_toml(owner.*field.member), std::string(field.valid), std::string(field.help)}};
}

// One assign() per kind of field.
template <class Owner, class Value>
void assign(Owner& owner, const Field<Owner, Value>& field, std::string_view what, const ConfigValue& given) {
  if constexpr (std::is_integral_v<Value>) {
    owner.*field.member = static_cast<Value>(to_whole(what, given, field.range));
  } else {
    owner.*field.member = to_number(what, given, field.range);
  }
}
template <class Owner, class Enum>
void assign(Owner& owner, const Choice<Owner, Enum>& field, std::string_view what, const ConfigValue& given) {
  const std::string word = to_word(what, given, base::join(base::fields::choices_of(field)));
  base::with_context(std::string(what), [&] { base::fields::assign(owner, field, field.name, word); });
}
template <class Owner>
void assign(Owner& owner, const Flag<Owner>& field, std::string_view what, const ConfigValue& given) {
  owner.*field.member = to_boolean(what, given);
}
template <class Owner>
void assign(Owner& owner, const Numbers<Owner>& field, std::string_view what, const ConfigValue& given) {
  base::fields::assign(owner, field, what, to_numeric_text(what, given, "numbers"));
}
template <class Owner>
void assign(Owner& owner, const Text<Owner, std::string>& field, std::string_view what, const ConfigValue& given) {
  owner.*field.member = to_word(what, given, field.valid);
}
template <class Owner>
void assign(Owner& owner, const Text<Owner, std::vector<std::string>>& field, std::string_view what, const ConfigValue& given) {
  owner.*field.member = to_words(what, given);
}

// Adds keys to a section; Find takes a RunConfig, const or not, to the owner of the members.
template <class Find>
class Section {
 public:
  Section(std::vector<Key>& keys, const RunConfig& config, std::string name, Find find)
      : keys_(keys), config_(config), name_(std::move(name)), find_(find) {}

  template <class... Any>
  void add(const Any&... field) {
    (add_one("", field), ...);
  }

  // Of the type's own fields those that the names choose.
  template <class... Any>
  void add_only(const std::tuple<Any...>& fields, std::initializer_list<std::string_view> names) {
    each(fields, [&](const auto& field) {
      if (std::ranges::find(names, field.name) != names.end()) add_one("", field);
    });
  }
  template <class... Any>
  void add_all_but(const std::tuple<Any...>& fields, std::initializer_list<std::string_view> names,
                   std::string_view prefix = "") {
    each(fields, [&](const auto& field) {
      if (std::ranges::find(names, field.name) == names.end()) add_one(prefix, field);
    });
  }

  // A key with a way of its own.
  void add(Key key) {
    if (!name_.empty()) key.name = fmt::format("{}.{}", name_, key.name);
    keys_.push_back(std::move(key));
  }

  // Every field of the recipe, which depend on its rule and its decay.
  template <class Owner>
  void add_recipe(Recipe Owner::*member) {
    for (const FieldInfo& field : fields(find_(config_).*member)) {
      const Set set_field = [find = find_, member, field](RunConfig& c, std::string_view what, const ConfigValue& given) {
        const std::string text = text_for(field, what, given);
        base::with_context(std::string(what), [&] { set(find(c).*member, field.name, text); });
      };
      add(Key{{field.name, toml_of(field), field.valid, field.help}, set_field});
    }
  }

 private:
  template <class... Any, class Call>
  static void each(const std::tuple<Any...>& fields, const Call& call) {
    std::apply([&](const auto&... field) { (call(field), ...); }, fields);
  }

  template <class Any>
  void add_one(std::string_view prefix, const Any& field) {
    Key key = key_of(find_(config_), field);
    key.name.insert(0, prefix);
    key.set = [find = find_, field](RunConfig& config, std::string_view what, const ConfigValue& given) {
      assign(find(config), field, what, given);
    };
    add(std::move(key));
  }

  std::vector<Key>& keys_;
  const RunConfig& config_;
  std::string name_;
  Find find_;
};

// The keys that depend on the task alone: what is trained on what.
void add_task(std::vector<Key>& keys, const RunConfig& config);
void add_objective(std::vector<Key>& keys, const RunConfig& config);
void add_model(std::vector<Key>& keys, const RunConfig& config);
void add_data(std::vector<Key>& keys, const RunConfig& config);
void add_lora(std::vector<Key>& keys, const RunConfig& config);

}  // namespace cautious::run
