// Fields by name, for every struct with a fields() (cautious/detail/field.h): list, set, check, copy. Recipes, options,
// schedules and configurations go through here, so that a field is a member and a line in fields(), and nothing else.
#pragma once

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <vector>

#include <cautious/detail/field.h>

#include "base/text.h"

namespace cautious::base {

template <class Owner, class Visitor>
void each_field(Owner& owner, const Visitor& visitor);

namespace fields {  // one overload per kind of field

template <class Owner, class Any, class Visitor>
void visit(Owner& owner, const Any& field, const Visitor& visitor) {
  visitor(owner, field);
}
template <class Owner, class Outer, class Inner, class Visitor>
void visit(Owner& owner, const Part<Outer, Inner>& part, const Visitor& visitor) {
  each_field(owner.*part.member, visitor);
}

// How a message names the field: "beta1 of adam", or "threads" where the owner has no name.
template <class Owner>
std::string label(const Owner&, std::string_view field) {
  if constexpr (requires { Owner::name; }) {
    return std::string(field) + " of " + std::string(Owner::name);
  } else {
    return std::string(field);
  }
}

// The names of the valid choices.
template <class Owner, class Enum>
std::vector<std::string_view> choices_of(const Choice<Owner, Enum>& field) {
  constexpr auto all = names_of(Enum{});
  std::vector<std::string_view> names(all.begin(), all.end());
  if (!field.only.empty()) names.clear();
  for (const Enum value : field.only) names.push_back(name_of(value));
  return names;
}

template <class Owner, class Value>
FieldInfo info(const Owner& owner, const Field<Owner, Value>& field) {
  constexpr bool whole = std::is_integral_v<Value>;
  std::string value;
  if constexpr (whole) {
    value = std::to_string(owner.*field.member);
  } else {
    value = to_text(owner.*field.member);
  }
  return {std::string(field.name), std::move(value), to_string(field.range), std::string(field.help),
          whole ? FieldKind::whole : FieldKind::number};
}
template <class Owner, class Enum>
FieldInfo info(const Owner& owner, const Choice<Owner, Enum>& field) {
  return {std::string(field.name), std::string(name_of(owner.*field.member)), join(choices_of(field)), std::string(field.help),
          FieldKind::choice};
}
template <class Owner>
FieldInfo info(const Owner& owner, const Flag<Owner>& field) {
  return {std::string(field.name), owner.*field.member ? "true" : "false", "true, false", std::string(field.help),
          FieldKind::flag};
}
template <class Owner>
FieldInfo info(const Owner& owner, const Numbers<Owner>& field) {
  std::string value;
  for (const double number : owner.*field.member) value += (value.empty() ? "" : ",") + to_text(number);
  return {std::string(field.name), std::move(value), "numbers, 1,2,3", std::string(field.help), FieldKind::numbers};
}

template <class Owner, class Value>
void assign(Owner& owner, const Field<Owner, Value>& field, std::string_view what, std::string_view text) {
  if constexpr (std::is_unsigned_v<Value>) {
    owner.*field.member = static_cast<Value>(to_unsigned(what, text, field.range, field.name));
  } else if constexpr (std::is_integral_v<Value>) {
    owner.*field.member = static_cast<Value>(to_integer(what, text, field.range, field.name));
  } else {
    owner.*field.member = to_number(what, text, field.range, field.name);
  }
}
template <class Owner, class Enum>
void assign(Owner& owner, const Choice<Owner, Enum>& field, std::string_view what, std::string_view text) {
  const std::size_t chosen = index_of_name(what, first_name<Enum>(text), choices_of(field), field.name);
  owner.*field.member = field.only.empty() ? static_cast<Enum>(chosen) : field.only[chosen];
}
template <class Owner>
void assign(Owner& owner, const Flag<Owner>& field, std::string_view what, std::string_view text) {
  constexpr std::array<std::string_view, 2> kNames{"false", "true"};
  owner.*field.member = index_of_name(what, text, kNames, field.name) == 1;
}
template <class Owner>
void assign(Owner& owner, const Numbers<Owner>& field, std::string_view what, std::string_view text) {
  std::vector<double> numbers;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    numbers.push_back(to_number(what, text.substr(0, comma), kFinite, field.name));
    more = comma != std::string_view::npos;
    text = more ? text.substr(comma + 1) : "";
  }
  owner.*field.member = std::move(numbers);
}

template <class Owner, class Value>
void check(const Owner& owner, const Field<Owner, Value>& field, std::string_view what) {
  const Value value = owner.*field.member;
  if constexpr (std::is_integral_v<Value>) {
    if (!field.range.contains(static_cast<long double>(value)))
      out_of_range(what, std::to_string(value), field.range, field.name);
  } else {
    check_range(what, value, field.range, field.name);
  }
}
template <class Owner, class Enum>
void check(const Owner& owner, const Choice<Owner, Enum>& field, std::string_view what) {
  const Enum value = owner.*field.member;
  check_choice(value, what, field.name);
  if (field.only.empty() || std::find(field.only.begin(), field.only.end(), value) != field.only.end()) return;
  (void)index_of_name(what, name_of(value), choices_of(field), field.name);
}
template <class Owner>
void check(const Owner&, const Flag<Owner>&, std::string_view) {}
template <class Owner>
void check(const Owner& owner, const Numbers<Owner>& field, std::string_view what) {
  for (const double number : owner.*field.member) check_range(what, number, kFinite, field.name);
}

template <class Owner, class Any>
void check_part(const Owner&, const Any&) {}
template <class Owner, class Inner>
void check_part(const Owner& owner, const Part<Owner, Inner>& part) {
  check(owner.*part.member);
}

}  // namespace fields

