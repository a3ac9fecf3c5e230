// Named recipes as a table, and fields by name, generic over the fields() of every rule and decay.
#include <cautious/recipe.h>

#include <algorithm>
#include <array>
#include <utility>
#include <variant>

#include <fmt/format.h>

#include <cautious/error.h>

#include "base/fields.h"
#include "optim/shaping.h"

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

template <class... R>
std::string shaping_rules(const std::variant<R...>*) {
  std::vector<std::string_view> names;
  const auto add = [&]<class One>(const One& rule) {
    if constexpr (requires { shaping(rule); }) names.push_back(One::name);
  };
  (add(R{}), ...);
  return base::join(names);
}

void check_mask(const Recipe& recipe) {
  if (!by_momentum(recipe.decay) || optim::shaping_of(recipe.rule) != Shaping::none) return;
  throw Error(Fault::usage,
              fmt::format("mask=momentum is for rules that shape their direction ({}); that of {} is not shaped and has the "
                          "signs of what it is made of already: leave mask=direction",
                          shaping_rules(static_cast<const Rule*>(nullptr)), name_of(recipe.rule)),
              {.key = "mask"});
}

// What "no field named ..." calls the owner.
std::string field_of(const Recipe& recipe) {
  return fmt::format("field of {} with decay {}", name_of(recipe.rule), name_of(recipe.decay));
}

}  // namespace

Recipe recipe(std::string_view name) {
  const std::vector<std::string_view> names = all_recipes();
  (void)base::index_of_name("optimizer", name, names);
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

Decay decay_for(const Rule& rule, Decay decay) {
  if (optim::shaping_of(rule) != Shaping::none) return decay;
  std::visit(
      []<class D>(D& d) {
        if constexpr (kMaskBy<D>) d.mask = MaskBy::direction;
      },
      decay);
  return decay;
}

std::string_view name_of(const Rule& rule) { return Rules::names[rule.index()]; }
std::string_view name_of(const Decay& decay) { return Decays::names[decay.index()]; }
double coupled_weight_decay(Coupling coupling, double weight_decay, double lr, double lr_max) {
  const bool needs_peak = coupling == Coupling::corrected || coupling == Coupling::independent;
  if (needs_peak && !(lr_max > 0)) {
    throw Error(Fault::usage, fmt::format("coupling '{}' needs the schedule's peak: lr_max is {}; valid: (0, inf)",
                                          name_of(coupling), lr_max));
  }
  switch (coupling) {
    case Coupling::plain:
      return weight_decay;
    case Coupling::corrected:
      return weight_decay * (lr / lr_max);  // exactly weight_decay at the peak
    case Coupling::independent:
      return weight_decay / lr_max;
    case Coupling::squared:
      return weight_decay * lr;
  }
  throw Error(Fault::usage, fmt::format("coupling {} is none of the four", static_cast<int>(coupling)));
}

std::vector<FieldInfo> fields(const Recipe& recipe) {
  std::vector<FieldInfo> all;
  const auto add = [&](const auto& owner) {
    for (FieldInfo& field : base::fields_of(owner)) all.push_back(std::move(field));
  };
  std::visit(add, recipe.rule);
  all.push_back(
      {"decay", std::string(name_of(recipe.decay)), base::join(Decays::names), "which coordinates decay", FieldKind::choice});
  std::visit(add, recipe.decay);
  add(recipe);
  return all;
}

void set(Recipe& recipe, std::string_view field, std::string_view value) {
  if (field == "decay") {
    recipe.decay = decay(value);
    return;
  }
  const auto set_in = [&](auto& owner) { return base::set_if_field(owner, field, value); };
  Recipe changed = recipe;
  if (std::visit(set_in, changed.rule) || std::visit(set_in, changed.decay) || set_in(changed)) {
    check_mask(changed);
    recipe = std::move(changed);
    return;
  }
  const std::vector<FieldInfo> known = fields(recipe);
  std::vector<std::string_view> names(known.size());
  std::transform(known.begin(), known.end(), names.begin(), [](const FieldInfo& one) { return std::string_view(one.name); });
  throw Error(Fault::usage, base::unknown(field_of(recipe), field, names), {.key = std::string(field)});
}

void set(Recipe& recipe, std::string_view field, double value) { set(recipe, field, base::to_text(value)); }

void check(const Recipe& recipe) {
  const auto check_in = [](const auto& owner) { base::check_fields(owner); };
  std::visit(check_in, recipe.rule);
  std::visit(check_in, recipe.decay);
  check_in(recipe);
  check_mask(recipe);
}

std::string to_string(const Recipe& recipe) {
  return fmt::format("{} {}", name_of(recipe.rule), base::to_line(fields(recipe)));
}

Recipe parse_recipe(std::string_view line) {
  const std::vector<base::Word> words = base::words_of(line);
  if (words.empty()) {
    throw Error(Fault::usage, "the recipe is empty; write one as in \"adamw decay=cautious beta2=0.95\"; recipes: " +
                                  base::join(all_recipes()));
  }
  Recipe made =
      base::with_context(base::position_of("recipe", line, words.front()), [&] { return recipe(words.front().text); });
  const std::vector<base::Setting> settings = base::settings_of("recipe", line, std::span(words).subspan(1));
  for (const bool decays : {true, false}) {  // the decay first, whatever the order: its own fields begin with it
    for (const base::Setting& setting : settings) {
      if ((setting.field == "decay") != decays) continue;
      base::with_context(setting.where, [&] { set(made, setting.field, setting.value); });
    }
  }
  return made;
}

}  // namespace cautious
