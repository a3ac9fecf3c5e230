#include "cli/replay.h"

#include <variant>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cautious/error.h>

#include "base/text.h"

namespace cautious::cli {
namespace {

constexpr const char* kGroup = "Recipe";

// One line of a field's help: what it means to these owners. Owners that agree share a line.
struct Meaning {
  std::vector<std::string> owners;
  FieldInfo field;
};
using Meanings = std::vector<Meaning>;

void note(Meanings& meanings, const std::string& owner, const FieldInfo& field) {
  for (Meaning& known : meanings) {
    if (known.field.help == field.help && known.field.value == field.value && known.field.valid == field.valid) {
      known.owners.push_back(owner);
      return;
    }
  }
  meanings.push_back({{owner}, field});
}

bool belongs_to_recipe(const std::string& field) { return field == "decay" || field == "coupling" || field == "weight_decay"; }

// Fields of rules and decays in the order they are declared; then decay, coupling and weight_decay, whose owners are recipes.
std::vector<std::pair<std::string, Meanings>> all_fields() {
  std::vector<std::pair<std::string, Meanings>> all;
  const auto meanings_of = [&](const std::string& name) -> Meanings& {
    for (auto& [known, meanings] : all) {
      if (known == name) return meanings;
    }
    return all.emplace_back(name, Meanings{}).second;
  };
  for (const std::string& name : recipe_names()) {
    Recipe bare = recipe(name);
    bare.decay = None{};
    if (name_of(bare.rule) != name) continue;  // another name for a rule that is listed already
    for (const FieldInfo& field : fields(bare)) {
      if (!belongs_to_recipe(field.name)) note(meanings_of(field.name), name, field);
    }
  }
  for (const std::string& name : decay_names()) {
    Recipe decayed{.rule = Sgd{}};  // a rule without fields: what is left is the decay's
    decayed.decay = decay(name);
    for (const FieldInfo& field : fields(decayed)) {
      if (!belongs_to_recipe(field.name)) note(meanings_of(field.name), "decay " + name, field);
    }
  }
  for (const std::string& name : recipe_names()) {
    for (const FieldInfo& field : fields(recipe(name))) {
      if (belongs_to_recipe(field.name)) note(meanings_of(field.name), name, field);
    }
  }
  return all;
}

// A line for each meaning, or everything on one.
std::string help_of(const Meanings& meanings) {
  const FieldInfo& first = meanings.front().field;
  std::string text = fmt::format("{}; valid: {}", first.help, first.valid);
  if (meanings.size() == 1) {
    return fmt::format("{} (default: {}; {})", text, first.value.empty() ? "none" : first.value,
                       base::join(meanings.front().owners));
  }
  for (const Meaning& meaning : meanings) {
    const std::string own = meaning.field.help == first.help ? "" : ": " + meaning.field.help;
    text += fmt::format("\n  {} for {}{}", meaning.field.value, base::join(meaning.owners), own);
  }
  return text;
}

}  // namespace

void RecipeOptions::add_to(CLI::App& app) {
  app.add_option("--optimizer", optimizer_, "Recipe; valid: " + base::join(recipe_names()))
      ->required()
      ->group(kGroup)
      ->type_name("NAME");
  for (const auto& [name, meanings] : all_fields()) {
    const FieldKind kind = meanings.front().field.kind;
    const char* const type = kind == FieldKind::choice ? "NAME" : kind == FieldKind::numbers ? "NUMBERS" : "NUMBER";
    app.add_option_function<std::string>(
           "--" + name, [this, field = name](const std::string& text) { given_[field] = text; }, help_of(meanings))
        ->group(kGroup)
        ->type_name(type);
  }
}

Recipe RecipeOptions::recipe() const {
  Recipe result = cautious::recipe(optimizer_);
  if (given("decay")) set(result, "decay", given_.find("decay")->second);
  for (const auto& [field, text] : given_) {
    if (field != "decay") set(result, field, text);
  }
  if (result.weight_decay > 0 && std::holds_alternative<None>(result.decay) && !given("decay")) {
    std::vector<std::string> decaying;
    for (const std::string& name : recipe_names()) {
      const Recipe other = cautious::recipe(name);
      if (name_of(other.rule) == name_of(result.rule) && !std::holds_alternative<None>(other.decay)) decaying.push_back(name);
    }
    throw Error(Fault::usage, fmt::format("--weight_decay is {}, but optimizer '{}' has no decay; give --decay or use: {}",
                                          result.weight_decay, optimizer_, base::join(decaying)));
  }
  return result;
}

}  // namespace cautious::cli