// Calls visitor(owner, field) for every field of `owner` and of its parts; a const owner stays const.
template <class Owner, class Visitor>
void each_field(Owner& owner, const Visitor& visitor) {
  std::apply([&](const auto&... field) { (fields::visit(owner, field, visitor), ...); }, std::remove_const_t<Owner>::fields());
}

template <class Owner>
std::vector<FieldInfo> fields_of(const Owner& owner) {
  std::vector<FieldInfo> all;
  each_field(owner, [&](const auto& of, const auto& field) { all.push_back(fields::info(of, field)); });
  return all;
}

// The fields of `owner` whose names are in `listed`, a tuple of fields, in its order.
template <class Owner, class... Listed>
std::vector<FieldInfo> fields_of(const Owner& owner, const std::tuple<Listed...>& listed) {
  std::vector<FieldInfo> all;
  const auto add = [&](std::string_view name) {
    each_field(owner, [&](const auto& of, const auto& field) {
      if (field.name == name) all.push_back(fields::info(of, field));
    });
  };
  std::apply([&](const auto&... field) { (add(field.name), ...); }, listed);
  return all;
}

// Whether there is such a field; then it has the value. Unreadable or out of range: an Error, and `owner` is unchanged.
template <class Owner>
bool set_if_field(Owner& owner, std::string_view name, std::string_view value) {
  bool found = false;
  each_field(owner, [&](auto& of, const auto& field) {
    if (found || field.name != name) return;
    fields::assign(of, field, fields::label(of, name), value);
    found = true;
  });
  return found;
}

// The same; a field that does not exist is an Error: "no `what` named ...".
template <class Owner>
void set_field(Owner& owner, std::string_view what, std::string_view name, std::string_view value) {
  if (set_if_field(owner, name, value)) return;
  std::vector<std::string_view> names;
  each_field(owner, [&](const auto&, const auto& field) { names.push_back(field.name); });
  throw Error(Fault::usage, unknown(what, name, names), {.key = std::string(name)});
}

// Throws an Error if a field is out of range, or if check() says that the fields of a part do not go together.
template <class Owner>
void check_fields(const Owner& owner) {
  each_field(owner, [](const auto& of, const auto& field) { fields::check(of, field, fields::label(of, field.name)); });
  std::apply([&](const auto&... field) { (fields::check_part(owner, field), ...); }, Owner::fields());
}

// Copies the fields that both have under one name and type.
template <class From, class To>
void copy_fields(const From& from, To& to) {
  each_field(from, [&](const auto& source, const auto& field) {
    each_field(to, [&](auto& target, const auto& known) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(target.*known.member)>,
                                   std::remove_cvref_t<decltype(source.*field.member)>>) {
        if (known.name == field.name) target.*known.member = source.*field.member;
      }
    });
  });
}

// "name=value name=value"
std::string to_line(const std::vector<FieldInfo>& fields);

}  // namespace cautious::base
