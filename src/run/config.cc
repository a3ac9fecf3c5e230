// Reads the layers, applies them in stages, so that what a key depends on is there before it, whatever the order in which they
// are written; prints the result; and derives what follows from it.
#include "run/config.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <initializer_list>
#include <variant>

#include <fmt/format.h>

#include "base/text.h"
#include "base/toml.h"
#include "data/corpus.h"
#include "run/config_table.h"
#include "run/run_data.h"

namespace cautious::run {
namespace {

// Collects the values of a section and of the sections in it.
void collect(std::vector<Assignment>& all, const std::string& prefix, const base::TomlValue& table) {
  for (const auto& [key, at, value] : table.entries) {
    const std::string name = prefix + key;
    const auto sections = config_sections();
    const bool is_section = std::ranges::find(sections, name) != sections.end(),
               is_table = value.kind == base::TomlValue::Kind::table;
    if (is_table && is_section) {
      collect(all, name + ".", value);
    } else if (is_table) {
      value.refuse(base::unknown("section", name, sections));
    } else if (is_section) {
      value.refuse(fmt::format("{} is a section, not a value; write [{}] on a line of its own, then its keys", name, name));
    } else {
      all.push_back({Layer::file, *value.file, value.begin.line, name, name, config_value(value)});
    }
  }
}

// The file, then --preset, then the overrides in their order.
std::vector<Assignment> assignments_of(const ConfigSource& source) {
  std::vector<Assignment> all;
  if (source.file) collect(all, "", base::read_toml(*source.file, {.what = "the configuration"}));
  const std::string from = source.typed ? "command line" : "", dashes = source.typed ? "--" : "";
  const auto add = [&](const std::string& shown, const std::string& name, const std::string& text) {
    all.push_back({Layer::command_line, from, 0, dashes + shown, name, {ConfigValue::Kind::typed, text}});
  };
  if (!source.preset.empty()) add("preset", "model.preset", source.preset);
  for (const auto& [name, text] : source.overrides) {
    if (name == "model.preset" && !source.preset.empty() && text != source.preset) {
      throw Error(Fault::usage,
                  fmt::format("--preset is {} and --model.preset is {}; give one of them", base::in_quotes(source.preset),
                              base::in_quotes(text)),
                  {.key = name});
    }
    add(name, name, text);
  }
  return all;
}

// A recipe's name resets its decay, and a decay its own fields; the rest starts from all that is decided above it.
enum class Stage { start, decay, plain, rest_start, rest_decay, rest_plain };
constexpr std::array kStages{Stage::start, Stage::decay, Stage::plain, Stage::rest_start, Stage::rest_decay, Stage::rest_plain};

Stage stage_of(std::string_view name) {
  if (name == "model.preset" || name == "model.from" || name == "optimizer.name") return Stage::start;
  if (name == "optimizer.decay") return Stage::decay;
  if (name == "optimizer.rest.name") return Stage::rest_start;
  if (name == "optimizer.rest.decay") return Stage::rest_decay;
  return name.starts_with("optimizer.rest.") ? Stage::rest_plain : Stage::plain;
}

void apply(RunConfig& config, const Key& key, const Assignment& assignment) try {
  key.set(config, assignment.shown, assignment.value);
} catch (const Error& error) {
  const Error located = assignment.layer == Layer::file ? error.within(where_of(assignment)) : error;
  throw Error(located.fault(), located.message(), {.key = assignment.name, .where = located.where()});
}

void apply(RunConfig& config, const std::vector<Assignment>& given, Stage stage) {
  const std::vector<Key> keys = keys_of(config);
  for (const Assignment& assignment : given) {
    if (stage_of(assignment.name) != stage) continue;
    const auto key = std::ranges::find(keys, assignment.name, &Key::name);
    if (key == keys.end()) refuse_key(config, given, assignment);
    apply(config, *key, assignment);
  }
}

constexpr std::size_t kWidest = 40;  // beyond it a comment follows its value directly

// A key beside which another one decides is there as a comment.
std::string line_of(const ConfigKey& key) {
  const std::string_view name = without_section(key.name);
  return key.value.empty() ? fmt::format("# {} =", name) : fmt::format("{} = {}", name, key.value);
}

std::size_t width_of(const std::vector<ConfigKey>& keys) {
  std::size_t width = 0;
  for (const ConfigKey& key : keys) {
    const std::size_t length = line_of(key).size();
    if (length <= kWidest) width = std::max(width, length);
  }
  return width;
}

DecaySwitch vector_decay(const RunConfig& config) {
  return config.optimizer.decay_vectors ? DecaySwitch::on : DecaySwitch::off;
}

// Vectors first: the output's bias is one. Then embedding and output, by name.
std::vector<Route> routes_with(TaskKind task, const std::string& ends) {
  std::vector<Route> routes{{.group = "vectors", .max_rank = 1}};
  const auto add = [&](const std::string& group, std::initializer_list<const char*> patterns) {
    for (const char* pattern : patterns) routes.push_back({.group = group, .pattern = pattern});
  };
  if (task == TaskKind::image) {
    add("vectors", {"cls_token", "pos_embed"});
    add(ends, {"patch_embed.*", "head.*", "fc.*"});
  } else {
    add(ends, {"model.embed_tokens.*", "model.position_embeddings.*", "lm_head.*"});
  }
  routes.push_back({.group = "matrices"});
  return routes;
}

// The last value that the layers give to the key.
const Assignment* last_given(const std::vector<Assignment>& given, std::string_view name) {
  const auto found = std::find_if(given.rbegin(), given.rend(), [&](const Assignment& a) { return a.name == name; });
  return found == given.rend() ? nullptr : &*found;
}

// That of the preset where there is one. Names that are none are refused later, with their places.
TaskKind task_in(const std::vector<Assignment>& given) {
  const Assignment* const preset = last_given(given, "model.preset");
  const Assignment* const task = last_given(given, "task");
  const auto is = [&](TaskKind kind) { return task && task->value.text == cautious::name_of(kind); };
  const bool image = is(TaskKind::image);
  const TaskKind of_text = is(TaskKind::instruct)   ? TaskKind::instruct
                           : is(TaskKind::external) ? TaskKind::external
                                                    : TaskKind::text;
  if (!preset) return image ? TaskKind::image : of_text;
  const bool of_images = model::is_image_preset(preset->value.text);
  if (task && image != of_images && (of_images || std::ranges::count(model::preset_names(), preset->value.text) > 0)) {
    throw Error(Fault::usage,
                fmt::format("{} is '{}', a model of the task '{}', but {} is '{}'; remove one of them", what_of(*preset),
                            preset->value.text, of_images ? "image" : "text", what_of(*task), task->value.text),
                {.key = "task"});
  }
  return of_images ? TaskKind::image : of_text;
}

// What the data decides unless the user does: the classes and channels, for small models the size, and how long an epoch is. A
// configuration that leaves nothing open needs no data yet.
void follow_data(RunConfig& config, const std::vector<Assignment>& given) {
  constexpr std::int64_t kSmall = 64;  // models of larger images are meant for photographs, whose sizes differ
  if (config.data.path.empty()) return;
  const auto is_open = [&](const char* key) { return !last_given(given, key); };
  const bool size = is_open("model.image_size") && model::image_size(config.model.image) <= kSmall;
  const bool channels = is_open("model.channels"), classes = is_open("model.classes");
  if (!size && !channels && !classes && config.train.epochs == 0) return;
  const data::ImageFacts facts = data::image_facts(image_spec(config));
  config.data.epoch_units = facts.training;
  std::visit(
      [&](auto& network) {
        if (size && facts.size > 0) network.image_size = facts.size;
        if (channels) network.channels = facts.channels;
        if (classes) network.classes = facts.classes;
      },
      config.model.image);
}

}  // namespace

std::string where_of(const Assignment& assignment) {
  if (assignment.layer == Layer::command_line) return assignment.source;
  return fmt::format("{}:{}", assignment.source, assignment.line);
}

std::string what_of(const Assignment& assignment) {
  if (assignment.layer == Layer::command_line) return assignment.shown;
  return fmt::format("{}: {}", where_of(assignment), assignment.shown);
}

bool works_on_matrices(const Rule& rule) {
  return std::visit(
      []<class R>(const R& r) {
        if constexpr (requires { shaping(r); }) {
          return shaping(r) == Shaping::matrix;
        } else {
          return false;
        }
      },
      rule);
}

std::vector<std::string> rest_names() {
  std::vector<std::string> names = recipe_names();
  std::erase_if(names, [](const std::string& name) { return works_on_matrices(recipe(name).rule); });
  return names;
}

void start_rest(RunConfig::Optimizer& optimizer, std::string_view name) {
  optimizer.rest = recipe(name);
  optimizer.rest.decay = decay_for(optimizer.rest.rule, optimizer.recipe.decay);
  optimizer.rest.weight_decay = optimizer.recipe.weight_decay;
  optimizer.rest_name = name;
}

RunConfig defaults_of(TaskKind task) {
  RunConfig config;
  config.task = task;
  if (task == TaskKind::text) return config;
  config.train.tokens_per_param = 0;
  if (task == TaskKind::external) {
    config.train.steps = 1;  // how long it is, is not known: it counts as one step
    return config;
  }
  if (task == TaskKind::instruct) {
    config.lora.rank = 8;
    config.optimizer.lr = 2e-4;
    config.schedule.warmup_ratio = 0.03;
    config.train.epochs = 3;
    config.train.batch_size = 8;
    return config;
  }
  config.model.preset = "resnet-20";
  config.model.image = model::image_preset(config.model.preset);
  config.data.val_fraction = 0;
  config.optimizer.lr = 2e-3;
  config.train.images = 600000;
  config.train.batch_size = 128;
  return config;
}

RunConfig read_config(const ConfigSource& source) {
  const std::vector<Assignment> given = assignments_of(source);
  RunConfig config = defaults_of(task_in(given));
  refuse_rivals(config.task, given);
  for (const Stage stage : kStages) {
    if (stage == Stage::rest_start && works_on_matrices(config.optimizer.recipe.rule)) {
      start_rest(config.optimizer, config.optimizer.rest_name);
    }
    apply(config, given, stage);
    if (stage == Stage::start && config.task != TaskKind::image) follow_model(config, given);
  }
  if (config.task == TaskKind::image) follow_data(config, given);
  if (config.task == TaskKind::instruct && config.train.epochs > 0 && !config.data.path.empty()) {
    config.data.epoch_units = open_lessons(config).train.count() * sequence_length(config);
  }
  check_together(config, given);
  return config;
}

std::string to_toml(const RunConfig& config) {
  const std::vector<ConfigKey> keys = config_keys(config);
  const std::size_t width = width_of(keys);
  std::string text =
      "# A training run of cautious: every key with its value, then its meaning | what is valid.\n"
      "# On the command line: --section.key=value\n";
  std::string_view section;
  for (const ConfigKey& key : keys) {
    if (section_of(key.name) != section) {
      section = section_of(key.name);
      text += fmt::format("\n[{}]\n", section);
    }
    text += fmt::format("{:<{}}  # {} | {}\n", line_of(key), width, key.help, key.valid);
  }
  return text;
}

std::vector<model::Shape> parameter_shapes(const RunConfig& config) {
  if (config.task == TaskKind::image) return model::parameter_shapes(config.model.image);
  if (config.lora.rank > 0) return model::adapter_shapes(config.model.shape, config.lora);
  return model::parameter_shapes(config.model.shape);
}

std::int64_t parameters_of(const RunConfig& config) {
  double count = 0;
  for (const model::Shape& shape : parameter_shapes(config)) count += entries(shape);
  return static_cast<std::int64_t>(count);
}

double parameter_bytes(const RunConfig& config) {
  const bool adapted = config.task != TaskKind::image && config.lora.rank > 0;
  const double frozen = adapted ? 4 * static_cast<double>(size_of(config.model.shape, 1, 1, false).parameters) : 0;
  return frozen + 16 * static_cast<double>(parameters_of(config));
}

std::int64_t units_per_step(const RunConfig& config) {
  return config.train.batch_size * (config.task == TaskKind::image ? 1 : sequence_length(config));
}

std::string_view unit_of(TaskKind task) { return task == TaskKind::image ? "images" : "tokens"; }

data::ImageSpec image_spec(const RunConfig& config) {
  return {config.data.path, config.data.val_path, config.data.val_fraction, config.data.train_images,
          config.data.cache.empty() ? data::default_cache() : std::filesystem::path(config.data.cache)};
}

std::int64_t sequence_length(const RunConfig& config) {
  return config.train.seq_len > 0 ? config.train.seq_len : config.model.shape.context;
}

std::int64_t steps_of(const RunConfig& config) {
  const RunConfig::Train& train = config.train;
  if (train.steps > 0) return train.steps;
  const std::int64_t per_step = units_per_step(config), units = std::max(train.tokens, train.images);
  if (units > 0) return (units - 1) / per_step + 1;
  if (train.epochs > 0 && config.data.epoch_units == 0) {
    throw Error(Fault::usage, "train.epochs needs data.path, whose examples it counts; set data.path, or train.steps instead",
                {.key = "train.epochs"});
  }
  const double wanted = train.epochs > 0 ? train.epochs * static_cast<double>(config.data.epoch_units)
                                         : train.tokens_per_param * static_cast<double>(parameters_of(config));
  return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::ceil(wanted / static_cast<double>(per_step))));
}

