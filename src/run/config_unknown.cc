// The words for a key that there is not: what was meant, or which rule or layer took it away.
#include <algorithm>
#include <optional>
#include <variant>

#include "base/text.h"
#include "run/config_check.h"
#include "run/config_keys.h"

namespace cautious::run {
namespace {

std::optional<std::string> last_text(const std::vector<Assignment>& given, const std::string& name, Layer highest) {
  std::optional<std::string> text;
  for (const Assignment& a : given) {
    if (a.name == name && a.layer <= highest) text = a.value.text;
  }
  return text;
}

std::string name_up_to(const std::vector<Assignment>& given, const std::string& section, Layer highest) {
  const RunConfig::Optimizer standard;
  return last_text(given, section + ".name", highest).value_or(section == "optimizer" ? standard.name : standard.rest_name);
}

// The recipe that the layers up to this one make, before its fields are set; their names are good, having been applied.
Recipe recipe_up_to(const std::vector<Assignment>& given, const std::string& section, Layer highest) {
  Recipe result = recipe(name_up_to(given, section, highest));
  if (const auto decay_name = last_text(given, section + ".decay", highest)) set(result, "decay", *decay_name);
  return result;
}

bool has_field(const Recipe& recipe, std::string_view name) {
  const auto all = fields(recipe);
  return std::any_of(all.begin(), all.end(), [&](const FieldInfo& field) { return field.name == name; });
}

std::string described(std::string_view name, const Recipe& recipe) {
  return fmt::format("{} with decay {}", name, name_of(recipe.decay));
}

// A field of the file's recipe, which the command line has replaced by another.
void refuse_replaced(const RunConfig& config, const std::vector<Assignment>& given, const Assignment& assignment) {
  const std::string section(section_of(assignment.name));
  if (assignment.layer != Layer::file || (section != "optimizer" && section != "optimizer.rest")) return;
  const Recipe own = recipe_up_to(given, section, assignment.layer);
  if (!has_field(own, without_section(assignment.name))) return;
  const RunConfig::Optimizer& now = config.optimizer;
  const std::string before = described(name_up_to(given, section, assignment.layer), own);
  const std::string after = section == "optimizer" ? described(now.name, now.recipe) : described(now.rest_name, now.rest);
  throw Error(Fault::usage, fmt::format("{} is a key of {}, but the command line makes it {}; remove the key from the file, or "
                                        "leave {}.name and {}.decay as they are there",
                                        what_of(assignment), before, after, section, section));
}

void refuse_rest(const RunConfig& config, const std::vector<Assignment>& given, const Assignment& assignment) {
  const Rule& rule = config.optimizer.recipe.rule;
  if (section_of(assignment.name) != "optimizer.rest" || works_on_matrices(rule)) return;
  const std::string name = std::holds_alternative<LionK>(rule) ? "optimizer.k" : "optimizer.name";
  const auto set = std::find_if(given.rbegin(), given.rend(), [&](const Assignment& a) { return a.name == name; });
  const std::string what = set == given.rend() ? name : what_of(*set);
  const std::string value = std::holds_alternative<LionK>(rule) ? std::string(name_of(std::get<LionK>(rule).k)) : config.optimizer.name;
  throw Error(Fault::usage,
              fmt::format("{}: {} is for rules that work on matrices alone (muon, lion-k with k = nuclear), but {} is "
                          "'{}', which takes every tensor; remove the keys of [optimizer.rest]",
                          place_of(assignment), base::in_quotes(assignment.name), what, value));
}

struct Known {
  std::vector<std::string> names;          // "optimizer.lr"
  std::vector<std::string_view> endings;   // "lr", in the same order
  std::vector<std::string_view> siblings;  // the endings of one section
};

Known known_keys(const RunConfig& config, std::string_view section) {
  Known known;
  for (const Key& key : keys_of(config)) known.names.push_back(key.name);
  for (const std::string& name : known.names) {
    known.endings.push_back(without_section(name));
    if (section_of(name) == section) known.siblings.push_back(known.endings.back());
  }
  return known;
}

// The whole name of the key that was probably meant: this very word in any section, or the closest, of this section first.
std::string meant(const Known& known, std::string_view section, std::string_view ending) {
  const auto same = std::find(known.endings.begin(), known.endings.end(), ending);
  if (same != known.endings.end()) return known.names[static_cast<std::size_t>(same - known.endings.begin())];
  if (const auto sibling = base::closest(ending, known.siblings); !sibling.empty()) return fmt::format("{}.{}", section, sibling);
  const auto other = std::find(known.endings.begin(), known.endings.end(), base::closest(ending, known.endings));
  return other == known.endings.end() ? "" : known.names[static_cast<std::size_t>(other - known.endings.begin())];
}

std::string choices_in(const RunConfig& config, std::string_view section, const Known& known) {
  if (known.siblings.empty()) return fmt::format("sections: {}", base::join(config_sections()));
  const RunConfig::Optimizer& optimizer = config.optimizer;
  const std::string with = section == "optimizer"        ? " for " + described(optimizer.name, optimizer.recipe)
                           : section == "optimizer.rest" ? " for " + described(optimizer.rest_name, optimizer.rest)
                                                         : "";
  return fmt::format("keys of [{}]{}: {}", section, with, base::join(known.siblings));
}

}  // namespace

void refuse_key(const RunConfig& config, const std::vector<Assignment>& given, const Assignment& assignment) {
  refuse_rest(config, given, assignment);
  refuse_replaced(config, given, assignment);
  const std::string_view section = section_of(assignment.name);
  const Known known = known_keys(config, section);
  const std::string suggestion = meant(known, section, without_section(assignment.name));
  throw Error(Fault::usage, fmt::format("{}: no key named {};{} {}", place_of(assignment), base::in_quotes(assignment.name),
                                        suggestion.empty() ? "" : fmt::format(" did you mean '{}'?", suggestion),
                                        choices_in(config, section, known)));
}

}  // namespace cautious::run
