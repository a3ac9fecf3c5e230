// Named recipes as a table, and fields by name, generic over the fields() of every rule and decay.
#include <cautious/recipe.h>

#include <array>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious {
namespace {

template <class Variant>
struct Alternatives;
template <class... Types>
struct Alternatives<std::variant<Types...>> {
  static constexpr std::array<std::string_view, sizeof...(Types)> names{Types::name...};
  static std::variant<Types...> make(std::size_t index) {
    const std::array<std::variant<Types...>, sizeof...(Types)> all{Types{}...};
    return all[index];
  }
};
using Rules = Alternatives<Rule>;
using Decays = Alternatives<Decay>;

// The recipes that are not "the rule, decoupled, 0.1": what else a name means. A rule without an entry is a recipe too.
struct Named {
  std::string_view name, rule;
  Decay decay = Decoupled{};
  Coupling coupling = Coupling::plain;
  double weight_decay = 0.1;
};
constexpr std::array kNamed{
    Named{.name = "sgd", .rule = "sgd", .weight_decay = 1e-4},
    Named{.name = "sgdm", .rule = "sgdm", .weight_decay = 1e-4},
    Named{.name = "adam", .rule = "adam", .decay = None{}, .weight_decay = 0},
    Named{.name = "adamw", .rule = "adam"},
    Named{.name = "adamc", .rule = "adam", .coupling = Coupling::corrected},
};

const Named* entry(std::string_view name) {
  for (const Named& named : kNamed) {
    if (named.name == name) return &named;
  }
  return nullptr;
}

std::vector<std::string_view> all_recipes() {
  std::vector<std::string_view> names;
  for (const std::string_view rule : Rules::names) {
    names.push_back(rule);
    for (const Named& named : kNamed) {
      if (named.rule == rule && named.name != rule) names.push_back(named.name);
    }
  }
  return names;
}

template <class Owner, class Visitor>
void each_field_in(Owner& owner, const Visitor& visitor);

template <class Owner, class Field, class Visitor>
void visit_field(Owner& owner, const Field& field, const Visitor& visitor) {
  visitor(owner, field);
}
template <class Owner, class Outer, class Inner, class Visitor>
void visit_field(Owner& owner, const Part<Outer, Inner>& part, const Visitor& visitor) {
  each_field_in(owner.*part.member, visitor);
}

template <class Owner, class Visitor>
void each_field_in(Owner& owner, const Visitor& visitor) {
  std::apply([&](const auto&... field) { (visit_field(owner, field, visitor), ...); }, std::remove_const_t<Owner>::fields());
}

// Calls visitor(owner, field) for every field of a rule or decay and of their parts; a const variant gives const owners.
template <class Variant, class Visitor>
void each_field_of(Variant& variant, const Visitor& visitor) {
  std::visit([&](auto& owner) { each_field_in(owner, visitor); }, variant);
}

// Whether the fields of a rule's part go together.
template <class Owner, class Field>
void check_part(const Owner&, const Field&) {}
template <class Owner, class Inner>
void check_part(const Owner& owner, const Part<Owner, Inner>& part) {
  check(owner.*part.member);
}

void check_parts(const Rule& rule) {
  std::visit(
      []<class Owner>(const Owner& owner) {
        std::apply([&](const auto&... field) { (check_part(owner, field), ...); }, Owner::fields());
      },
      rule);
}

template <class AnyRecipe, class Visitor>
void each_field(AnyRecipe& recipe, const Visitor& visitor) {
  each_field_of(recipe.rule, visitor);
  each_field_of(recipe.decay, visitor);
}

template <class Owner, class Value>
std::string text_of(const Owner& owner, const Field<Owner, Value>& field) {
  return fmt::format("{}", owner.*field.member);
}
template <class Owner, class Enum>
std::string text_of(const Owner& owner, const Choice<Owner, Enum>& field) {
  return std::string(name_of(owner.*field.member));
}

template <class Owner>
std::string text_of(const Owner& owner, const Numbers<Owner>& field) {
  return fmt::format("{}", fmt::join(owner.*field.member, ","));
}

template <class Owner, class Value>
std::string valid_of(const Field<Owner, Value>& field) {
  return to_string(field.range);
}
template <class Owner, class Enum>
std::string valid_of(const Choice<Owner, Enum>&) {
  return base::join(names_of(Enum{}));
}
template <class Owner>
std::string valid_of(const Numbers<Owner>&) {
  return "numbers, 1,2,3";
}

template <class Owner, class Value>
void assign(Owner& owner, const Field<Owner, Value>& field, std::string_view what, std::string_view text) {
  if constexpr (std::is_integral_v<Value>) {
    owner.*field.member = base::to_integer(what, text, field.range);
  } else {
    owner.*field.member = base::to_number(what, text, field.range);
  }
}
template <class Owner, class Enum>
void assign(Owner& owner, const Choice<Owner, Enum>& field, std::string_view what, std::string_view text) {
  owner.*field.member = base::named<Enum>(what, text);
}
template <class Owner>
void assign(Owner& owner, const Numbers<Owner>& field, std::string_view what, std::string_view text) {
  std::vector<double> numbers;
  for (bool more = !text.empty(); more;) {
    const std::size_t comma = text.find(',');
    numbers.push_back(base::to_number(what, text.substr(0, comma), kFinite));
    more = comma != std::string_view::npos;
    text = more ? text.substr(comma + 1) : "";
  }
  owner.*field.member = std::move(numbers);
}

template <class Owner, class Value>
void check_field(const Owner& owner, const Field<Owner, Value>& field, std::string_view what) {
  base::check_range(what, static_cast<double>(owner.*field.member), field.range);
}
template <class Owner, class Enum>
void check_field(const Owner& owner, const Choice<Owner, Enum>& field, std::string_view what) {
  base::check_choice(owner.*field.member, what);
}
template <class Owner>
void check_field(const Owner& owner, const Numbers<Owner>& field, std::string_view what) {
  for (const double number : owner.*field.member) base::check_range(what, number, kFinite);
}

template <class Owner>
std::string label(const Owner&, std::string_view field) {
  return fmt::format("{} of {}", field, Owner::name);
}

}  // namespace

