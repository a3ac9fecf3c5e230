// What is refused beyond a single value: unknown keys, with what was meant or which rule took the key away; and values
// that do not go together.
#include <algorithm>
#include <array>
#include <variant>

#include <fmt/format.h>

#include "base/text.h"
#include "data/tasks/task.h"
#include "run/config_table.h"

namespace cautious::run {
namespace {

// The one that decides: the last.
const Assignment* find_given(const std::vector<Assignment>& given, std::string_view name) {
  const auto found = std::find_if(given.rbegin(), given.rend(), [&](const Assignment& a) { return a.name == name; });
  return found == given.rend() ? nullptr : &*found;
}

// "<where>: <key> <problem>", as far as the key was given.
[[noreturn]] void refuse(const std::vector<Assignment>& given, const std::string& name, std::string_view problem) {
  const Assignment* found = find_given(given, name);
  const bool from_file = found && found->layer == Layer::file;
  throw Error(Fault::usage, fmt::format("{} {}", found ? found->shown : name, problem),
              {.key = name, .where = from_file ? where_of(*found) : ""});
}

// "run.toml and command line: in [model]": who has set something there.
std::string in_section(const std::vector<Assignment>& given, std::string_view section) {
  std::vector<std::string> sources;
  for (const Assignment& a : given) {
    const bool known = a.source.empty() || (!sources.empty() && sources.back() == a.source);
    if (section_of(a.name) == section && !known) sources.push_back(a.source);
  }
  const std::string in = fmt::format("in [{}]", section);
  return sources.empty() ? in : fmt::format("{}: {}", fmt::join(sources, " and "), in);
}

void check_rest(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  if (!works_on_matrices(optimizer.rest.rule)) return;
  const bool by_name = works_on_matrices(recipe(optimizer.rest_name).rule);
  refuse(given, by_name ? "optimizer.rest.name" : "optimizer.rest.k",
         fmt::format("makes a rule for matrices alone, but the rest has vectors too; choices for optimizer.rest.name: {}{}",
                     base::join(rest_names()), by_name ? "" : "; for optimizer.rest.k: all but nuclear"));
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
  if (!find_given(given, section + ".weight_decay") || find_given(given, section + ".decay")) return;
  const std::string others = section == "optimizer" ? " or use: " + decaying_like(recipe) : "";
  refuse(given, section + ".weight_decay",
         fmt::format("is {}, but optimizer '{}' has no decay; set {}.decay{}", recipe.weight_decay, name, section, others));
}

// A reference run says how much decays: the rest of the recipe must leave that open.
void check_reference(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  const std::string_view decay = name_of(optimizer.recipe.decay);
  if (!optimizer.density_from.empty() && decay != "random") {
    refuse(given, "optimizer.density_from", fmt::format("needs optimizer.decay=random, which is {}", decay));
  }
  if (optimizer.budget_from.empty()) return;
  if (decay != "decoupled" || optimizer.recipe.coupling != Coupling::plain) {
    refuse(given, "optimizer.budget_from",
           fmt::format("needs optimizer.decay=decoupled and optimizer.coupling=plain, which are {} and {}", decay,
                       name_of(optimizer.recipe.coupling)));
  }
  if (works_on_matrices(optimizer.recipe.rule) && optimizer.rest.coupling != Coupling::plain) {
    refuse(given, "optimizer.budget_from",
           fmt::format("needs optimizer.rest.coupling=plain, which is {}", name_of(optimizer.rest.coupling)));
  }
}

// Texts that stand in sentences.
void check_objective(const RunConfig& config, const std::vector<Assignment>& given) {
  const auto [name, unit, target] = config.objective;
  const auto is_text = [](const std::string& text) { return base::in_one_line(text) == text; };
  if (name.empty() || !is_text(name))
    refuse(given, "objective.name", "is not a short text on one line, as in: validation loss");
  if (!is_text(unit)) refuse(given, "objective.unit", "is not a short text on one line, as in: nats");
}

void check_lora(const RunConfig& config, const std::vector<Assignment>& given) {
  if (config.task == TaskKind::image || config.lora.rank == 0) return;
  base::with_context(in_section(given, "lora"), [&] { (void)adapter_shapes(config.model.shape, config.lora); });
  if (config.model.from.empty()) refuse(given, "lora.rank", "needs a model to adapt; set model.from, or lora.rank=0");
  if (config.train.ema > 0) refuse(given, "train.ema", "is an average of a model's weights, not of adapters; set lora.rank=0");
}

void check_benchmarks(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Eval& eval = config.eval;
  for (const std::string& task : eval.tasks) {
    const auto names = data::task_names();
    const std::string name = task.substr(0, task.find(':'));
    if (std::ranges::find(names, name) == names.end())
      refuse(given, "eval.tasks", "is not valid: " + base::unknown("task", name, names));
  }
  if (!eval.tasks.empty() && eval.data.empty()) {
    refuse(given, "eval.tasks", "needs the files of the benchmarks; set eval.data");
  }
}

void check_device(const RunConfig& config, const std::vector<Assignment>& given) {
  const std::string& device = config.train.device;
  const bool numbered = device.starts_with("cuda:") && device.size() > 5 && device.size() < 9 &&
                        device.find_first_not_of("0123456789", 5) == std::string::npos;
  constexpr std::array<std::string_view, 4> kDevices{"auto", "cpu", "cuda", "lazy"};
  if (device == "mps") {
    refuse(given, "train.device", "is mps, but the optimizer's sums are in f64, which Metal does not have; set it to cpu");
  }
  if (!numbered && std::ranges::find(kDevices, device) == kDevices.end()) {
    refuse(given, "train.device",
           fmt::format("is {}; valid: auto, cpu, cuda, cuda:0, cuda:1, ..., lazy", base::in_quotes(device)));
  }
  const bool wide = config.train.precision == Precision::f32 || config.train.precision == Precision::mixed;
  if (config.train.ema > 0 && !wide) {
    refuse(given, "train.ema", "would lose its small changes among bf16 weights; set train.precision to f32 or mixed");
  }
  if (config.task == TaskKind::image && config.train.precision != Precision::f32) {
    refuse(given, "train.precision", "is for language models; image classifiers train in f32");
  }
  if (config.task != TaskKind::image && !config.eval.tasks.empty() && config.train.precision != Precision::f32) {
    refuse(given, "eval.tasks", "are asked in f32 only; ask the trained model with: cautious eval DIR --tasks");
  }
}

void check_batch(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Train& train = config.train;
  if (train.batch_size % train.grad_accum != 0) {
    refuse(given, "train.grad_accum",
           fmt::format("is {}, which does not divide train.batch_size {}", train.grad_accum, train.batch_size));
  }
  const std::int64_t context = config.model.shape.context;
  if (config.task != TaskKind::image && train.seq_len > context) {
    refuse(given, "train.seq_len", fmt::format("is {}; valid: 0 to {}, which is model.context", train.seq_len, context));
  }
}

void check_weights(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Data& data = config.data;
  if (config.task != TaskKind::text || data.weights.empty()) return;
  for (const double weight : data.weights) {
    if (weight <= 0) refuse(given, "data.weights", fmt::format("has {}; valid: numbers in (0, inf)", weight));
  }
  if (!data.path.empty() && data.weights.size() != data.path.size()) {
    refuse(given, "data.weights",
           fmt::format("is a list of {}, data.path one of {}; give one weight for each entry", data.weights.size(),
                       data.path.size()));
  }
  if (data.train_tokens > 0) {
    refuse(given, "data.train_tokens", "takes the first tokens of one stream, but data.weights makes several; unset one");
  }
}

// The run's tokens or images must be countable.
void check_length(const RunConfig& config, const std::vector<Assignment>& given) {
  constexpr double kMost = 9e18;
  struct Length {
    const char* key;
    double units;
  };
  const RunConfig::Train& train = config.train;
  const auto per_step = static_cast<double>(units_per_step(config));
  const Length lengths[] = {{"train.steps", static_cast<double>(train.steps) * per_step},
                            {"train.tokens", static_cast<double>(train.tokens)},
                            {"train.images", static_cast<double>(train.images)},
                            {"train.tokens_per_param", train.tokens_per_param * static_cast<double>(parameters_of(config))},
                            {"train.epochs", train.epochs * static_cast<double>(config.data.epoch_units)}};
  for (const auto& [key, units] : lengths) {
    if (units == 0 || units + per_step <= kMost) continue;
    refuse(given, key, fmt::format("makes a run of {:.3g} {}; valid: at most {:.3g}", units, unit_of(config.task), kMost));
  }
}

std::string in_words(std::string_view name, const Recipe& recipe) {
  return fmt::format("{} with decay {}", name, name_of(recipe.decay));
}

void refuse_rest(const RunConfig& config, const std::vector<Assignment>& given, const Assignment& assignment) {
  const Rule& rule = config.optimizer.recipe.rule;
  if (section_of(assignment.name) != "optimizer.rest" || works_on_matrices(rule)) return;
  const auto* lion_k = std::get_if<LionK>(&rule);
  const std::string name = lion_k ? "optimizer.k" : "optimizer.name";
  const std::string value = lion_k ? std::string(name_of(lion_k->k)) : config.optimizer.name;
  const Assignment* decides = find_given(given, name);
  throw Error(Fault::usage,
              fmt::format("{} is for rules that work on matrices alone (muon, lion-k with k = nuclear), but {} is "
                          "'{}', which takes every tensor; remove the keys of [optimizer.rest]",
                          base::in_quotes(assignment.name), decides ? what_of(*decides) : name, value),
              {.key = assignment.name, .where = where_of(assignment)});
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
  if (const auto sibling = base::closest(ending, known.siblings); !sibling.empty())
    return fmt::format("{}.{}", section, sibling);
  const auto other = std::find(known.endings.begin(), known.endings.end(), base::closest(ending, known.endings));
  return other == known.endings.end() ? "" : known.names[static_cast<std::size_t>(other - known.endings.begin())];
}

std::string choices_in(const RunConfig& config, std::string_view section, const Known& known) {
  if (known.siblings.empty() || section.empty()) return fmt::format("sections: {}", base::join(config_sections()));
  const RunConfig::Optimizer& optimizer = config.optimizer;
  const std::string with = section == "optimizer"        ? " for " + in_words(optimizer.name, optimizer.recipe)
                           : section == "optimizer.rest" ? " for " + in_words(optimizer.rest_name, optimizer.rest)
                                                         : "";
  return fmt::format("keys of [{}]{}: {}", section, with, base::join(known.siblings));
}

}  // namespace

void refuse_key(const RunConfig& config, const std::vector<Assignment>& given, const Assignment& assignment) {
  refuse_rest(config, given, assignment);
  const std::string_view section = section_of(assignment.name);
  const Known known = known_keys(config, section);
  const std::string suggestion = meant(known, section, without_section(assignment.name));
  throw Error(
      Fault::usage,
      fmt::format("no key named {};{} {}", base::in_quotes(assignment.name),
                  suggestion.empty() ? "" : fmt::format(" did you mean '{}'?", suggestion), choices_in(config, section, known)),
      {.key = assignment.name, .where = where_of(assignment)});
}

void refuse_rivals(TaskKind task, const std::vector<Assignment>& given) {
  for (auto one = given.begin(); one != given.end(); ++one) {
    const auto rivals = rivals_of(task, one->name);
    const auto other = std::find_if(one + 1, given.end(), [&](const Assignment& a) {
      return a.rank == one->rank && a.name != one->name && std::ranges::find(rivals, a.name) != rivals.end();
    });
    if (other == given.end()) continue;
    throw Error(Fault::usage,
                fmt::format("{} and {} are both set; set one of: {}", what_of(*one), what_of(*other), base::join(rivals)),
                {.key = one->name});
  }
}

void check_together(const RunConfig& config, const std::vector<Assignment>& given) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  const bool external = config.task == TaskKind::external;
  if (!external) {
    base::with_context(in_section(given, "model"),
                       [&] { config.task == TaskKind::image ? check(config.model.image) : check(config.model.shape); });
  }
  base::with_context(in_section(given, "optimizer"), [&] { check(optimizer.recipe); });
  check_decay(given, "optimizer", optimizer.name, optimizer.recipe);
  if (works_on_matrices(optimizer.recipe.rule)) {
    check_rest(config, given);
    base::with_context(in_section(given, "optimizer.rest"), [&] { check(optimizer.rest); });
    check_decay(given, "optimizer.rest", optimizer.rest_name, optimizer.rest);
  }
  check_reference(config, given);
  if (external) return check_objective(config, given);
  check_lora(config, given);
  check_benchmarks(config, given);
  check_device(config, given);
  check_batch(config, given);
  check_weights(config, given);
  check_length(config, given);
  const cautious::Schedule schedule = schedule_of(config);
  base::with_context(fmt::format("{} of {} steps", in_section(given, "schedule"), schedule.steps), [&] { check(schedule); });
}

}  // namespace cautious::run