Schedule schedule_of(const RunConfig& config) {
  Schedule schedule = config.schedule;
  schedule.lr = config.optimizer.lr;
  schedule.steps = steps_of(config);
  return schedule;
}

DecaySchedule decay_schedule_of(const RunConfig& config) {
  DecaySchedule schedule = config.decay_schedule;
  schedule.steps = steps_of(config);
  return schedule;
}

Routing routing_of(const RunConfig& config) {
  const RunConfig::Optimizer& optimizer = config.optimizer;
  if (!works_on_matrices(optimizer.recipe.rule)) {
    return {{{.name = "matrices", .recipe = optimizer.recipe},
             {.name = "embedding", .recipe = optimizer.recipe},
             {.name = "vectors", .recipe = optimizer.recipe, .decay = vector_decay(config)}},
            routes_with(config.task, "embedding")};
  }
  const double multiplier = optimizer.rest_lr_multiplier;
  return {{{.name = "matrices", .recipe = optimizer.recipe},
           {.name = "rest", .recipe = optimizer.rest, .lr_multiplier = multiplier},
           {.name = "vectors", .recipe = optimizer.rest, .lr_multiplier = multiplier, .decay = vector_decay(config)}},
          routes_with(config.task, "rest")};
}

}  // namespace cautious::run