Recipe recipe(std::string_view name) {
  const std::vector<std::string_view> names = all_recipes();
  base::index_of_name("optimizer", name, names);
  const Named* found = entry(name);
  const Named plain{.name = name, .rule = name};
  const Named& named = found ? *found : plain;
  const std::size_t rule = base::index_of_name("rule", named.rule, Rules::names);
  return {Rules::make(rule), named.decay, named.coupling, named.weight_decay};
}

std::vector<std::string> recipe_names() {
  const std::vector<std::string_view> names = all_recipes();
  return {names.begin(), names.end()};
}

std::vector<std::string> decay_names() { return {Decays::names.begin(), Decays::names.end()}; }

Decay decay(std::string_view name) { return Decays::make(base::index_of_name("decay", name, Decays::names)); }

std::string_view name_of(const Rule& rule) { return Rules::names[rule.index()]; }
std::string_view name_of(const Decay& decay) { return Decays::names[decay.index()]; }
std::vector<FieldInfo> fields(const Recipe& recipe) {
  std::vector<FieldInfo> all;
  const auto describe = [&](const auto& owner, const auto& field) {
    all.push_back({std::string(field.name), text_of(owner, field), valid_of(field), std::string(field.help)});
  };
  each_field_of(recipe.rule, describe);
  all.push_back({"decay", std::string(name_of(recipe.decay)), base::join(Decays::names), "which coordinates decay"});
  each_field_of(recipe.decay, describe);
  all.push_back({"coupling", std::string(name_of(recipe.coupling)), base::join(names_of(Coupling{})),
                 "how decay follows the learning rate"});
  all.push_back({"weight_decay", base::to_text(recipe.weight_decay), to_string(kNonnegative), "strength of the decay"});
  return all;
}

void set(Recipe& recipe, std::string_view field, std::string_view value) {
  if (field == "decay") {
    recipe.decay = decay(value);
  } else if (field == "coupling") {
    recipe.coupling = base::named<Coupling>("coupling", value);
  } else if (field == "weight_decay") {
    recipe.weight_decay = base::to_number("weight_decay", value, kNonnegative);
  } else {
    bool found = false;
    each_field(recipe, [&](auto& owner, const auto& known) {
      if (found || known.name != field) return;
      assign(owner, known, label(owner, field), value);
      found = true;
    });
    if (found) return;
    std::vector<std::string_view> names;
    each_field(std::as_const(recipe), [&](const auto&, const auto& known) { names.push_back(known.name); });
    names.insert(names.end(), {"decay", "coupling", "weight_decay"});
    const std::string what = fmt::format("field of {} with decay {}", name_of(recipe.rule), name_of(recipe.decay));
    throw Error(Fault::usage, base::unknown(what, field, names));
  }
}

void check(const Recipe& recipe) {
  each_field(recipe, [](const auto& owner, const auto& field) { check_field(owner, field, label(owner, field.name)); });
  check_parts(recipe.rule);
  base::check_choice(recipe.coupling, "coupling");
  base::check_range("weight_decay", recipe.weight_decay, kNonnegative);
}

std::string to_string(const Recipe& recipe) {
  std::string line(name_of(recipe.rule));
  for (const FieldInfo& field : fields(recipe)) line += fmt::format(" {}={}", field.name, field.value);
  return line;
}

}  // namespace cautious
