#include "run/config_check.h"

#include <algorithm>
#include <variant>

#include "base/text.h"
#include "run/config_keys.h"

namespace cautious::run {
namespace {

[[noreturn]] void refuse(const std::string& message) { throw Error(Fault::usage, message); }

// The one that decides: the last.
const Assignment* find_given(const std::vector<Assignment>& given, std::string_view name) {
  const auto found = std::find_if(given.rbegin(), given.rend(), [&](const Assignment& a) { return a.name == name; });
  return found == given.rend() ? nullptr : &*found;
}

// The key with the place it was set at, if any.
std::string what_of(const std::vector<Assignment>& given, const std::string& name) {
  const Assignment* found = find_given(given, name);
  return found ? run::what_of(*found) : name;
}

// "run.toml and command line: in [model]": who has set something there.
std::string in_section(const std::vector<Assignment>& given, std::string_view section) {
  std::vector<std::string> where;
  for (const Assignment& a : given) {
    const bool from_file = a.layer == Layer::file;
    const std::string source = from_file ? a.place.substr(0, a.place.rfind(':')) : "command line";
    if (section_of(a.name) == section && (where.empty() || where.back() != source)) where.push_back(source);
  }
  return where.empty() ? fmt::format("in [{}]", section) : fmt::format("{}: in [{}]", fmt::join(where, " and "), section);
}

void check_rest(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  if (!works_on_matrices(optimizer.rest.rule)) return;
  const bool by_name = works_on_matrices(recipe(optimizer.rest_name).rule);
  const std::string what = what_of(given, by_name ? "optimizer.rest.name" : "optimizer.rest.k");
  refuse(fmt::format("{} makes a rule for matrices alone, but the rest has vectors too; choices for optimizer.rest.name: {}{}",
                     what, base::join(rest_names()), by_name ? "" : "; for optimizer.rest.k: all but nuclear"));
}

// The recipes of the same rule that decay, as in "or use: adamw, adamc".
std::string decaying_like(const Recipe& recipe) {
  std::vector<std::string> names;
  for (const std::string& other : recipe_names()) {
    const Recipe candidate = cautious::recipe(other);
    const bool decays = !std::holds_alternative<None>(candidate.decay);
    if (decays && name_of(candidate.rule) == name_of(recipe.rule)) names.push_back(other);
  }
  return base::join(names);
}

// A strength without a decay would do nothing; beside decay = "none" it is meant.
void check_decay(const std::vector<Assignment>& given, const std::string& section, const std::string& name,
                 const Recipe& recipe) {
  if (recipe.weight_decay <= 0 || !std::holds_alternative<None>(recipe.decay)) return;
  const Assignment* strength = find_given(given, section + ".weight_decay");
  if (!strength || find_given(given, section + ".decay")) return;
  const std::string others = section == "optimizer" ? " or use: " + decaying_like(recipe) : "";
  refuse(fmt::format("{} is {}, but optimizer '{}' has no decay; set {}.decay{}", run::what_of(*strength),
                     recipe.weight_decay, name, section, others));
}

// A followed run says how much decays: the rest of the recipe must leave that open.
void check_followed(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  const std::string_view decay = name_of(optimizer.recipe.decay);
  if (!optimizer.density_from.empty() && decay != "random") {
    refuse(fmt::format("{} needs optimizer.decay=random, which is {}", what_of(given, "optimizer.density_from"), decay));
  }
  if (optimizer.budget_from.empty()) return;
  if (decay != "decoupled" || optimizer.recipe.coupling != Coupling::plain) {
    refuse(fmt::format("{} needs optimizer.decay=decoupled and optimizer.coupling=plain, which are {} and {}",
                       what_of(given, "optimizer.budget_from"), decay, name_of(optimizer.recipe.coupling)));
  }
  if (works_on_matrices(optimizer.recipe.rule) && optimizer.rest.coupling != Coupling::plain) {
    refuse(fmt::format("{} needs optimizer.rest.coupling=plain, which is {}", what_of(given, "optimizer.budget_from"),
                       name_of(optimizer.rest.coupling)));
  }
}

void check_batch(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Train& train = config.train;
  if (train.batch_size % train.grad_accum != 0) {
    refuse(fmt::format("{} is {}, which does not divide train.batch_size {}", what_of(given, "train.grad_accum"),
                       train.grad_accum, train.batch_size));
  }
  if (train.seq_len > config.model.shape.context) {
    refuse(fmt::format("{} is {}; valid: 0 to {}, which is model.context", what_of(given, "train.seq_len"), train.seq_len,
                       config.model.shape.context));
  }
}

// The run's tokens must be countable.
void check_length(const RunConfig& config, const std::vector<Assignment>& given) {
  constexpr double kMost = 9e18;
  const RunConfig::Train& train = config.train;
  const auto per_step = static_cast<double>(train.batch_size) * static_cast<double>(sequence_length(config));
  const auto parameters = static_cast<double>(size_of(config.model.shape, 1, 1, false).parameters);
  const double tokens = train.steps > 0    ? static_cast<double>(train.steps) * per_step
                        : train.tokens > 0 ? static_cast<double>(train.tokens)
                                           : train.tokens_per_param * parameters;
  if (tokens + per_step <= kMost) return;
  const std::string key = train.steps > 0 ? "train.steps" : train.tokens > 0 ? "train.tokens" : "train.tokens_per_param";
  refuse(fmt::format("{} makes a run of {:.3g} tokens; valid: at most {:.3g}", what_of(given, key), tokens, kMost));
}

}  // namespace

void refuse_rivals(const std::vector<Assignment>& given) {
  for (auto one = given.begin(); one != given.end(); ++one) {
    const auto rivals = rivals_of(one->name);
    const auto other = std::find_if(one + 1, given.end(), [&](const Assignment& a) {
      return a.layer == one->layer && a.name != one->name && std::find(rivals.begin(), rivals.end(), a.name) != rivals.end();
    });
    if (other != given.end()) {
      refuse(fmt::format("{} and {} are both set; set one of: {}", run::what_of(*one), run::what_of(*other),
                         base::join(rivals)));
    }
  }
}

void check_together(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  told_of(in_section(given, "model"), [&] { check(config.model.shape); });
  told_of(in_section(given, "optimizer"), [&] { check(optimizer.recipe); });
  check_decay(given, "optimizer", optimizer.name, optimizer.recipe);
  if (works_on_matrices(optimizer.recipe.rule)) {
    check_rest(config, given);
    told_of(in_section(given, "optimizer.rest"), [&] { check(optimizer.rest); });
    check_decay(given, "optimizer.rest", optimizer.rest_name, optimizer.rest);
  }
  check_followed(config, given);
  check_batch(config, given);
  check_length(config, given);
  const cautious::Schedule schedule = schedule_of(config);
  told_of(fmt::format("{} of {} steps", in_section(given, "schedule"), schedule.steps), [&] { check(schedule); });
}

}  // namespace cautious::run
